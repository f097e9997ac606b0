// Norms of what a block gives, before it is added to the residual stream: who reads the stream next does both.
//
// The phase that ends a block publishes its output as it is, and the sum of squares of each tile behind it. Every CTA holds
// the whole stream, each consumer the columns that it reads, and adds to it alike: so nothing more is exchanged than
// where the stream itself is published.
#pragma once

#include "one_row/input.cuh"

namespace soliton::one_row {

/// The factor by which the output of a block is normed, out of the sums of squares of its tiles. Every warp works it out alike.
template <const KernelPlan& kPlan>
class BlockNorm {
 public:
  /// `output`: of the block.
  SOLITON_DEVICE BlockNorm(const float* output, int lane)
      : groups_(reinterpret_cast<const float4*>(output + kPlan.model.hidden)), lane_(lane) {}

  SOLITON_DEVICE void issue(bool works) {
    loads_.issue(address(), [&](int i) { return works && group(i) < kGroups; });
  }
  SOLITON_DEVICE bool retry(uint32_t tag) { return loads_.retry(address(), tag); }
  /// Collective.
  SOLITON_DEVICE float scale() const {
    float squares = 0.0f;
    SOLITON_UNROLL
    for (int i = 0; i < kLoads; ++i) {
      const float4 v = without_tag(loads_.value[i]);
      squares += (v.x + v.y) + (v.z + v.w);
    }
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) squares += shuffle_xor(squares, mask);
    return rsqrt_fast(squares / kPlan.model.hidden + kPlan.model.norm_epsilon);
  }

 private:
  static constexpr int kGroups = kPlan.model.hidden / kTileRows / 4;  // of 4 tiles
  static_assert(kGroups * kTileRows * 4 == kPlan.model.hidden, "sums of squares are whole loads");
  static constexpr int kLoads = ceil_divide(kGroups, kWarpLanes);

  SOLITON_DEVICE int group(int load) const { return load * kWarpLanes + lane_; }
  SOLITON_DEVICE auto address() const {
    return [this](int i) { return groups_ + group(i); };
  }

  const float4* groups_;
  int lane_;
  PolledLoads<float4, kLoads, kPlan> loads_;
};

/// Four neighbouring elements of the residual stream once the block's are added, by their norm's weights and factor.
SOLITON_DEVICE float4 add_block(const float4& stream, const float4& block, const float4& weights,
                                float scale) {
  return make_float4(fmaf(block.x * scale, weights.x, stream.x), fmaf(block.y * scale, weights.y, stream.y),
                     fmaf(block.z * scale, weights.z, stream.z), fmaf(block.w * scale, weights.w, stream.w));
}

}  // namespace soliton::one_row
