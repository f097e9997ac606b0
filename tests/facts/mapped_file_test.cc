// Files that users bring, and what is there in their stead.
#include "models/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

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

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));
constexpr size_t kPages = 64;

/// Files that are cut short while they are mapped.
class CutFile : public MappedFileTest {
 protected:
  fs::path write_pages(const std::string& name = "cut") {
    return write(name, std::string(kPages * kPage, 'x'));
  }
  static size_t zeros_of(const MappedFile& file) {
    return static_cast<size_t>(std::count(file.text().begin(), file.text().end(), '\0'));
  }
};

TEST_F(CutFile, ReadsAsZerosAndIsRefusedAfterwards) {
  const fs::path path = write_pages();
  const MappedFile file = MappedFile::open(path);
  file.check_whole();
  constexpr size_t kLeft = 5;
  fs::resize_file(path, kLeft * kPage);
  EXPECT_EQ(zeros_of(file), (kPages - kLeft) * kPage);
  EXPECT_EQ(file.text().front(), 'x');
  expect_error([&] { file.check_whole(); }, ExitCode::kBadFile,
               fmt::format("cut: cut short while it was read: expected {} bytes, got {}; download it again",
                           kPages * kPage, kLeft * kPage));
}

// Within the last page that is left no signal tells of it.
TEST_F(CutFile, IsRefusedIfItLosesAByte) {
  const fs::path path = write_pages();
  const MappedFile file = MappedFile::open(path);
  fs::resize_file(path, kPages * kPage - 1);
  EXPECT_EQ(zeros_of(file), 1u);
  expect_error([&] { file.check_whole(); }, ExitCode::kBadFile, "cut short while it was read");
}

TEST_F(CutFile, IsRefusedIfItIsWholeAgain) {
  const fs::path path = write_pages();
  const MappedFile file = MappedFile::open(path);
  fs::resize_file(path, 0);
  EXPECT_EQ(zeros_of(file), kPages * kPage);
  write_pages();
  expect_error([&] { file.check_whole(); }, ExitCode::kBadFile,
               fmt::format("cut: changed while it was read, or its disk fails: expected {} bytes throughout",
                           kPages * kPage));
}

TEST_F(CutFile, ManyThreadsReadOnWhileItIsCut) {
  const fs::path path = write_pages();
  const MappedFile file = MappedFile::open(path);
  constexpr int kThreads = 8;
  std::atomic<int> num_reading{0};
  std::atomic<bool> is_cut{false};
  std::vector<std::jthread> threads;
  std::vector<size_t> zeros(kThreads);
  for (size_t& each : zeros) {
    threads.emplace_back([&] {
      ++num_reading;
      bool is_last = false;
      do {
        is_last = is_cut;
        each = zeros_of(file);
      } while (!is_last);
    });
  }
  while (num_reading < kThreads) std::this_thread::yield();
  fs::resize_file(path, kPage);
  is_cut = true;
  threads.clear();
  EXPECT_EQ(zeros, std::vector<size_t>(kThreads, (kPages - 1) * kPage));
  expect_error([&] { file.check_whole(); }, ExitCode::kBadFile, "cut short while it was read");
}

TEST_F(CutFile, IsNoOtherFilesFault) {
  const fs::path path = write_pages();
  const MappedFile whole = MappedFile::open(write_pages("whole"));
  {
    const MappedFile file = MappedFile::open(path);
    fs::resize_file(path, 1);
    EXPECT_EQ(zeros_of(file), kPages * kPage - 1);
  }
  const MappedFile next = MappedFile::open(write_pages("next"));
  for (const MappedFile* file : {&whole, &next}) {
    EXPECT_EQ(zeros_of(*file), 0u);
    file->check_whole();
  }
}

TEST_F(CutFile, IsSaidWhateverItsReaderSays) {
  const fs::path path = write_pages();
  const auto complain = [](const MappedFile& file) -> int { throw bad_file(file.path(), "not valid JSON"); };
  const MappedFile file = MappedFile::open(path);
  EXPECT_EQ(file.read([] { return 7; }), 7);
  expect_error([&] { file.read([&] { return complain(file); }); }, ExitCode::kBadFile, "cut: not valid JSON");
  fs::resize_file(path, 1);
  expect_error([&] { file.read([] { return 7; }); }, ExitCode::kBadFile, "cut short while it was read");
  expect_error([&] { file.read([&] { return complain(file); }); }, ExitCode::kBadFile,
               "cut short while it was read");
}

TEST_F(CutFile, OthersStillEndTheProcess) {
  const fs::path path = write_pages();
  const MappedFile file = MappedFile::open(path);
  EXPECT_DEATH(raise(SIGBUS), "");
  const auto read_unwatched = [&] {
    const int descriptor = ::open(path.c_str(), O_RDONLY);
    const void* const memory = ::mmap(nullptr, kPages * kPage, PROT_READ, MAP_PRIVATE, descriptor, 0);
    fs::resize_file(path, 1);
    return zeros_of(file) + static_cast<const volatile char*>(memory)[kPage];
  };
  EXPECT_DEATH(read_unwatched(), "");
}

}  // namespace
}  // namespace soliton
