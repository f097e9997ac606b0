// What is kept of kernels, and what becomes of it when disks, users and signals are unkind.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "models/kept_file.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/scratch_folder.h"
#include "runtime/make/cache.h"
#include "tools/make_kernel_fixture.h"

namespace soliton {
namespace {

using KernelCache = MakeKernel;

constexpr size_t kZeros = 40 << 10;

TEST_F(KernelCache, DamagedKernelsAreMadeAgainAndNeverOpened) {
  use_copying_compiler();
  const fs::path path = make();
  const std::string whole = read_text(path);
  std::string zeros = whole;
  zeros.replace(whole.size() / 4, kZeros, kZeros, '\0');  // SIGSEGV once it is opened
  std::string bit = whole;
  bit[bit.size() / 2] ^= 1;
  const std::string unsealed = read_text(kMicroKernel);
  int num_made = 1;
  for (const std::string& damaged : {std::string(), std::string("text"), whole.substr(0, whole.size() / 2),
                                     whole.substr(0, whole.size() - 1), whole + "\n", zeros, bit, unsealed}) {
    write_text(path, damaged);
    lines_.clear();
    EXPECT_EQ(make(), path);
    EXPECT_EQ(read_text(path), whole);
    ASSERT_EQ(lines_.size(), 2u);
    EXPECT_EQ(lines_[1], "It is made anew: " + path.string() + " is damaged");
    EXPECT_EQ(num_calls(), ++num_made);
  }
  EXPECT_EQ(make(), path);
  EXPECT_EQ(num_calls(), num_made);
}

TEST_F(KernelCache, WhatOthersMayWriteIsRefused) {
  use_copying_compiler();
  const fs::path path = make();
  EXPECT_EQ(fs::status(request_.cache).permissions(), fs::perms::owner_all);
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  expect_refused(ExitCode::kNotFound,
                 path.string() + ": expected a file that only its owner may write, got permissions 746");
  fs::permissions(path, fs::perms::others_write, fs::perm_options::remove);
  fs::permissions(request_.cache, fs::perms::group_write, fs::perm_options::add);
  expect_refused(ExitCode::kNotFound,
                 request_.cache.string() + ": expected a folder that only its owner may write");
  fs::remove(path);
  expect_refused(ExitCode::kNotFound,
                 request_.cache.string() + ": expected a folder that only its owner may write");
  fs::permissions(request_.cache, fs::perms::all | fs::perms::sticky_bit);
  EXPECT_EQ(make(), path);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(path.c_str(), 12345, 0), 0);
  expect_refused(ExitCode::kNotFound,
                 path.string() + ": expected a file of user 0 or root, got one of user 12345");
}

TEST_F(KernelCache, TheUsersMaskMakesNoKernelThatOthersMayWrite) {
  const mode_t before = ::umask(0);
  use_compiler(fmt::format(fmt::runtime(kCopies), kMicroKernel) + "; chmod 777 \"$last\"");
  const fs::path path = make();
  ::umask(before);
  EXPECT_NO_THROW(check_trusted(path));
  EXPECT_EQ(make(), path);
  EXPECT_EQ(num_calls(), 1);
}

TEST_F(KernelCache, ClearsAwayWhatAKilledMakerLeft) {
  use_copying_compiler();
  create_cache(request_.cache);
  const fs::path left = request_.cache / ".making-left";
  fs::create_directory(left);
  write_text(left / "kernel.cu", "");
  const ScratchFolder in_making(request_.cache / kMakingPrefix);
  make();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(in_making.path()));
}

// The script waits; its child would go on without it.
TEST_F(KernelCache, AnInterruptedMakerLeavesNothingAndNobody) {
  use_compiler(fmt::format("sleep 60 & echo $! > '{}'; wait", (folder_.path() / "child").string()));
  for (const int end : {SIGINT, SIGTERM, SIGKILL}) {
    SCOPED_TRACE(end);
    fs::remove(folder_.path() / "child");
    const pid_t maker = ::fork();
    if (maker == 0) {
      try {
        make();
      } catch (const Error&) {
      }
      ::_exit(0);
    }
    const auto wait_until = [](const auto& is_true) {
      for (int i = 0; i < 3000 && !is_true(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return is_true();
    };
    ASSERT_TRUE(wait_until([&] { return read_text(folder_.path() / "child").ends_with("\n"); }));
    const pid_t child = std::stoi(read_text(folder_.path() / "child"));
    EXPECT_FALSE(cached().empty());
    ::kill(maker, end);
    ::waitpid(maker, nullptr, 0);
    EXPECT_TRUE(wait_until([&] { return ::kill(child, 0) != 0; }));
    EXPECT_TRUE(wait_until([&] { return cached().empty(); }));
  }
}

TEST_F(KernelCache, AFullDiskIsNamed) {
  use_compiler(
      "echo '/usr/bin/ld: final link failed: No space left on device'; "
      "echo 'collect2: error: ld returned 1 exit status'; exit 1");
  expect_refused(ExitCode::kNotFound, ": expected room to make the kernel of micro, got a full disk with ");
  EXPECT_TRUE(cached().empty());
}

// A disk of 1 MB, which a user may mount for itself, and a linker that has 4 MB to write there.
TEST_F(KernelCache, ADiskThatIsReallyFullIsNamed) {
  use_compiler("for last; do :; done; echo 'int x[1 << 20] = {1};' | c++ -shared -o \"$last\" -x c++ -");
  const fs::path disk = folder_.path() / "disk";
  fs::create_directory(disk);
  write_text(folder_.path() / "try", fmt::format("mount -t tmpfs -o size=1m none '{0}' || exit 77\n"
                                                 "TMPDIR='{0}' XDG_CACHE_HOME='{0}' exec '{1}/soliton-chat' "
                                                 "'{2}/models/tiny-stories' --kv-bits 32 -p x -n 1\n",
                                                 disk.string(), SOLITON_BINARY_DIR, SOLITON_SOURCE_DIR));
  const std::string err = (folder_.path() / "err").string();
  const std::string command = "unshare -rm sh " + (folder_.path() / "try").string() + " 2> " + err;
  const int status = WEXITSTATUS(std::system(command.c_str()));
  const std::string said = read_text(err);
  if (status == 77 || said.starts_with("unshare: ")) GTEST_SKIP() << "no disk can be mounted: " << said;
  EXPECT_EQ(status, 3);
  EXPECT_NE(said.find(disk.string()), std::string::npos) << said;
  EXPECT_NE(said.find("expected room to make the kernel of tiny-stories, got a full disk with "),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace soliton
