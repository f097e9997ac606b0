// Sums of squares of tiles, or sums, which stand behind the vector that the tiles are of: for norms whose vector is shared out among CTAs
// that do not exchange what it is normed by otherwise.
#pragma once

#include "one_row/input.cuh"

namespace soliton::one_row {

/// Those of `kGroups` times four tiles, on their way to a warp.
template <const KernelPlan& kPlan, int kGroups>
class TileSquares {
 public:
  SOLITON_DEVICE TileSquares(const float* squares, int lane)
      : groups_(reinterpret_cast<const float4*>(squares)), lane_(lane) {}

  SOLITON_DEVICE void issue(bool works) {
    loads_.issue(address(), [&](int i) { return works && group(i) < kGroups; });
  }
  SOLITON_DEVICE bool retry(uint32_t tag) { return loads_.retry(address(), tag); }

 protected:
  static constexpr int kLoads = ceil_divide(kGroups, kWarpLanes);

  SOLITON_DEVICE int group(int load) const { return load * kWarpLanes + lane_; }
  /// Of the four tiles of a group.
  SOLITON_DEVICE float sum(int load) const {
    const float4 v = without_tag(loads_.value[load]);
    return (v.x + v.y) + (v.z + v.w);
  }

 private:
  SOLITON_DEVICE auto address() const {
    return [this](int i) { return groups_ + group(i); };
  }

  const float4* groups_;
  int lane_;
  PolledLoads<float4, kLoads, kPlan> loads_;
};

}  // namespace soliton::one_row
