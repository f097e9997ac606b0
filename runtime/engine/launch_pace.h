// How many steps a launch has where the driver ends kernels that run for seconds, because the card drives a display:
// as many as take a fifth of a second, by the steps before, so that the display stays smooth too. A step is never
// divided.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

namespace soliton {

class LaunchPace {
 public:
  /// Where there is a limit, a launch lasts at most this long.
  static constexpr double kMaxSeconds = 0.25;
  /// What a launch is planned for: a step takes longer than those before as the cache fills and clocks fall.
  static constexpr double kPlannedSeconds = 0.8 * kMaxSeconds;

  /// Without a limit.
  LaunchPace() = default;
  LaunchPace(bool has_limit, int num_kernels) : steps_(has_limit ? 2 * num_kernels : 0) {}

  /// Steps of the next launch of a kernel, at least one. Steps that choose a token take longer than those that only
  /// fill the cache. Of steps that have not been timed yet a launch has one.
  int max_steps(int kernel, bool chooses) const {
    if (steps_.empty()) return std::numeric_limits<int>::max();
    const Steps& steps = steps_[2 * kernel + chooses];
    if (steps.seconds <= 0) return 1;
    const int allowed = static_cast<int>(std::min(kPlannedSeconds / steps.seconds, 1e6));
    return std::clamp(allowed, 1, kGrowth * steps.count);
  }

  /// A launch of so many steps has lasted so long.
  void took(int kernel, bool chooses, int num_steps, double seconds) {
    if (steps_.empty()) return;
    Steps& steps = steps_[2 * kernel + chooses];
    steps = {.count = std::max(steps.count, num_steps), .seconds = seconds / num_steps};
  }

 private:
  // So that one launch that seemed quick, to a clock that was set or a host that was suspended, does no harm.
  static constexpr int kGrowth = 8;

  struct Steps {
    int count = 0;       // of the longest launch so far
    double seconds = 0;  // a step of the last one; 0: not timed yet
  };

  std::vector<Steps> steps_;  // [kernel][chooses]; empty: no limit
};

}  // namespace soliton
