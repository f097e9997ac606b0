// What host and kernel tell each other while a launch runs, beside the tokens.
#pragma once

#include <chrono>

#include "layout/launch.h"

namespace soliton {

struct Signals {
  StallReport stall;
  uint32_t stop_request;
};

constexpr std::chrono::microseconds kIdlePause{20};  // between looks at the records

}  // namespace soliton
