// Files that users bring, and what is there in their stead.
#include "models/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "refusals.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

class MappedFileTest : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& content) {
    return temporary_.write(name, content);
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(MappedFileTest, MapsTheContent) {
  MappedFile file = MappedFile::open(write("a", "content"));
  const MappedFile moved = std::move(file);
  EXPECT_EQ(moved.text(), "content");
  EXPECT_EQ(moved.bytes().size(), 7u);
  EXPECT_EQ(moved.path(), (folder_ / "a").string());
}

TEST_F(MappedFileTest, RefusesWhatIsNoReadableFile) {
  const auto open = [&](const std::string& name) { return [=, this] { MappedFile::open(folder_ / name); }; };
  expect_error(open("absent"), ExitCode::kNotFound, "absent: no such file");
  expect_error(open("."), ExitCode::kNotFound, "expected a file, got a directory");
  expect_error(open(std::string("a\0b", 3)), ExitCode::kNotFound, "cannot be read");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  expect_error(open("pipe"), ExitCode::kNotFound, "expected a regular file");
  write("file", "x");
  expect_error(open("file/inside"), ExitCode::kNotFound, "cannot be read: Not a directory");
  write("empty", "");
  expect_error(open("empty"), ExitCode::kBadFile, "empty: the file is empty");
  write("pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n");
  expect_error(open("pointer"), ExitCode::kBadFile, "pointer: a git-LFS pointer, not the content");
}

TEST_F(MappedFileTest, RefusesWhatMayNotBeRead) {
  write("file", "x");
  fs::permissions(folder_ / "file", fs::perms::none);
  if (access((folder_ / "file").c_str(), R_OK) == 0) GTEST_SKIP() << "root reads everything";
  expect_error([&] { MappedFile::open(folder_ / "file"); }, ExitCode::kNotFound,
               "cannot be read: Permission denied");
}

}  // namespace
}  // namespace soliton
