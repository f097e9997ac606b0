// Merges the partials of a split attention unit: (maximum, sum, output) of each split, in split order, by all
// splits of the head block together. Each takes a share of the outputs, in groups of 32 that belong to one
// head.
#pragma once

#include "kernel.cuh"
#include "ops/input.cuh"

namespace soliton {

constexpr int kMergeLoads = 16;  // partial outputs that one lane loads at once

/// Lane s's share of split s in each head's output: exp2(maximum - overall maximum) / overall sum.
template <class Plan>
class SplitWeights {
 public:
  /// `partial` is that of split `lane`; lanes from num_splits on have none.
  SOLITON_DEVICE void issue(const Context<Plan>& context, const float* partial, int num_splits,
                            int num_heads) {
    loads_.issue([&](int i) { return partial + i; },
                 [&](int i) { return context.lane < num_splits && i % kHeadsPerBlock < num_heads; });
  }

  SOLITON_DEVICE void complete(const Context<Plan>& context, const float* partial, int num_splits) {
    loads_.complete(context, WaitKind::kPartial, [&](int i) { return partial + i; });
    SOLITON_UNROLL
    for (int head = 0; head < kHeadsPerBlock; ++head) {
      const float own = context.lane < num_splits ? loads_.value[head] : -INFINITY;
      float maximum = own;
      for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
        const float other = shuffle_xor(maximum, mask);
        maximum = other > maximum ? other : maximum;
      }
      const float weight = exp2_fast(own - maximum);
      float sum = weight * loads_.value[kHeadsPerBlock + head];
      for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
      weight_[head] = weight / sum;
    }
  }

  /// Of one split and head. All lanes ask for the same.
  SOLITON_DEVICE float of(int split, int head) const {
    const float low = head % 2 == 0 ? weight_[0] : weight_[1];
    const float high = head % 2 == 0 ? weight_[2] : weight_[3];
    return shuffle(head < 2 ? low : high, split);
  }

 private:
  static_assert(kHeadsPerBlock == 4, "of() chooses among four");
  PolledLoads<float, 2 * kHeadsPerBlock, Plan::kSync> loads_;  // maxima, then sums
  float weight_[kHeadsPerBlock];
};

/// Publishes this CTA's share of a head block's outputs to `output`, a vector of all heads.
template <class Plan>
SOLITON_DEVICE void merge_splits(const Context<Plan>& context, const HeadBlock<Plan>& heads,
                                 const AttentionShare& share, float* output) {
  const int num_groups = heads.count * Plan::kHeadDim / kWarpLanes;
  const int first_group = num_groups * share.split / share.num_splits;
  const int end_group = num_groups * (share.split + 1) / share.num_splits;
  const int total = (end_group - first_group) * share.num_splits;  // loads of a lane
  if (total == 0) return;  // nothing read that others would have to wait for
  const float* partials = context.template workspace<float>(Plan::kPartials.offset) +
                          static_cast<int64_t>(context.cta - share.split) * Plan::kPartialWords;
  const float* own = partials + (context.lane < share.num_splits ? context.lane : 0) * Plan::kPartialWords;

  SplitWeights<Plan> weights;
  weights.issue(context, own, share.num_splits, heads.count);
  int split = 0;
  int group = first_group;
  float value = 0.0f;
  for (int first = 0; first < total; first += kMergeLoads) {
    // The splits of a group one after another, then the next group; counted, because division would cost more
    // than all.
    int offset[kMergeLoads];
    int next_split = split;
    int next_group = group;
    SOLITON_UNROLL
    for (int i = 0; i < kMergeLoads; ++i) {
      offset[i] = next_split * Plan::kPartialWords + next_group * kWarpLanes;
      if (++next_split == share.num_splits) {
        next_split = 0;
        ++next_group;
      }
    }
    const float* outputs = partials + 2 * kHeadsPerBlock + context.lane;
    const auto address = [&](int i) { return outputs + offset[i]; };
    PolledLoads<float, kMergeLoads, Plan::kSync> loads;
    loads.issue(address, [&](int i) { return first + i < total; });
    if (first == 0) weights.complete(context, own, share.num_splits);
    loads.complete(context, WaitKind::kPartial, address);
    SOLITON_UNROLL
    for (int i = 0; i < kMergeLoads; ++i) {
      if (first + i < total) {
        value += weights.of(split, group * kWarpLanes / Plan::kHeadDim) * loads.value[i];
        if (++split == share.num_splits) {
          publish<Plan>(output + heads.first_head * Plan::kHeadDim + group * kWarpLanes + context.lane,
                        publishable(value));
          value = 0.0f;
          split = 0;
          ++group;
        }
      }
    }
  }
}

}  // namespace soliton
