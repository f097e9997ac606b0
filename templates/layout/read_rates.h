// How fast the kernels that only read, and stand beside the decode kernels of a library, read device memory.
#pragma once

#include <algorithm>

namespace soliton {

/// Bytes per second of the kernels in primitives/stream.cuh; 0: the target has no such kernel.
struct ReadRates {
  double bulk_ring = 0;   // one ring a CTA, filled by bulk copies: compute capability 9.0 and up
  double warp_rings = 0;  // a ring a warp, filled by copies of 16 bytes a lane

  /// S, the ceiling that decoding is measured against: what the better one reads. 0 in emulation.
  constexpr double best() const { return std::max(bulk_ring, warp_rings); }
};

}  // namespace soliton
