// Merging the partial results of a row, in the order of its path, and appending the step's keys and values to
// their pages: by all workers of all CTAs, a query head of a row each. Heads are those of this card.
#pragma once

#include "rows/context.cuh"

namespace soliton::rows {

/// A query head of a row while its partial results are merged: each lane has four neighbouring outputs of each group.
template <const KernelPlan& kPlan>
class HeadMerge {
 public:
  static constexpr int kHeads = kPlan.model.group();
  static constexpr int kHeadDim = kPlan.model.head_dim;
  static constexpr int kWords = tree_partial_words(kHeads, kHeadDim);
  static constexpr int kGroups = ceil_divide(kHeadDim, 4 * kWarpLanes);  // of 4 outputs of this lane
  static constexpr int kLoads = 16 / kGroups;  // partial results that are loaded at once

  SOLITON_DEVICE HeadMerge(const Context<kPlan>& context, int row, int head)
      : context_(context),
        row_(row),
        head_(head),
        partials_(context.params.partials +
                  static_cast<int64_t>(head / kHeads) * context.params.tree.partials_per_head * kWords) {}

  /// Adds up to kLoads partials of the merge list, from `first` on; everything is on its way at once.
  SOLITON_DEVICE void add(int first, int end) {
    const int lane = context_.lane;
    // Lane l looks after the weight of partial first + l.
    int place = -1;
    if (lane < kLoads && first + lane < end) {
      const TreeMerge* merge = context_.params.tree.merges + first + lane;
      if (load_constant(&merge->first_step) <= context_.step) place = load_constant(&merge->partial);
    }
    float own_maximum = -INFINITY;
    float own_sum = 0.0f;
    if (place >= 0) {
      const float* at = partials_ + static_cast<int64_t>(place) * kWords + head_ % kHeads;
      own_maximum = load_global(at);
      own_sum = load_global(at + kHeads);
    }
    float4 loaded[kLoads][kGroups];
    load_outputs(place, loaded);
    const float weight = raise_maximum(own_maximum, own_sum);
    SOLITON_UNROLL
    for (int k = 0; k < kLoads; ++k) {
      const float scale = shuffle(weight, k);
      SOLITON_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        outputs_[g].x += scale * loaded[k][g].x;
        outputs_[g].y += scale * loaded[k][g].y;
        outputs_[g].z += scale * loaded[k][g].z;
        outputs_[g].w += scale * loaded[k][g].w;
      }
    }
  }

