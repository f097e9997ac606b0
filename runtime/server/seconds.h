// Times as numbers that users see.
#pragma once

#include <chrono>

namespace soliton {

inline double seconds_between(std::chrono::steady_clock::time_point from,
                              std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace soliton
