// What a launch that went wrong says about its threads.
#pragma once

#include <string>
#include <vector>

#include "primitives/emulation/fibers.h"
#include "primitives/emulation/race_detector.h"

namespace soliton::emulation {

/// `what` is the first word: "deadlock". One line for each distinct (kind, step, phase), the longest wait
/// first.
std::string describe_waits(const char* what, const std::vector<Fiber>& fibers);

/// The waiting fiber that has waited longest, preferring those that say for what; null if none waits.
const Fiber* longest_waiting(const std::vector<Fiber>& fibers);

/// One line for what happened, one for each side.
std::string describe_race(const Race& race, const std::vector<Fiber>& fibers);

/// "CTA 1 thread 32 (last wait: page_full, step 0, phase 2, index 5)".
std::string describe_thread(const Fiber& fiber);

}  // namespace soliton::emulation
