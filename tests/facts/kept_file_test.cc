#include "models/kept_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run_program.h"
#include "models/error.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

class KeptFile : public testing::Test {
 protected:
  fs::path path() const { return folder_.path() / "file"; }
  TemporaryFolder folder_;
};

TEST_F(KeptFile, IsReplacedWithItsPermissionsAndThroughLinks) {
  write_kept_file(path(), "one");
  EXPECT_EQ(read_text(path()), "one");
  fs::permissions(path(), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(path(), folder_.path() / "link");
  write_kept_file(folder_.path() / "link", "two");
  EXPECT_TRUE(fs::is_symlink(folder_.path() / "link"));
  EXPECT_EQ(read_text(path()), "two");
  EXPECT_EQ(fs::status(path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(folder_.files().size(), 2u);
}

TEST_F(KeptFile, IsAllThatMayBeReplaced) {
  for (const fs::path& place : {folder_.path(), folder_.path() / "no" / "file", fs::path("/dev/null")}) {
    EXPECT_THROW(write_kept_file(place, "x"), Error) << place;
  }
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(folder_.files().empty());
}

TEST_F(KeptFile, EveryDamageOfASealedOneIsSeen) {
  write_text(path(), "some content\nsoliton fnv1a64 0123456789abcdef\n");  // which may look like a seal
  EXPECT_FALSE(is_sealed(path()));
  seal_file(path());
  EXPECT_TRUE(is_sealed(path()));
  const std::string whole = read_text(path());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 4;
    write_text(path(), damaged);
    EXPECT_FALSE(is_sealed(path())) << i;
    if (i == 0) continue;
    write_text(path(), whole.substr(0, i));
    EXPECT_FALSE(is_sealed(path())) << i;
  }
  EXPECT_THROW(seal_file(folder_.path() / "absent"), Error);
}

TEST_F(KeptFile, FoldersAreTheirOwnersOnly) {
  const fs::path folder = folder_.path() / "a" / "b";
  const mode_t before = ::umask(0);
  make_private_folder(folder);
  make_private_folder(folder);
  ::umask(before);
  for (const fs::path& each : {folder, folder.parent_path()}) {
    EXPECT_EQ(fs::status(each).permissions(), fs::perms::owner_all);
    EXPECT_NO_THROW(check_trusted(each));
  }
  write_text(path(), "");
  EXPECT_THROW(make_private_folder(path()), Error);
  EXPECT_THROW(make_private_folder(path() / "x"), Error);
  EXPECT_THROW(check_trusted(folder / "absent"), Error);
}

}  // namespace
}  // namespace soliton
