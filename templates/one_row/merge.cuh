// Merging the parts of an attention unit: first those of one CTA (its consumer warps' and the new token's),
// by its consumer warps; then, where the cache of a head block is split over CTAs, those of its splits.
// Always in the same order.
#pragma once

#include "one_row/context.cuh"
#include "one_row/input.cuh"
#include "one_row/new_token.cuh"

namespace soliton::one_row {

constexpr int kMergeLoads = 16;  // partial outputs that one lane loads at once

constexpr int kNoToken = -1;

/// Merges the consumers' parts in shared memory, and as one more the new token of unit `token`, unless kNoToken: its
/// score, a sum of 1 and its value; softmax starts here if nobody merges further. Consumer warp `warp` takes every kConsumerWarps-th group of outputs. `whole`: nobody
/// else has a part of this block, so the heads' outputs go to `output`, a vector of all heads that this layer's o reads;
/// otherwise what is not yet divided goes to this CTA's partial: maxima, sums, outputs.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void merge_parts(const Context<kPlan>& context, const HeadBlock<kPlan>& heads, int warp,
                                int token, bool whole, int layer, float* output, float* partial) {
  constexpr int kParts = kPlan.consumer_warps + 1;
  const uint32_t tag = tag_of(context.use(layer));
  const bool with_token = token != kNoToken;
  constexpr int kGroups = kHeadsPerBlock * kPlan.model.head_dim / 4;  // of 4 neighbouring outputs
  SOLITON_NO_UNROLL
  for (int group = warp * kWarpLanes + context.lane; group < kGroups;
       group += kPlan.consumer_warps * kWarpLanes) {
    const int head = group * 4 / kPlan.model.head_dim;
    const int dim = group * 4 % kPlan.model.head_dim;
    if (head >= heads.count) break;
    float maxima[kParts];
    float maximum = -INFINITY;
    SOLITON_UNROLL
    for (int part = 0; part < kParts; ++part) {
      maxima[part] = part < kPlan.consumer_warps ? load_shared(&context.attention_part(part).maximum[head])
                     : with_token                ? load_shared(context.token_scores() + head)
                                                 : -INFINITY;
      maximum = maxima[part] > maximum ? maxima[part] : maximum;
    }
    float sum = 0.0f;
    if (Variant<kPlan>::kStarts && whole) {
      const SoftmaxStart start =
          Variant<kPlan>(layer).start(context.params.layer_biases, heads.first_head + head);
      maximum = larger_of(maximum, start.maximum);
      sum = start.sum * exp2_fast(start.maximum - maximum);
    }
    float4 merged = make_float4(0, 0, 0, 0);
    SOLITON_UNROLL
    for (int part = 0; part < kParts; ++part) {
      if (part == kPlan.consumer_warps && !with_token) break;
      const float weight = exp2_fast(maxima[part] - maximum);
      float4 value;
      if (part < kPlan.consumer_warps) {
        const AttentionPart<kPlan>& at = context.attention_part(part);
        value = load_shared(reinterpret_cast<const float4*>(&at.output[head][dim]));
        sum += weight * load_shared(&at.sum[head]);
      } else {
        value = kept_value(context, token, dim);
        sum += weight;
      }
      merged.x += weight * value.x;
      merged.y += weight * value.y;
      merged.z += weight * value.z;
      merged.w += weight * value.w;
    }
    if (!whole && dim == 0) {
      publish_here<kPlan>(partial + head, maximum, tag);
      publish_here<kPlan>(partial + kHeadsPerBlock + head, sum, tag);
    }
    const float scale = whole ? 1.0f / sum : 1.0f;
    const float4 outputs =
        make_float4(merged.x * scale, merged.y * scale, merged.z * scale, merged.w * scale);
    const int first = heads.first_head * kPlan.model.head_dim;
    if (kPlan.model.ordered && whole) {
      const float values[] = {outputs.x, outputs.y, outputs.z, outputs.w};
      SOLITON_UNROLL
      for (int i = 0; i < 4; ++i) {
        publish<kPlan>(context, output + context.attention_place(layer, first + group * 4 + i), values[i],
                       tag);
      }
      continue;
    }
    float* to = whole ? output + first : partial + 2 * kHeadsPerBlock;
    if (kPlan.num_cards > 1 && whole) {
      publish<kPlan>(context, reinterpret_cast<float4*>(to) + group, outputs, tag);
    } else {
      publish_here<kPlan>(reinterpret_cast<float4*>(to) + group, outputs, tag);
    }
  }
}

