// What host and kernel tell each other while a launch runs, beside the tokens.
#pragma once

#include <algorithm>
#include <chrono>

#include "layout/launch.h"

namespace soliton {

struct Signals {
  StallReport stall;
  uint32_t stop_request;
};

constexpr std::chrono::microseconds kIdlePause{20};  // between looks at the records

/// The same in emulation, where looking takes the processor from the kernel: an eighth of what has been waited, so that
/// it hardly delays what waits.
inline std::chrono::nanoseconds emulated_idle_pause(std::chrono::nanoseconds waited) {
  constexpr std::chrono::nanoseconds kLongest = std::chrono::milliseconds(1);
  return std::clamp<std::chrono::nanoseconds>(waited / 8, kIdlePause, kLongest);
}

}  // namespace soliton
