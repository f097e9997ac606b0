// The in-kernel timeline: marks that cost nothing unless the kernel is compiled with SOLITON_TIMELINE.
#pragma once

#include "layout/page.h"
#include "layout/timeline.h"
#include "primitives/primitives.h"

namespace soliton {

/// Sums up what one warp spends in one kind of wait within a phase.
class WaitClock {
 public:
  SOLITON_DEVICE void begin() {
    if constexpr (kTimeline) begin_ = time_ns();
  }
  SOLITON_DEVICE void end() {
    if constexpr (kTimeline) total_ += time_ns() - begin_;
  }
  /// The sum since the last call.
  SOLITON_DEVICE uint32_t take() {
    const uint32_t total = total_;
    total_ = 0;
    return total;
  }

 private:
  uint32_t begin_ = 0;
  uint32_t total_ = 0;
};

/// Writes a number into this warp's record of the current phase, if this step is the one recorded. `Context` is
/// that of a kernel of one or of several rows.
template <class Context>
SOLITON_DEVICE void note(const Context& context, uint32_t PhaseRecord::*field, uint32_t value) {
  if constexpr (kTimeline) {
    if (context.step != context.params.timeline_step || context.lane != 0) return;
    const size_t index = timeline_index(context.phase, context.cta, thread_index() / kWarpLanes,
                                        Context::kNumCtas, Context::kNumWarps);
    store_global(&(context.params.timeline[index].*field), value);
  }
}

/// The same with the time.
template <class Context>
SOLITON_DEVICE void mark(const Context& context, uint32_t PhaseRecord::*field) {
  if constexpr (kTimeline) note(context, field, time_ns());
}

}  // namespace soliton
