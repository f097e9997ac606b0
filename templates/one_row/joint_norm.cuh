// Norms of all of q together, and of all of k: how those that attend, each to a few heads, learn of what all heads add up to.
#pragma once

#include "one_row/input.cuh"
#include "ops/head_norm.cuh"

namespace soliton::one_row {

/// The factors by which all of q and all of k are normed, out of the sums of squares of their tiles, which stand behind q, k and
/// v. Every warp that attends works them out alike. Of models that do not norm so it is nothing.
template <const KernelPlan& kPlan, bool kJoint = kPlan.model.joint_norm>
class JointNorm {
 public:
  SOLITON_DEVICE JointNorm(const float* /*input*/, int /*lane*/) {}
  SOLITON_DEVICE void issue(bool /*works*/) {}
  SOLITON_DEVICE bool retry(uint32_t /*tag*/) { return false; }
  SOLITON_DEVICE JointScales scales() const { return {}; }
};

template <const KernelPlan& kPlan>
class JointNorm<kPlan, true> {
 public:
  /// `input`: q | k | v.
  SOLITON_DEVICE JointNorm(const float* input, int lane)
      : groups_(reinterpret_cast<const float4*>(input + kPlan.model.qkv_rows())), lane_(lane) {}

  SOLITON_DEVICE void issue(bool works) {
    loads_.issue(address(), [&](int i) { return works && group(i) < kGroups; });
  }
  SOLITON_DEVICE bool retry(uint32_t tag) { return loads_.retry(address(), tag); }
  /// Collective.
  SOLITON_DEVICE JointScales scales() const {
    float q = 0.0f;
    float k = 0.0f;
    SOLITON_UNROLL
    for (int i = 0; i < kLoads; ++i) {
      const float4 v = without_tag(loads_.value[i]);
      const float sum = (v.x + v.y) + (v.z + v.w);
      (group(i) < kQueryGroups ? q : k) += sum;
    }
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
      q += shuffle_xor(q, mask);
      k += shuffle_xor(k, mask);
    }
    const auto scale = [](float squares, int heads) {
      return rsqrt_fast(squares / (heads * kPlan.model.head_dim) + kPlan.model.norm_epsilon);
    };
    return {scale(q, kPlan.model.num_heads), scale(k, kPlan.model.num_kv_heads)};
  }

 private:
  static constexpr int kHeadGroups = kPlan.model.head_dim / kTileRows / 4;  // of 4 tiles
  static_assert(kHeadGroups * kTileRows * 4 == kPlan.model.head_dim, "a head has whole groups");
  static constexpr int kQueryGroups = kPlan.model.num_heads * kHeadGroups;
  static constexpr int kGroups = kPlan.model.rotary_heads() * kHeadGroups;
  static constexpr int kLoads = ceil_divide(kGroups, kWarpLanes);

  SOLITON_DEVICE int group(int load) const { return load * kWarpLanes + lane_; }
  SOLITON_DEVICE auto address() const {
    return [this](int i) { return groups_ + group(i); };
  }

  const float4* groups_;
  int lane_;
  PolledLoads<float4, kLoads, kPlan> loads_;
};

}  // namespace soliton::one_row