  /// Writes the head's outputs, divided by their sum, where the next phase reads them.
  SOLITON_DEVICE void publish() const {
    constexpr int kParts = kShape<kPlan>.parts;
    const float scale = 1.0f / sum_;
    unsigned char* heads = context_.template workspace<unsigned char>(kPlan.vector(VectorId::kHeads).offset);
    SOLITON_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int dim = (context_.lane + g * kWarpLanes) * 4;
      if (dim >= kHeadDim) continue;
      float4 v = make_float4(outputs_[g].x * scale, outputs_[g].y * scale, outputs_[g].z * scale,
                             outputs_[g].w * scale);
      SOLITON_UNROLL
      for (int part = 0; part < kParts; ++part) {
        const uint2 packed = make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w));
        context_.publish(reinterpret_cast<uint2*>(
                             heads + activation_offset(kShape<kPlan>, part, row_,
                                                       context_.head_of_model(head_) * kHeadDim + dim)),
                         packed);
        if (part + 1 == kParts) break;
        v = make_float4(low_part(v.x), low_part(v.y), low_part(v.z), low_part(v.w));
      }
    }
  }

 private:
  SOLITON_DEVICE void load_outputs(int place, float4 (&loaded)[kLoads][kGroups]) const {
    const int lane = context_.lane;
    const int offset = tree_partial_outputs(kHeads) + head_ % kHeads * kHeadDim + lane * 4;
    SOLITON_UNROLL
    for (int k = 0; k < kLoads; ++k) {
      const int from = shuffle(place, k);
      SOLITON_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        loaded[k][g] = make_float4(0, 0, 0, 0);
        if (from >= 0 && (lane + g * kWarpLanes) * 4 < kHeadDim) {
          loaded[k][g] = load_global(reinterpret_cast<const float4*>(
              partials_ + static_cast<int64_t>(from) * kWords + offset + g * 4 * kWarpLanes));
        }
      }
    }
  }

  /// Takes this lane's partial into maximum and sum, and rescales the outputs so far; returns the partial's weight.
  SOLITON_DEVICE float raise_maximum(float own_maximum, float own_sum) {
    float most = own_maximum > maximum_ ? own_maximum : maximum_;
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
      const float other = shuffle_xor(most, mask);
      most = other > most ? other : most;
    }
    const float base = most == -INFINITY ? 0.0f : most;  // nothing seen so far
    const float before = exp2_fast(maximum_ - base);
    const float weight = exp2_fast(own_maximum - base);
    maximum_ = most;
    float added = own_sum * weight;
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) added += shuffle_xor(added, mask);
    sum_ = sum_ * before + added;
    SOLITON_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      outputs_[g] = make_float4(outputs_[g].x * before, outputs_[g].y * before, outputs_[g].z * before,
                                outputs_[g].w * before);
    }
    return weight;
  }

  const Context<kPlan>& context_;
  int row_;
  int head_;
  const float* partials_;  // of the KV head
  float maximum_ = -INFINITY;
  float sum_ = 0.0f;
  float4 outputs_[kGroups] = {};
};

/// Merges the partial results of a query head of a row.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void merge_head(const Context<kPlan>& context, int row, int head) {
  const TreeRow* at = context.params.tree.rows + row;
  const int end = load_constant(&at->end_merge);
  HeadMerge<kPlan> merge(context, row, head);
  SOLITON_NO_UNROLL
  for (int first = load_constant(&at->first_merge); first < end; first += HeadMerge<kPlan>::kLoads)
    merge.add(first, end);
  merge.publish();
}

/// Appends the key and value of a row's token to its page.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void append(const Context<kPlan>& context, int row, int kv_head, int layer) {
  constexpr KvShape kKv = kPlan.card_kv();
  constexpr QkvLayout kLayout = kQkv<kPlan>;
  const TreeView& tree = context.params.tree;
  const TreeRow* at = tree.rows + row;
  const int slot = load_constant(&at->slot) + context.step;
  const int physical = load_constant(tree.pages + load_constant(&at->first_page) + slot / kKvPageTokens);
  unsigned char* keys =
      static_cast<unsigned char*>(context.params.kv_pool) + kKv.page_offset(physical, layer, kv_head);
  unsigned char* values = keys + kKv.half_bytes();
  const int token = slot % kKvPageTokens;
  const unsigned char* qkv = context.template workspace<unsigned char>(kPlan.vector(VectorId::kQkv).offset);
  const unsigned char* new_keys = qkv + kLayout.keys_offset(kv_head);
  const unsigned char* new_values = qkv + kLayout.values_offset(kv_head);
  SOLITON_NO_UNROLL
  for (int dim = context.lane * 2; dim < kKv.head_dim; dim += 2 * kWarpLanes) {
    SOLITON_UNROLL
    for (int part = 0; part < kKv.parts; ++part) {
      store_global(reinterpret_cast<uint32_t*>(keys + kKv.key_offset(token, dim, part)),
                   load_global(reinterpret_cast<const uint32_t*>(new_keys + kKv.key_offset(row, dim, part))));
      SOLITON_UNROLL
      for (int i = 0; i < 2; ++i) {
        store_global(reinterpret_cast<uint16_t*>(values + kKv.value_offset(token, dim + i, part)),
                     load_global(reinterpret_cast<const uint16_t*>(new_values +
                                                                   kKv.value_offset(row, dim + i, part))));
      }
    }
  }
}

}  // namespace soliton::rows
