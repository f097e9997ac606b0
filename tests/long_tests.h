// Whether tests run at full length: with every feed, seed and size, not only those that find what is to be found.
#pragma once

#include <cstdlib>
#include <string>

namespace soliton {

/// True where SOLITON_LONG_TESTS is 1, as `./dev test --long` sets it.
inline bool long_tests() {
  const char* value = std::getenv("SOLITON_LONG_TESTS");
  return value != nullptr && std::string(value) == "1";
}

}  // namespace soliton
