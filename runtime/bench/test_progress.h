// Which test soliton-bench is at, on stderr if that is a terminal.
#pragma once

#include <string>

#include "runtime/program/status_line.h"

namespace soliton {

/// "[2/7] pp4096: 3 of 5", drawn at once where a test begins.
class TestProgress {
 public:
  explicit TestProgress(int num_tests, int fd = 2) : line_(fd), num_tests_(num_tests) {}

  /// The next test.
  void begin(const std::string& test);
  /// Of the test's repeats so many are done.
  void repeat(int done, int num_repeats);
  /// All are done: before anything else is written.
  void clear() { line_.clear(); }

 private:
  StatusLine line_;
  int num_tests_;
  int num_begun_ = 0;
  std::string test_;
};

}  // namespace soliton
