// Merging the partial results of a row, in the order of its path, and appending the step's keys and values to
// their pages: by all workers of all CTAs, a query head of a row each.
#pragma once

#include "rows/context.cuh"

namespace soliton::rows {

constexpr int kMergeLoads = 16;  // partial results that are loaded at once

/// Merges the partial results of a query head of a row.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void merge_head(const Context<kPlan>& context, int row, int head) {
  constexpr int kHeads = kGroup<kPlan>;
  constexpr int kWords = tree_partial_words(kHeads, kPlan.model.head_dim);
  constexpr int kGroups = ceil_divide(kPlan.model.head_dim, 4 * kWarpLanes);  // of 4 outputs of this lane
  const TreeView& tree = context.params.tree;
  const int lane = context.lane;
  const int begin = load_constant(&tree.rows[row].first_merge);
  const int end = load_constant(&tree.rows[row].end_merge);
  const float* partials =
      context.params.partials + static_cast<int64_t>(head / kHeads) * tree.partials_per_head * kWords;
  const int offset = tree_partial_outputs(kHeads) + head % kHeads * kPlan.model.head_dim + lane * 4;
  float maximum = -INFINITY;
  float sum = 0.0f;
  float4 outputs[kGroups] = {};
  SOLITON_NO_UNROLL
  for (int first = begin; first < end; first += kMergeLoads) {
    // Lane l looks after the weight of partial first + l; everything is on its way at once.
    int place = -1;
    if (lane < kMergeLoads && first + lane < end) {
      const TreeMerge* merge = tree.merges + first + lane;
      if (load_constant(&merge->first_step) <= context.step) place = load_constant(&merge->partial);
    }
    float own_maximum = -INFINITY;
    float own_sum = 0.0f;
    if (place >= 0) {
      const float* at = partials + static_cast<int64_t>(place) * kWords + head % kHeads;
      own_maximum = load_global(at);
      own_sum = load_global(at + kHeads);
    }
    float4 loaded[kMergeLoads][kGroups];
    SOLITON_UNROLL
    for (int k = 0; k < kMergeLoads; ++k) {
      const int from = shuffle(place, k);
      SOLITON_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        loaded[k][g] = make_float4(0, 0, 0, 0);
        if (from >= 0 && (lane + g * kWarpLanes) * 4 < kPlan.model.head_dim) {
          loaded[k][g] = load_global(reinterpret_cast<const float4*>(
              partials + static_cast<int64_t>(from) * kWords + offset + g * 4 * kWarpLanes));
        }
      }
    }
    float most = own_maximum > maximum ? own_maximum : maximum;
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
      const float other = shuffle_xor(most, mask);
      most = other > most ? other : most;
    }
    const float base = most == -INFINITY ? 0.0f : most;  // nothing seen so far
    const float before = exp2_fast(maximum - base);
    const float weight = exp2_fast(own_maximum - base);
    maximum = most;
    float added = own_sum * weight;
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) added += shuffle_xor(added, mask);
    sum = sum * before + added;
    SOLITON_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      outputs[g] = make_float4(outputs[g].x * before, outputs[g].y * before, outputs[g].z * before,
                               outputs[g].w * before);
    }
    SOLITON_UNROLL
    for (int k = 0; k < kMergeLoads; ++k) {
      const float scale = shuffle(weight, k);
      SOLITON_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        outputs[g].x += scale * loaded[k][g].x;
        outputs[g].y += scale * loaded[k][g].y;
        outputs[g].z += scale * loaded[k][g].z;
        outputs[g].w += scale * loaded[k][g].w;
      }
    }
  }
  const float scale = 1.0f / sum;
  unsigned char* heads = context.template workspace<unsigned char>(kPlan.vector(VectorId::kHeads).offset);
  SOLITON_UNROLL
  for (int g = 0; g < kGroups; ++g) {
    const int dim = (lane + g * kWarpLanes) * 4;
    if (dim >= kPlan.model.head_dim) continue;
    float4 v =
        make_float4(outputs[g].x * scale, outputs[g].y * scale, outputs[g].z * scale, outputs[g].w * scale);
    SOLITON_UNROLL
    for (int part = 0; part < kShape<kPlan>.parts; ++part) {
      const uint2 packed = make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w));
      store_global(reinterpret_cast<uint2*>(
                       heads + activation_offset(kPlan.rows, part, row, head * kPlan.model.head_dim + dim)),
                   packed);
      if (part + 1 == kShape<kPlan>.parts) break;
      v = make_float4(low_part(v.x), low_part(v.y), low_part(v.z), low_part(v.w));
    }
  }
}

/// Appends the key and value of a row's token to its page.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void append(const Context<kPlan>& context, int row, int kv_head, int layer) {
  constexpr KvShape kKv = kPlan.model.kv();
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
