// Appending a step's keys and values to their pages: by all workers of all CTAs, once nobody reads the layer's pages.
#pragma once

#include "rows/context.cuh"

namespace soliton::rows {

/// Appends the key and value of a row's token to its page.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void append(const Context<kPlan>& context, int row, int kv_head, int layer) {
  constexpr KvShape kKv = kPlan.card_kv();
  constexpr QkvLayout kLayout = kQkv<kPlan>;
  const int slot = load_shared(context.held_slots() + row) + context.step;
  const int page = load_shared(context.held_pages() + row) + slot / kKvPageTokens;
  const int physical = load_constant(context.params.tree.pages + page);
  unsigned char* keys =
      static_cast<unsigned char*>(context.params.kv_pool) + kKv.page_offset(physical, layer, kv_head);
  unsigned char* values = keys + kKv.half_bytes();
  const int token = slot % kKvPageTokens;
  const unsigned char* qkv = context.template workspace<unsigned char>(kPlan.heads_in().offset);
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
