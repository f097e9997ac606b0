// RMS norm of a head of q or k, and its rotation behind it, where a model norms heads: a head's dims lie in
// head_dim / 4 neighbouring lanes, four in each, so that sums and the other halves of rotation pairs come by
// shuffles. Where all heads are normed together, the factors of q and of k are worked out before.
#pragma once

#include "primitives/primitives.h"

namespace soliton {

/// One head of a warp's load: which, for which token.
struct HeadOfToken {
  int layer;
  int position;
  bool is_key;
  bool is_normed;  // false: a head of v, which stays as it is
  int head = 0;    // of q and k; where each has weights of its own
};

/// What all heads of q, and all of k, are multiplied with.
struct JointScales {
  float q = 1;
  float k = 1;
};

/// What four dims of a head are finished with. It depends on nothing that the step computes, so that it can be
/// loaded before the head has arrived: load(), then finish(). Of models that do not norm heads it is nothing.
template <const KernelPlan& kPlan, bool kNorms = kPlan.model.head_norm>
class HeadNorm {
 public:
  SOLITON_DEVICE void load(const LaunchParams& /*params*/, const HeadOfToken& /*head*/, int /*lane*/) {}
  SOLITON_DEVICE float4 finish(float4 v, int /*lane*/, const JointScales& /*joint*/ = {}) const { return v; }
};

template <const KernelPlan& kPlan>
class HeadNorm<kPlan, true> {
 public:
  static constexpr int kLanes = kPlan.model.head_dim / 4;  // that hold a head
  static_assert(kLanes <= kWarpLanes && kWarpLanes % kLanes == 0, "a warp holds whole heads");

  SOLITON_DEVICE void load(const LaunchParams& params, const HeadOfToken& head, int lane) {
    const int dim = lane % kLanes * 4;
    is_normed_ = head.is_normed;
    is_key_ = head.is_key;
    if (!is_normed_) return;
    const int number = kPlan.model.joint_norm ? head.head : head.is_key ? 1 : 0;
    const uint16_t* weights =
        params.head_norms + head.layer * kPlan.model.head_norm_weights() + number * kPlan.model.head_dim;
    weights_ = load_constant(reinterpret_cast<const uint2*>(weights + dim));
    const float* rotations = params.rotary + static_cast<int64_t>(head.position) * kPlan.model.head_dim;
    const float4* own = reinterpret_cast<const float4*>(rotations + dim % (kPlan.model.head_dim / 2) * 2);
    rotations_[0] = load_constant(own);
    rotations_[1] = load_constant(own + 1);
  }

  /// Collective. Returns the lane's four dims normed and rotated. `joint`: if all heads are normed together.
  SOLITON_DEVICE float4 finish(float4 v, int lane, const JointScales& joint = {}) const {
    const float scale = kPlan.model.joint_norm ? (is_key_ ? joint.k : joint.q) : own_scale(v);
    const float4 normed = make_float4(v.x * scale * bf16_to_float(static_cast<uint16_t>(weights_.x)),
                                      v.y * scale * bf16_to_float(static_cast<uint16_t>(weights_.x >> 16)),
                                      v.z * scale * bf16_to_float(static_cast<uint16_t>(weights_.y)),
                                      v.w * scale * bf16_to_float(static_cast<uint16_t>(weights_.y >> 16)));
    // Dims d and d + head_dim / 2 rotate together: the other one counts negative in the first half.
    const bool first_half = lane % kLanes < kLanes / 2;
    const auto rotate = [&](float own, float cosine, float sine) {
      const float other = shuffle_xor(own, kLanes / 2);
      return own * cosine + (first_half ? -other : other) * sine;
    };
    const float4 turned = make_float4(rotate(normed.x, rotations_[0].x, rotations_[0].y),
                                      rotate(normed.y, rotations_[0].z, rotations_[0].w),
                                      rotate(normed.z, rotations_[1].x, rotations_[1].y),
                                      rotate(normed.w, rotations_[1].z, rotations_[1].w));
    return is_normed_ ? turned : v;
  }

 private:
  static SOLITON_DEVICE float own_scale(float4 v) {
    float squares = (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    SOLITON_UNROLL
    for (int mask = 1; mask < kLanes; mask *= 2) squares += shuffle_xor(squares, mask);
    return rsqrt_fast(squares / kPlan.model.head_dim + kPlan.model.norm_epsilon);
  }

  uint2 weights_ = {};        // bf16
  float4 rotations_[2] = {};  // {cos, sin} of each dim's pair
  bool is_normed_ = false;
  bool is_key_ = false;
};

}  // namespace soliton
