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

/// One warp in one phase. Points in time are device nanoseconds modulo 2^32, the same clock in all CTAs. A worker, of several
/// rows, records points in time alone, and no first page.
struct PhaseRecord {
  /// The warp is done with the phase before.
  uint32_t begin;
  /// Consumer: it has its slice of the input, or the first chunk of it. Epilogue: all have all. Worker: all CTAs have ended
  /// the phase before.
  uint32_t input;
  /// Consumer: the first page has landed. Epilogue: the first tile or unit is there.
  uint32_t first;
  /// Consumer: it has handed over its last tile. Epilogue: the last output is published. Worker: its first products are
  /// summed, or it is through its items of attention.
  uint32_t last;
  /// The warp is done with the phase.
  uint32_t end;
  /// Nanoseconds in all: consumer for pages, epilogue for tiles, producer for free slots.
  uint32_t waited;
  /// Nanoseconds in all: producer held back by the window in flight, epilogue merging the parts of others.
  uint32_t limited;
  /// Producer: copies issued. Consumer: pages in the ring when it had its input.
  uint32_t pages;
};

/// Records lie as [phase of the step][cta][warp], of the warps that work: consumers or workers, then producers, then the
/// epilogue or the input loader, of which the last keeps none. Kernels of several rows begin with the tokens' embedding.
SOLITON_HOST_DEVICE constexpr size_t timeline_index(int phase, int cta, int warp, int num_ctas,
                                                    int num_warps) {
  return (static_cast<size_t>(phase) * num_ctas + cta) * num_warps + warp;
}

}  // namespace soliton
