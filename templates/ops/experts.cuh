// Which experts of a mixture a token goes through, worked out of the router's logits by one warp, alike in every CTA.
#pragma once

#include "layout/model_shape.h"
#include "primitives/primitives.h"

namespace soliton {

/// A mixture's logits as one lane has them: of kOwn neighbouring experts.
template <int kExperts>
struct RouterLogits {
  static constexpr int kLoads = ceil_divide(kExperts, 4 * kWarpLanes);
  static constexpr int kOwn = 4 * kLoads;
  float4 value[kLoads];

  static SOLITON_DEVICE int first_expert(int lane) { return lane * kOwn; }
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

/// The experts of the highest logits, of equal ones the lowest. Collective of a warp.
template <Mixture kMixture>
class ExpertChoice {
  using Logits = RouterLogits<kMixture.experts>;
  static constexpr int kOwn = Logits::kOwn;

 public:
  /// Lane i learns the i-th.
  SOLITON_DEVICE ExpertChoice(const RouterLogits<kMixture.experts>& logits, int lane) {
    const int first = Logits::first_expert(lane);
    Candidate own[kOwn];
    SOLITON_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const float4 v = logits.value[i / 4];
      const float values[4] = {v.x, v.y, v.z, v.w};
      const bool is_there = kMixture.experts == kOwn * kWarpLanes || first + i < kMixture.experts;
      own[i] = {is_there ? ordered_key(values[i % 4]) : 0, first + i};
      keys_[i] = own[i].key;
    }
    sort(own);
    // Who has the highest of all puts his next one forward; lanes with lower experts go first.
    SOLITON_UNROLL
    for (int pick = 0; pick < kMixture.chosen; ++pick) {
      const uint32_t best = warp_max(own[0].key);
      const int winner = lowest_lane(own[0].key == best);
      const int expert = shuffle(own[0].expert, winner);
      if (lane == winner) {
        SOLITON_UNROLL
        for (int i = 0; i + 1 < kOwn; ++i) own[i] = own[i + 1];
        own[kOwn - 1].key = 0;
      }
      if (pick == 0) highest_ = best;
      if (lane == pick) {
        expert_ = expert;
        key_ = best;
      }
    }
  }

  SOLITON_DEVICE int expert() const { return expert_; }

  /// What the output of this lane's expert is multiplied with, 0 in lanes that have none: a softmax of all logits; if
  /// `kMixture` says so, divided by the sum over the chosen.
  SOLITON_DEVICE float weight(int lane) const {
    const float own = lane < kMixture.chosen ? exponential(key_) : 0.0f;
    float sum = own;
    if constexpr (!kMixture.renormalised) {
      sum = 0.0f;
      SOLITON_UNROLL
      for (int i = 0; i < kOwn; ++i) sum += keys_[i] == 0 ? 0.0f : exponential(keys_[i]);
    }
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    return lane < kMixture.chosen ? own / sum : 0.0f;
  }

 private:
  struct Candidate {
    uint32_t key;
    int expert;
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

  SOLITON_DEVICE float exponential(uint32_t key) const {
    constexpr float kLog2E = 1.4426950408889634f;
    return exp2_fast((value_of_key(key) - value_of_key(highest_)) * kLog2E);
  }

  uint32_t keys_[kOwn];
  uint32_t highest_ = 0;
  uint32_t key_ = 0;
  int expert_ = 0;
};

}  // namespace soliton
