// Suites with a case for each of many kernels, some of which are for long runs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "long_tests.h"

namespace soliton {

/// Of kernels that short runs have too, the cases of a suite that only long runs do: what instances of templates and which
/// plans they see, others of the suite, or of a suite that compares as much, see too. See tests/README.md, Kernels of short
/// runs.
struct LongCases {
  std::string_view suite;
  std::vector<std::string_view> kernels;
};
inline const std::vector<LongCases> kLongCases = {
    {"Decode",
     {"after-3-all",
      "broad-2-rows8",
      "broad-4-rows64",
      "centred-3-all",
      "group7-4-rows32",
      "int4-3",
      "int4-bias-3-all",
      "int4-ordered-3-all",
      "int4-zeros-2-rows8",
      "int4-zeros-3-rows64",
      "int8-3-all",
      "micro-1-rows8",
      "micro-3",
      "micro-3-counter",
      "micro-3-rows8",
      "micro-6",
      "mixture-3",
      "mixture-4-rows8",
      "mixture-sinks-5",
      "narrow96-5",
      "norm-bias-3-all",
      "norm128-4-all",
      "plain-11-wide",
      "plain-2-rows128",
      "plain-3-bytes",
      "plain-3-rows64",
      "plain-4-all",
      "plain-4-rows8",
      "plain-4-rows8-lanes",
      "plain-4-split",
      "variant-4-all"}},
    {"LaunchLimit", {"plain-4-split-lanes"}},
    {"Race",
     {"broad-4-rows64", "group7-4", "group7-4-rows32", "group8-6-split", "int4-3", "int4-zeros-4", "micro-1",
      "micro-3", "micro-3-counter", "micro-3-rows8", "micro-6", "narrow96-5", "norm128-4-all",
      "norm64-bias-5-counter", "after-5-counter", "plain-2-rows128", "plain-4-rows8", "plain-4-split",
      "plain-4-split-lanes"}},
    {"SampledRow", {"micro-17", "micro-3", "micro-3-counter", "plain-4-split-lanes"}},
    {"SampledTree", {"plain-3-rows64"}},
    {"Tree",
     {"biases-3-all", "broad-4-rows64", "int4-kinds-3-all", "int4-mixture-4-rows8", "int4-zeros-3-rows64",
      "micro-3-rows8", "mixture-4-rows8", "plain-3-rows64", "plain-3-rows64-lanes", "plain-4-all",
      "plain-4-rows8", "plain-4-rows8-lanes", "scaled-4-all", "turned-3-all", "variant-4-all"}},
    {"TreeBits", {"int4-mixture-4-rows8", "mixture-4-rows8"}},
    {"TreeDraft", {"group7-4-rows32", "plain-2-rows128", "plain-3-rows64"}},
    {"TreeLong", {"plain-2-rows128", "plain-4-rows8"}},
    {"TreeOfAnyShape", {"plain-2-rows128"}},
    {"TreeRace",
     {"group7-4-rows32", "int4-mixture-4-rows8", "int4-ordered-3-all", "int4-zeros-3-rows64", "micro-3-rows8",
      "plain-1-rows8-cards4"}},
    {"Verify", {"int4-zeros-4", "mixture-wide-7"}},
    {"VerifyFaults", {"after-3-all", "int4-3", "int4-bias-3-all", "norm128-4-all"}},
};

/// Is the kernel built in this run? Some are in long ones alone, see tests/CMakeLists.txt.
inline bool is_built(std::string_view kernel) {
  const std::string_view others = SOLITON_LONG_KERNELS;
  return long_tests() || others.find(" " + std::string(kernel) + " ") == std::string_view::npos;
}

/// In SetUp() of suites whose cases name a kernel.
inline void skip_unless_built(std::string_view kernel) {
  if (!is_built(kernel)) GTEST_SKIP() << kernel << ": in long runs only";
}

/// Cases of kernels. In short runs those are skipped whose kernel is not built, and those of kLongCases.
class KernelCases : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!long_tests() && !is_short()) GTEST_SKIP() << GetParam() << ": in long runs only";
  }

 private:
  static bool is_short() {
    const std::string_view name = GetParam();
    const std::string suite = testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
    const auto cases =
        std::ranges::find(kLongCases, std::string_view(suite).substr(suite.find('/') + 1), &LongCases::suite);
    return is_built(name) && (cases == kLongCases.end() || std::ranges::count(cases->kernels, name) == 0);
  }
};

}  // namespace soliton
