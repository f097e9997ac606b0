#include "models/printing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "temporary_folder.h"

namespace soliton {
namespace {

/// stderr elsewhere, for as long as it exists.
class Redirected {
 public:
  explicit Redirected(const char* path) : before_(::dup(STDERR_FILENO)) {
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(fd, STDERR_FILENO);
    ::close(fd);
  }
  explicit Redirected(int fd) : before_(::dup(STDERR_FILENO)) { ::dup2(fd, STDERR_FILENO); }
  ~Redirected() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }

 private:
  int before_;
};

std::string source_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Printing, LinesThatAreLostAreCountedAndSaidOnce) {
  const TemporaryFolder folder;
  {
    const Redirected lost("/dev/full");
    say("one");
    say("{}", 2);
  }
  const std::filesystem::path log = folder.path() / "log";
  {
    const Redirected found(log.c_str());
    say("three");
    say("four");
  }
  EXPECT_EQ(source_text(log), "[ 2 lines before this could not be written ]\nthree\nfour\n");
}

TEST(Printing, APipeThatNobodyReadsHoldsNobodyUp) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  const std::string much(1 << 20, 'x');
  EXPECT_GT(::write(ends[1], much.data(), much.size()), 0);
  ::fcntl(ends[1], F_SETFL, 0);  // writing waits from here on
  const auto start = std::chrono::steady_clock::now();
  {
    const Redirected full(ends[1]);
    say("lost");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  ::close(ends[0]);
  ::close(ends[1]);
  const TemporaryFolder folder;
  const Redirected found((folder.path() / "log").c_str());
  say("found");
  EXPECT_EQ(source_text(folder.path() / "log"), "[ 1 line before this could not be written ]\nfound\n");
}

}  // namespace
}  // namespace soliton
