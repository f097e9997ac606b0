// Norms of all of q together, and of all of k: how those that attend, each to a few heads, learn of what all heads add up to.
#pragma once

#include "one_row/tile_squares.cuh"
#include "ops/head_norm.cuh"

namespace soliton::one_row {

/// The factors by which all of q and all of k are normed, out of the sums of squares of their tiles, which stand behind q, k and
/// v. Every warp that attends works them out alike. Of models that do not norm so it is nothing.
template <const KernelPlan& kPlan, bool kJoint = kPlan.model.joint_norm>
class JointNorm {
 public:
  SOLITON_DEVICE JointNorm(const float* /*input*/, int /*lane*/) {}
  SOLITON_DEVICE void issue(bool /*works*/) {}
  SOLITON_DEVICE NothingToWaitFor retry(uint32_t /*tag*/) { return {}; }
  SOLITON_DEVICE JointScales scales() const { return {}; }
};

/// Groups of four tiles of q and of k.
template <const KernelPlan& kPlan>
struct HeadGroups {
  static constexpr int kOfHead = kPlan.model.head_dim / kTileRows / 4;
  static_assert(kOfHead * kTileRows * 4 == kPlan.model.head_dim, "a head has whole groups");
  static constexpr int kQueries = kPlan.model.num_heads * kOfHead;
  static constexpr int kAll = kPlan.model.rotary_heads() * kOfHead;
};

template <const KernelPlan& kPlan>
class JointNorm<kPlan, true> : public TileSquares<kPlan, HeadGroups<kPlan>::kAll> {
  using Base = TileSquares<kPlan, HeadGroups<kPlan>::kAll>;

 public:
  /// `input`: q | k | v.
  SOLITON_DEVICE JointNorm(const float* input, int lane) : Base(input + kPlan.model.qkv_rows(), lane) {}

  /// Collective.
  SOLITON_DEVICE JointScales scales() const {
    float q = 0.0f;
    float k = 0.0f;
    SOLITON_UNROLL
    for (int i = 0; i < Base::kLoads; ++i)
      (this->group(i) < HeadGroups<kPlan>::kQueries ? q : k) += this->sum(i);
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
      q += shuffle_xor(q, mask);
      k += shuffle_xor(k, mask);
    }
    const auto scale = [](float squares, int heads) {
      return rsqrt_fast(squares / (heads * kPlan.model.head_dim) + kPlan.model.norm_epsilon);
    };
    return {scale(q, kPlan.model.num_heads), scale(k, kPlan.model.num_kv_heads)};
  }
};

}  // namespace soliton::one_row
