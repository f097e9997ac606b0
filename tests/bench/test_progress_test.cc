// Where soliton-bench says which test it is at.
#include "runtime/bench/test_progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace soliton {
namespace {

TEST(TestProgress, NamesTestAndRepeat) {
  int reads = -1;
  int writes = -1;
  const winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::openpty(&reads, &writes, nullptr, nullptr, &size), 0);
  {
    TestProgress progress(2, writes);
    progress.begin("pp512");
    progress.repeat(0, 5);  // too soon for another one
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    progress.repeat(1, 5);
    progress.begin("tg128 @ d128");
  }
  ::close(writes);  // so that reads end
  std::string shown;
  std::array<char, 256> piece;
  for (ssize_t count; (count = ::read(reads, piece.data(), piece.size())) > 0;)
    shown.append(piece.data(), static_cast<size_t>(count));
  const std::string clear = "\r\x1b[K";
  EXPECT_EQ(shown,
            clear + "[1/2] pp512" + clear + "[1/2] pp512: 1 of 5" + clear + "[2/2] tg128 @ d128" + clear);
  ::close(reads);
}

}  // namespace
}  // namespace soliton
