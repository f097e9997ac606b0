// Progress: the text of the bar, silence away from terminals, and counting from several threads.
#include "runtime/program/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace soliton {
namespace {

std::string read_available(int fd) {
  std::string text(4096, '\0');
  const ssize_t size = ::read(fd, text.data(), text.size());
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

TEST(Progress, LineShowsRateAndRemainingTime) {
  EXPECT_EQ(progress_line("Weights", 4'000'000'000, 16'000'000'000, 2.0, 80),
            "Weights [========>                       ]  25% 4.00/16.00 GB 2.0 GB/s 0:06 left");
  EXPECT_EQ(progress_line("Weights", 1, 101, 1.0, 45), "Weights   0% 0.00/0.00 GB 0.0 MB/s 1:40 left");
  EXPECT_EQ(progress_line("Weights", 1, 101, 1.0, 40), "Weights   0%");
  EXPECT_NE(progress_line("W", 1, 7201, 1.0, 80).find(" 2:00:00 left"), std::string::npos);
}

TEST(Progress, WhatWasThereBeforeTookNoTime) {
  EXPECT_EQ(progress_line("D", 3'000'000'000, 4'000'000'000, 100.0, 80, 2'000'000'000),
            "D [============================>         ]  75% 3.00/4.00 GB 10.0 MB/s 1:40 left");
  EXPECT_EQ(progress_line("D", 1, 101, 1.0, 45, 1), "D [>             ]   0% 0.00/0.00 GB 0.0 MB/s")
      << "nothing came yet";
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  Progress progress("D", 4'000'000'000, ends[1]);
  progress.add_present(2'000'000'000);
  progress.take_back(2'000'000'000);
  EXPECT_EQ(progress.done_bytes(), 0u);
  progress.add(4'000'000'000);
  progress.note("a line");
  progress.finish();
  EXPECT_EQ(read_available(ends[0]).substr(0, 20), "a line\nD: 4.00 GB in");
  close(ends[0]);
  close(ends[1]);
}

TEST(Progress, LineFitsAnyWidthAndAnyNumbers) {
  constexpr uint64_t kMax = ~uint64_t{0};
  for (const uint64_t done : {uint64_t{0}, uint64_t{1}, kMax / 2, kMax}) {
    for (const uint64_t total : {uint64_t{0}, uint64_t{1}, kMax}) {
      for (int columns = -1; columns < 200; ++columns) {
        const std::string line = progress_line("Label", done, total, columns % 2, columns);
        EXPECT_LE(line.size(), static_cast<size_t>(std::max(columns, 0)));
      }
    }
  }
}

TEST(Progress, PipeGetsOneFinalLine) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  {
    Progress progress("Weights", 2'000'000'000, ends[1]);
    progress.add(2'000'000'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    progress.add(0);
    EXPECT_EQ(read_available(ends[0]), "");
    progress.finish();
    progress.finish();
  }
  const std::string text = read_available(ends[0]);
  EXPECT_EQ(text.substr(0, 20), "Weights: 2.00 GB in ");
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  close(ends[0]);
  close(ends[1]);
}

TEST(Progress, TerminalGetsABarThatIsTakenAwayOnFailure) {
  const int controller = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  if (controller < 0 || grantpt(controller) != 0 || unlockpt(controller) != 0)
    GTEST_SKIP() << "no terminals here";
  const int terminal = open(ptsname(controller), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  {
    Progress progress("Weights", 100, terminal);
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    progress.add(50);
    progress.add(1);  // too soon to draw again
    EXPECT_EQ(read_available(controller).substr(0, 13), "\r\x1b[KWeights [");
  }
  EXPECT_EQ(read_available(controller), "\r\x1b[K");
  close(terminal);
  close(controller);
}

TEST(Progress, CountsFromManyThreads) {
  const int nowhere = open("/dev/null", O_WRONLY);
  Progress progress("Weights", 40000, nowhere);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&progress] {
      for (int k = 0; k < 10000; ++k) progress.add(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(progress.done_bytes(), 40000u);
  close(nowhere);
}

}  // namespace
}  // namespace soliton
