// Whether tests run at full length: with every feed, seed and size, not only those that find what is to be found.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace soliton {

/// True where SOLITON_LONG_TESTS is 1, as `./dev test --long` sets it.
inline bool long_tests() {
  const char* value = std::getenv("SOLITON_LONG_TESTS");
  return value != nullptr && std::string(value) == "1";
}

}  // namespace soliton

/// First in a test that only long runs do. `instead`: what short ones see of it, or why they need not.
#define SOLITON_LONG_RUNS_ONLY(instead) \
  if (!soliton::long_tests()) GTEST_SKIP() << "in long runs only: " << (instead)
