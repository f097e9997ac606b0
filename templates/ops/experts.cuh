// Which experts of a mixture a token goes through, worked out of the router's logits by one warp, alike in every CTA. Quotients are
// fast ones, see ops/quotient.cuh.
#pragma once

#include "layout/model_shape.h"
#include "primitives/primitives.h"

namespace soliton {

/// A mixture's logits as one lane has them: of kOwn neighbouring ones.
template <int kLogits>
struct RouterLogits {
  static constexpr int kLoads = ceil_divide(kLogits, 4 * kWarpLanes);
  static constexpr int kOwn = 4 * kLoads;
  float4 value[kLoads];

  static SOLITON_DEVICE int first_expert(int lane) { return lane * kOwn; }
};

/// What is added to the sigmoids for the choice alone, or else to the logits, of the experts that a lane has. It depends on nothing that the step
/// computes, so that it can be loaded before these have arrived. Of a mixture that has none it is nothing.
template <Mixture kMixture>
class RouterBias {
  using Logits = RouterLogits<kMixture.logits()>;

 public:
  SOLITON_DEVICE void load(const float* biases, int layer, int lane) {
    if constexpr (kMixture.biased) {
      const int first = Logits::first_expert(lane);
      SOLITON_UNROLL
      for (int i = 0; i < Logits::kLoads; ++i) {
        if (first + 4 * i >= kWords) continue;
        const float* words = biases + static_cast<int64_t>(layer) * kWords + first + 4 * i;
        value_[i] = load_constant(reinterpret_cast<const float4*>(words));
      }
    }
  }
  SOLITON_DEVICE float of(int own) const {
    if constexpr (!kMixture.biased) return 0.0f;
    const float4 v = value_[own / 4];
    const float values[4] = {v.x, v.y, v.z, v.w};
    return values[own % 4];
  }

 private:
  static constexpr int kWords = route_words(kMixture.logits());
  float4 value_[kMixture.biased ? Logits::kLoads : 1] = {};
};

/// Numbers in the order of their values, 0 of no number. NaN is above all: who meets one chooses it, and it spreads.
SOLITON_DEVICE uint32_t ordered_key(float value) {
  if (value != value) return 0xffffffffu;
  const uint32_t bits = float_bits(value + 0.0f);  // of both zeros the same
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
SOLITON_DEVICE float value_of_key(uint32_t key) {
  return float_from_bits(key >> 31 != 0 ? key & 0x7fffffffu : ~key);
}

/// The experts that a token is multiplied with: the shared ones, then those of the highest scores, of equal ones the lowest. Lane
/// i learns the i-th. A softmax keeps the order of logits, so it is worked out of the chosen alone. Collective of a warp.
template <Mixture kMixture>
class ExpertChoice {
  static_assert(kMixture.used() <= kWarpLanes, "a lane knows one");
  using Logits = RouterLogits<kMixture.logits()>;
  static constexpr int kOwn = Logits::kOwn;
  static constexpr bool kSigmoid = kMixture.scores == RouterScores::kSigmoid;

 public:
  SOLITON_DEVICE ExpertChoice(const RouterLogits<kMixture.logits()>& logits, const RouterBias<kMixture>& bias,
                              int lane) {
    const int first = Logits::first_expert(lane);
    Candidate own[kOwn];
    SOLITON_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const float4 v = logits.value[i / 4];
      const float values[4] = {v.x, v.y, v.z, v.w};
      const bool is_there = kMixture.experts == kOwn * kWarpLanes || first + i < kMixture.experts;
      float score = kSigmoid ? sigmoid(values[i % 4]) : values[i % 4];
      if constexpr (!kSigmoid && kMixture.biased) score += bias.of(i);
      own[i] = {is_there ? ordered_key(kSigmoid ? score + bias.of(i) : score) : 0, first + i, score};
      keys_[i] = own[i].key;
    }
    sort(own);
    if constexpr (kMixture.shared_gate) {
      const float4 v = logits.value[kMixture.experts % kOwn / 4];
      const float values[4] = {v.x, v.y, v.z, v.w};
      gate_ = shuffle(values[kMixture.experts % 4], kMixture.experts / kOwn);
    }
    if (lane < kMixture.shared) expert_ = kMixture.experts + lane;
    // Who has the highest of all puts his next one forward; lanes with lower experts go first.
    SOLITON_UNROLL
    for (int pick = 0; pick < kMixture.chosen; ++pick) {
      const uint32_t best = warp_max(own[0].key);
      const int winner = lowest_lane(own[0].key == best);
      const int expert = shuffle(own[0].expert, winner);
      const float score = kSigmoid ? shuffle(own[0].score, winner) : 0.0f;
      if (lane == winner) {
        SOLITON_UNROLL
        for (int i = 0; i + 1 < kOwn; ++i) own[i] = own[i + 1];
        own[kOwn - 1].key = 0;
      }
      if (pick == 0) highest_ = best;
      if (lane == kMixture.shared + pick) {
        expert_ = expert;
        key_ = best;
        score_ = score;
      }
    }
  }

  /// Its number in memory; the lane has one if lane < kMixture.used().
  SOLITON_DEVICE int expert() const { return expert_; }

  /// What the output of this lane's expert is multiplied with, 0 in lanes that have none: its score; if `kMixture` says so,
  /// divided by the sum over the chosen; times `scale`. Of shared experts the sigmoid of their own logit, or 1.
  SOLITON_DEVICE float weight(int lane, float scale) const {
    const bool is_routed = lane >= kMixture.shared && lane < kMixture.used();
    float own = 0.0f;
    if (is_routed) own = kSigmoid ? score_ : exponential(key_);
    float sum = own;
    if constexpr (!kSigmoid && !kMixture.renormalised) {
      sum = 0.0f;
      SOLITON_UNROLL
      for (int i = 0; i < kOwn; ++i) sum += keys_[i] == 0 ? 0.0f : exponential(keys_[i]);
    }
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    if (lane < kMixture.shared) return kMixture.shared_gate ? sigmoid(gate_) : 1.0f;
    if (!is_routed) return 0.0f;
    if constexpr (!kSigmoid) return divide_fast(own, sum) * scale;
    return (kMixture.renormalised ? divide_fast(own, sum + kLeastScores) : own) * scale;
  }

 private:
  struct Candidate {
    uint32_t key;
    int expert;
    float score;  // without the bias; of sigmoids only
  };

  /// The highest first, of equal ones the lower expert.
  static SOLITON_DEVICE void sort(Candidate (&all)[kOwn]) {
    SOLITON_UNROLL
    for (int end = kOwn - 1; end > 0; --end) {
      SOLITON_UNROLL
      for (int i = 0; i < end; ++i) {
        const Candidate a = all[i];
        const Candidate b = all[i + 1];
        const bool swaps = a.key < b.key;
        all[i] = swaps ? b : a;
        all[i + 1] = swaps ? a : b;
      }
    }
  }

  static constexpr float kLog2E = 1.4426950408889634f;
  static SOLITON_DEVICE float sigmoid(float x) { return divide_fast(1.0f, 1.0f + exp2_fast(-x * kLog2E)); }
  SOLITON_DEVICE float exponential(uint32_t key) const {
    return exp2_fast((value_of_key(key) - value_of_key(highest_)) * kLog2E);
  }

  uint32_t keys_[kOwn];
  uint32_t highest_ = 0;
  uint32_t key_ = 0;
  int expert_ = 0;
  float score_ = 0;
  float gate_ = 0;  // the logit of the shared experts
};

}  // namespace soliton
