// Indentation, and the promise of write_folder(): all or nothing, and nothing touched that is the same.
#include "generator/text_writer.h"

#include <gtest/gtest.h>

#include <set>

#include "error_of.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

TEST(TextWriter, IndentsLinesButNotEmptyOnes) {
  TextWriter writer;
  writer.line("struct {} {{", "Plan");
  writer.indented([&] {
    writer.line("int a = {};", 1);
    writer.blank();
    writer.literal("void f() {\n  g();\n\n}");
    writer.indented([&] { writer.literal("deep\n"); });
  });
  writer.literal("};");
  EXPECT_EQ(writer.text(), "struct Plan {\n  int a = 1;\n\n  void f() {\n    g();\n\n  }\n    deep\n};\n");
}

TEST(TextWriter, EmptyLiteralIsAnEmptyLine) {
  TextWriter writer;
  writer.indented([&] { writer.literal(""); });
  EXPECT_EQ(writer.text(), "\n");
}

TEST(WriteFolder, MakesFolderAndParents) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "a" / "b" / "";  // ends in a slash
  EXPECT_EQ(write_folder(folder, {{"plan.h", "1\n"}, {"kernel.cu", "2\n"}}),
            (std::vector<std::string>{"kernel.cu", "plan.h"}));
  EXPECT_EQ(names_in(folder), (std::set<std::string>{"plan.h", "kernel.cu"}));
  EXPECT_EQ(read_file(folder / "plan.h"), "1\n");
  EXPECT_EQ(names_in(temporary.path() / "a"), std::set<std::string>{"b"});
}

TEST(WriteFolder, TouchesOnlyWhatChanged) {
  const TemporaryFolder temporary;
  write_folder(temporary.path(), {{"same", "1"}, {"other", "2"}});
  temporary.write("foreign", "3");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* name : {"same", "other", "foreign"})
    fs::last_write_time(temporary.path() / name, long_ago);
  EXPECT_EQ(write_folder(temporary.path(), {{"same", "1"}, {"other", "22"}, {"new", ""}}),
            (std::vector<std::string>{"new", "other"}));
  EXPECT_EQ(fs::last_write_time(temporary.path() / "same"), long_ago);
  EXPECT_EQ(fs::last_write_time(temporary.path() / "foreign"), long_ago);
  EXPECT_GT(fs::last_write_time(temporary.path() / "other"), long_ago);
  EXPECT_EQ(read_file(temporary.path() / "other"), "22");
  EXPECT_EQ(names_in(temporary.path()), (std::set<std::string>{"same", "other", "foreign", "new"}));
  EXPECT_EQ(write_folder(temporary.path(), {{"same", "1"}}), std::vector<std::string>());
}

TEST(WriteFolder, PutsEverythingBackWhenOneFileFails) {
  const TemporaryFolder temporary;
  temporary.write("b", "before");
  fs::create_directories(temporary.path() / "c" / "full");  // no file can take this place
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(temporary.path() / "b", long_ago);
  const std::string error = error_of([&] {
    write_folder(temporary.path(), {{"a", "1"}, {"b", "2"}, {"c", "3"}});
  });
  EXPECT_EQ(
      error.rfind("3 " + temporary.path().string() + ": expected a place that can be written, got: ", 0), 0u)
      << error;
  EXPECT_EQ(names_in(temporary.path()), (std::set<std::string>{"b", "c"}));
  EXPECT_EQ(read_file(temporary.path() / "b"), "before");
  EXPECT_EQ(fs::last_write_time(temporary.path() / "b"), long_ago);
}

TEST(WriteFolder, RefusesAFileInPlaceOfTheFolder) {
  const TemporaryFolder temporary;
  const std::string file = temporary.write("out", "text").string();
  EXPECT_EQ(error_of([&] {
              write_folder(file, {{"a", "1"}});
            }),
            "3 " + file + ": expected a place that can be written, got: a file where the folder should be");
  EXPECT_EQ(error_of([&] {
              write_folder(file + "/deep", {{"a", "1"}});
            }),
            "3 " + file + "/deep: expected a place that can be written, got: Not a directory");
  EXPECT_EQ(read_file(file), "text");
  EXPECT_EQ(names_in(temporary.path()), std::set<std::string>{"out"});
}

TEST(WriteFolder, RefusesAPlaceThatCannotBeWritten) {
  const std::string error = error_of([] { write_folder("/proc/soliton/out", {{"a", "1"}}); });
  EXPECT_EQ(error.rfind("3 /proc/soliton/out: expected a place that can be written, got: ", 0), 0u) << error;
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const TemporaryFolder temporary;
  fs::permissions(temporary.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(
      error_of([&] {
        write_folder(temporary.path(), {{"a", "1"}});
      }),
      "3 " + temporary.path().string() + ": expected a place that can be written, got: Permission denied");
  EXPECT_EQ(error_of([&] {
              write_folder(temporary.path() / "new", {{"a", "1"}});
            }),
            "3 " + temporary.path().string() +
                "/new: expected a place that can be written, got: Permission denied");
  fs::permissions(temporary.path(), fs::perms::owner_all);
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

TEST(WriteFolder, LeavesNoNewFolderBehindAfterAnError) {
  const TemporaryFolder temporary;
  const std::string too_long(300, 'x');
  const std::string error = error_of([&] {
    write_folder(temporary.path() / "a" / "b", {{"first", "1"}, {too_long, "2"}});
  });
  EXPECT_EQ(error.rfind("3 ", 0), 0u) << error;
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

TEST(WriteFolder, FollowsALinkToAFolder) {
  const TemporaryFolder temporary;
  fs::create_directory(temporary.path() / "real");
  fs::create_symlink("real", temporary.path() / "link");
  write_folder(temporary.path() / "link", {{"a", "1"}});
  EXPECT_TRUE(fs::is_symlink(temporary.path() / "link"));
  EXPECT_EQ(read_file(temporary.path() / "real" / "a"), "1");
}

TEST(WriteFolder, NamesArePlain) {
  for (const std::string name : {"", "..", ".hidden", "a/b"}) {
    EXPECT_EQ(error_of([&] {
                write_folder("unused", {{name, "1"}});
              }),
              "70 write_folder: expected a file name, got \"" + name + "\"");
  }
}

TEST(StagingFolder, TakesAFreeName) {
  const TemporaryFolder temporary;
  const detail::StagingFolder first(temporary.path() / "s-");
  {
    const detail::StagingFolder second(temporary.path() / "s-");
    EXPECT_NE(first.path(), second.path());
    EXPECT_EQ(names_in(temporary.path()).size(), 2u);
  }
  EXPECT_EQ(names_in(temporary.path()).size(), 1u);
}

}  // namespace
}  // namespace soliton
