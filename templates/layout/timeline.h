// What a kernel compiled with SOLITON_TIMELINE writes down about one step of a launch: when each warp of each
// CTA passed which point of each phase. Without it nothing of this is compiled in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout/target.h"

namespace soliton {

#if defined(SOLITON_TIMELINE)
constexpr bool kTimeline = true;
#else
constexpr bool kTimeline = false;
#endif

/// One warp in one phase. Points in time are device nanoseconds modulo 2^32, the same clock in all CTAs.
struct PhaseRecord {
  uint32_t begin;  // the warp is done with the phase before
  uint32_t
      input;  // consumer: it has its slice of the input, or the first chunk of it; epilogue: all have all
  uint32_t first;    // consumer: the first page has landed; epilogue: the first tile or unit is there
  uint32_t last;     // consumer: it has handed over its last tile; epilogue: the last output is published
  uint32_t end;      // the warp is done with the phase
  uint32_t waited;   // ns, in all: consumer for pages, epilogue for tiles, producer for free slots
  uint32_t limited;  // ns, in all: producer held back by the window in flight, epilogue merging the parts of
                     // others
  uint32_t pages;    // producer: copies issued; consumer: pages in the ring when it had its input
};

/// Warps that keep records: all but the last, which watches the others.
constexpr int timeline_warps(int threads_per_cta) {
  return threads_per_cta / 32 - 1;
}

/// Records lie as [phase of the step][cta][warp]: consumer warps, then producers, then epilogue.
SOLITON_HOST_DEVICE constexpr size_t timeline_index(int phase, int cta, int warp, int num_ctas,
                                                    int num_warps) {
  return (static_cast<size_t>(phase) * num_ctas + cta) * num_warps + warp;
}

}  // namespace soliton
