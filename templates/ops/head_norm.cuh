// RMS norm of a head of q or k, and its rotation behind it (its weights may come last), where a model norms heads: a head's
// dims lie in head_dim / 4 neighbouring lanes, four in each, so that sums and the other halves of rotation pairs come by
// shuffles. Of 256 dims a lane has four in each half. Where all heads are normed together, the factors of q and of k are worked
// out before.
#pragma once

#include "ops/norm_weights.cuh"
#include "ops/rotations.cuh"

namespace soliton {

/// One head of a warp's load: which, for which token.
struct HeadOfToken {
  int layer;
  int position;
  bool is_key;
  bool is_normed;  // false: a head of v, which stays as it is
  int head = 0;    // of q and k; where each has weights of its own
};

/// {cos, sin} of pairs `pair` to `pair` + 3 of a head's dims; of layers that rotate nothing of no angle.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void load_rotations(const LaunchParams& params, const HeadOfToken& head, int pair,
                                   float4 (&rotations)[2]) {
  const int rope = rope_of<kPlan>(head.layer);
  if (rope < 0) {
    rotations[0] = rotations[1] = make_float4(1, 0, 1, 0);
    return;
  }
  static_assert(kPlan.model.query_table == 0, "queries that are scaled are not normed");
  const float4* own = reinterpret_cast<const float4*>(rotations_at<kPlan>(params, head.position) +
                                                      rope * kPlan.model.head_dim + pair * 2);
  rotations[0] = load_constant(own);
  rotations[1] = load_constant(own + 1);
}

/// bf16 weights of a head's norm.
template <const KernelPlan& kPlan>
SOLITON_DEVICE const uint16_t* head_weights(const LaunchParams& params, const HeadOfToken& head) {
  const int number = kPlan.model.joint_norm ? head.head : head.is_key ? 1 : 0;
  return params.head_norms + head.layer * kPlan.model.head_norm_weights() + number * kPlan.model.head_dim;
}

/// What all heads of q, and all of k, are multiplied with.
struct JointScales {
  float q = 1;
  float k = 1;
};

/// What a lane's dims of a head are finished with. It depends on nothing that the step computes, so that it can be
/// loaded before the head has arrived: load(), then finish(). Of models that do not norm heads it is nothing.
template <const KernelPlan& kPlan, bool kNorms = kPlan.model.head_norm,
          int kPieces = kPlan.model.head_pieces()>
class HeadNorm {
 public:
  SOLITON_DEVICE void load(const LaunchParams& /*params*/, const HeadOfToken& /*head*/, int /*lane*/) {}
  SOLITON_DEVICE float4 finish(float4 v, int /*lane*/, const JointScales& /*joint*/ = {}) const { return v; }
};

template <const KernelPlan& kPlan>
class HeadNorm<kPlan, true, 1> {
 public:
  static constexpr int kLanes = kPlan.model.head_dim / 4;  // that hold a head
  static_assert(kLanes <= kWarpLanes && kWarpLanes % kLanes == 0, "a warp holds whole heads");

  SOLITON_DEVICE void load(const LaunchParams& params, const HeadOfToken& head, int lane) {
    const int dim = lane % kLanes * 4;
    is_normed_ = head.is_normed;
    is_key_ = head.is_key;
    if (!is_normed_) return;
    const uint16_t* weights = head_weights<kPlan>(params, head);
    weights_ = load_constant(reinterpret_cast<const uint2*>(weights + dim));
    load_rotations<kPlan>(params, head, dim % (kPlan.model.head_dim / 2), rotations_);
  }

  /// Collective. Returns the lane's four dims normed and rotated. `joint`: if all heads are normed together.
  SOLITON_DEVICE float4 finish(float4 v, int lane, const JointScales& joint = {}) const {
    const float scale = kPlan.model.joint_norm ? (is_key_ ? joint.k : joint.q) : own_scale(v);
    const float4 normed = weighted<!kLast>(v, scale);
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
    if constexpr (kLast) return is_normed_ ? weighted<true>(turned, 1.0f) : v;
    return is_normed_ ? turned : v;
  }