/// Under kCounter: says that this warp's share of the CTA's partial is written.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void end_partial(const Context<kPlan>& context, int block) {
  if constexpr (kPlan.sync == SyncMode::kCounter) {
    warp_sync();
    if (context.lane == 0) add_release(context.counter(kPartialCounterWords + block * kCounterLineWords), 1);
  }
}

/// Merges the partials of a head block's splits, by all CTAs of the block: each takes a share of the outputs,
/// in groups of 32 that belong to one head, and publishes them to `output`, a vector of all heads.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void merge_splits(const Context<kPlan>& context, const HeadBlock<kPlan>& heads,
                                 const AttentionShare& share, int layer, float* output) {
  const int num_groups = heads.count * kPlan.model.head_dim / kWarpLanes;
  const int end_group = num_groups * (share.split + 1) / share.num_mergers;
  const uint32_t tag = tag_of(context.use(layer));
  const float* partials = context.partial(context.cta - share.split);
  SOLITON_NO_UNROLL
  for (int group = num_groups * share.split / share.num_mergers; group < end_group; ++group) {
    // Lane s looks after the weight of split s.
    const float* own = partials +
                       (context.lane < share.num_splits ? context.lane : 0) * kPlan.partial_words() +
                       group * kWarpLanes / kPlan.model.head_dim;
    const float* outputs = partials + 2 * kHeadsPerBlock + group * kWarpLanes + context.lane;
    float weight = 0.0f;
    float value = 0.0f;
    SoftmaxStart start;  // on its way while the partials are waited for
    if constexpr (Variant<kPlan>::kStarts) {
      const int head = heads.first_head + group * kWarpLanes / kPlan.model.head_dim;
      start = Variant<kPlan>(layer).start(context.params.layer_biases, head);
    }
    SOLITON_NO_UNROLL
    for (int first = 0; first < share.num_splits; first += kMergeLoads) {
      // The outputs of kMergeLoads splits, this lane's maximum, its sum.
      PolledLoads<float, kMergeLoads + 2, kPlan> loads;
      const auto address = [&](int i) {
        return i < kMergeLoads ? outputs + (first + i) * kPlan.partial_words()
                               : own + (i - kMergeLoads) * kHeadsPerBlock;
      };
      loads.issue(address, [&](int i) { return i >= kMergeLoads || first + i < share.num_splits; });
      wait_for_words(context, WaitKind::kPartial, tag, [&] { return loads.retry(address, tag); });
      SOLITON_UNROLL
      for (int i = 0; i < kMergeLoads + 2; ++i) loads.value[i] = without_tag(loads.value[i]);
      if (first == 0) {
        const float own_maximum = context.lane < share.num_splits ? loads.value[kMergeLoads] : -INFINITY;
        float maximum = own_maximum;
        for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
          const float other = shuffle_xor(maximum, mask);
          maximum = other > maximum ? other : maximum;
        }
        if constexpr (Variant<kPlan>::kStarts) maximum = larger_of(maximum, start.maximum);
        weight = exp2_fast(own_maximum - maximum);
        float sum = weight * loads.value[kMergeLoads + 1];
        for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
        if constexpr (Variant<kPlan>::kStarts) sum += start.sum * exp2_fast(start.maximum - maximum);
        weight /= sum;
      }
      SOLITON_UNROLL
      for (int i = 0; i < kMergeLoads; ++i)
        value += shuffle(weight, (first + i) % kWarpLanes) * loads.value[i];
    }
    const int element = heads.first_head * kPlan.model.head_dim + group * kWarpLanes + context.lane;
    publish<kPlan>(context, output + context.attention_place(layer, element), value, tag);
  }
}

}  // namespace soliton::one_row
