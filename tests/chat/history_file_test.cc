// The file of typed lines: what is kept, for whom, and how much.
#include "runtime/chat/history_file.h"

#include <gtest/gtest.h>

#include "cli/run_program.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

class HistoryFileTest : public testing::Test {
 protected:
  fs::path path() const { return folder_.path() / "state" / "history"; }
  /// Puts a file of other programs there.
  void write(const std::string& text) const {
    fs::create_directories(path().parent_path());
    write_text(path(), text);
  }

  TemporaryFolder folder_;
};

constexpr fs::perms kOwnerOnly = fs::perms::owner_read | fs::perms::owner_write;

TEST_F(HistoryFileTest, KeepsLinesForTheOwnerOnly) {
  HistoryFile history(path());
  EXPECT_EQ(history.lines(), Lines{});
  EXPECT_FALSE(fs::exists(path().parent_path()));  // nothing before there is a line
  for (const char* line : {"one", "two", "two", "", "zwölf"}) EXPECT_FALSE(history.append(line));
  EXPECT_EQ(HistoryFile(path()).lines(), (Lines{"one", "two", "zwölf"}));
  EXPECT_EQ(fs::status(path()).permissions(), kOwnerOnly);
  EXPECT_EQ(fs::status(path().parent_path()).permissions(), fs::perms::owner_all);
  fs::permissions(path(), fs::perms::others_read, fs::perm_options::add);
  EXPECT_FALSE(history.append("three"));
  EXPECT_EQ(fs::status(path()).permissions(), kOwnerOnly);
}

TEST_F(HistoryFileTest, TakesLinesOfSeveralPrograms) {
  HistoryFile one(path());
  HistoryFile other(path());
  EXPECT_FALSE(one.append("a"));
  EXPECT_FALSE(other.append("b"));
  EXPECT_FALSE(one.append("c"));
  EXPECT_EQ(HistoryFile(path()).lines(), (Lines{"a", "b", "c"}));
}

TEST_F(HistoryFileTest, ReadsWhateverIsThere) {
  write("a\n\n\xff\xfe|b\nlast without an end");
  EXPECT_EQ(HistoryFile(path()).lines(), (Lines{"a", "\uFFFD\uFFFD|b", "last without an end"}));
  write("");
  EXPECT_EQ(HistoryFile(path()).lines(), Lines{});
  write(std::string(3 << 20, 'x'));
  EXPECT_EQ(HistoryFile(path()).lines(), Lines{});
  fs::remove_all(path());
  fs::create_directory(path());
  HistoryFile folder(path());
  EXPECT_EQ(folder.lines(), Lines{});
  EXPECT_TRUE(folder.append("x"));
}

TEST_F(HistoryFileTest, StaysOfASensibleSize) {
  for (const auto& [num_lines, num_left] :
       {std::pair(2 * kHistoryLines, 2 * kHistoryLines), std::pair(2 * kHistoryLines + 1, kHistoryLines)}) {
    SCOPED_TRACE(num_lines);
    std::string text;
    for (int i = 0; i < num_lines; ++i) text += std::to_string(i) + "\n";
    write(text);
    const HistoryFile history(path());
    ASSERT_EQ(history.lines().size(), static_cast<size_t>(kHistoryLines));
    EXPECT_EQ(history.lines().back(), std::to_string(num_lines - 1));
    const std::string after = read_text(path());
    EXPECT_EQ(std::count(after.begin(), after.end(), '\n'), num_left);
    EXPECT_EQ(folder_.files().size(), 2u);  // and its folder
  }
  EXPECT_EQ(fs::status(path()).permissions(), kOwnerOnly);
  // Many bytes in few lines: those of the last megabyte stay.
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(i) + std::string(20'000, 'x') + "\n";
  write(text);
  EXPECT_EQ(HistoryFile(path()).lines().back().substr(0, 3), "99x");
  EXPECT_LE(fs::file_size(path()), size_t{1} << 20);
  EXPECT_GT(fs::file_size(path()), size_t{1} << 19);
  HistoryFile history(path());
  EXPECT_FALSE(history.append(std::string(100'000, 'y')));
  EXPECT_EQ(HistoryFile(path()).lines().back().substr(0, 3), "99x");
}

TEST_F(HistoryFileTest, FollowsLinks) {
  fs::create_directory(path().parent_path());
  fs::create_symlink("/dev/null", path());
  HistoryFile nowhere(path());
  EXPECT_FALSE(nowhere.append("secret"));
  EXPECT_EQ(HistoryFile(path()).lines(), Lines{});
  fs::remove(path());
  std::string text;
  for (int i = 0; i < 3 * kHistoryLines; ++i) text += std::to_string(i) + "\n";
  write_text(folder_.path() / "elsewhere", text);
  fs::create_symlink(folder_.path() / "elsewhere", path());
  EXPECT_EQ(HistoryFile(path()).lines().size(), static_cast<size_t>(kHistoryLines));
  EXPECT_TRUE(fs::is_symlink(path()));
  EXPECT_LT(fs::file_size(folder_.path() / "elsewhere"), text.size());
}

TEST_F(HistoryFileTest, SaysWhyLinesAreNotKept) {
  HistoryFile history("/dev/null/soliton/history");
  EXPECT_EQ(history.append("x"), std::errc::not_a_directory);
}

}  // namespace
}  // namespace soliton