 private:
  static constexpr bool kLast = kPlan.model.head_norm_last;

  template <bool kWeighs>
  SOLITON_DEVICE float4 weighted(const float4& v, float scale) const {
    if constexpr (!kWeighs) return make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
    return make_float4(v.x * scale * norm_weight<kPlan>(static_cast<uint16_t>(weights_.x)),
                       v.y * scale * norm_weight<kPlan>(static_cast<uint16_t>(weights_.x >> 16)),
                       v.z * scale * norm_weight<kPlan>(static_cast<uint16_t>(weights_.y)),
                       v.w * scale * norm_weight<kPlan>(static_cast<uint16_t>(weights_.y >> 16)));
  }
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

/// The same of heads of 256: a lane has four dims of the first half, and those that rotate with them, of the second.
template <const KernelPlan& kPlan>
class HeadNorm<kPlan, true, 2> {
 public:
  static constexpr int kLanes = kPlan.model.head_dim / 8;  // that hold a head
  static_assert(kLanes == kWarpLanes, "a warp holds a head");

  SOLITON_DEVICE void load(const LaunchParams& params, const HeadOfToken& head, int lane) {
    is_normed_ = head.is_normed;
    is_key_ = head.is_key;
    if (!is_normed_) return;
    const uint16_t* weights = head_weights<kPlan>(params, head);
    SOLITON_UNROLL
    for (int half = 0; half < 2; ++half) {
      weights_[half] =
          load_constant(reinterpret_cast<const uint2*>(weights + half * kPlan.model.head_dim / 2 + lane * 4));
    }
    load_rotations<kPlan>(params, head, lane * 4, rotations_);
  }

  /// Collective. The lane's dims become normed and rotated ones.
  SOLITON_DEVICE void finish(float4& first, float4& second, const JointScales& joint = {}) const {
    float scale = is_key_ ? joint.k : joint.q;
    if constexpr (!kPlan.model.joint_norm) {
      float squares = sum_of_squares(first) + sum_of_squares(second);
      SOLITON_UNROLL
      for (int mask = 1; mask < kLanes; mask *= 2) squares += shuffle_xor(squares, mask);
      scale = rsqrt_fast(squares / kPlan.model.head_dim + kPlan.model.norm_epsilon);
    }
    if (!is_normed_) return;
    constexpr bool kLast = kPlan.model.head_norm_last;
    const float4 ones = make_float4(1, 1, 1, 1);
    const float4 a = scaled(first, scale, kLast ? ones : norm_weights<kPlan>(weights_[0]));
    const float4 b = scaled(second, scale, kLast ? ones : norm_weights<kPlan>(weights_[1]));
    const float cosines[] = {rotations_[0].x, rotations_[0].z, rotations_[1].x, rotations_[1].z};
    const float sines[] = {rotations_[0].y, rotations_[0].w, rotations_[1].y, rotations_[1].w};
    first = make_float4(a.x * cosines[0] - b.x * sines[0], a.y * cosines[1] - b.y * sines[1],
                        a.z * cosines[2] - b.z * sines[2], a.w * cosines[3] - b.w * sines[3]);
    second = make_float4(b.x * cosines[0] + a.x * sines[0], b.y * cosines[1] + a.y * sines[1],
                         b.z * cosines[2] + a.z * sines[2], b.w * cosines[3] + a.w * sines[3]);
    if constexpr (kLast) {
      first = scaled(first, 1.0f, norm_weights<kPlan>(weights_[0]));
      second = scaled(second, 1.0f, norm_weights<kPlan>(weights_[1]));
    }
  }

 private:
  static SOLITON_DEVICE float sum_of_squares(const float4& v) {
    return (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
  }
  static SOLITON_DEVICE float4 scaled(const float4& v, float scale, const float4& w) {
    return make_float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w);
  }

  uint2 weights_[2] = {};
  float4 rotations_[2] = {};
  bool is_normed_ = false;
  bool is_key_ = false;
};

}  // namespace soliton
