// Suites with a case for each of many kernels, some of which are for long runs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "long_tests.h"

namespace soliton {

/// Cases of kernels. In short runs those are skipped whose kernel is built in long ones alone, see tests/CMakeLists.txt, and
/// those of the kernels in `long_cases`, whose choices other cases of the suite share.
class KernelCases : public testing::TestWithParam<const char*> {
 protected:
  explicit KernelCases(std::vector<std::string> long_cases = {}) : long_cases_(std::move(long_cases)) {}

  void SetUp() override {
    if (long_tests()) return;
    const std::string name = GetParam();
    const bool is_built = std::string(SOLITON_LONG_KERNELS).find(" " + name + " ") == std::string::npos;
    const bool is_long = std::find(long_cases_.begin(), long_cases_.end(), name) != long_cases_.end();
    if (!is_built || is_long) GTEST_SKIP() << name << ": in long runs only";
  }

 private:
  const std::vector<std::string> long_cases_;
};

}  // namespace soliton
