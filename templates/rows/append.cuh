// Appending a step's keys and values to their pages: by all workers of all CTAs, once nobody reads the layer's pages.
#pragma once

#include "rows/context.cuh"

namespace soliton::rows {

/// The key and value of a row's token in one KV head, on their way to its page: a lane has pairs of dims.
template <const KernelPlan& kPlan>
class NewToken {
 public:
  /// All loads are on their way when this returns.
  SOLITON_DEVICE NewToken(const Context<kPlan>& context, int row, int kv_head, int layer)
      : lane_(opaque(context.lane)) {  // no register holds addresses for the launch
    constexpr KvShape kKv = kPlan.card_kv();
    constexpr QkvLayout kLayout = kQkv<kPlan>;
    const int slot = load_shared(context.held_slots() + row) + context.step;
    const int page = load_shared(context.held_pages() + row) + slot / kKvPageTokens;
    const int physical = load_constant(context.params.tree.pages + page);
    token_ = slot % kKvPageTokens;
    keys_ = static_cast<unsigned char*>(context.params.kv_pool) + kKv.page_offset(physical, layer, kv_head);
    const unsigned char* qkv = context.template workspace<unsigned char>(kPlan.heads_in().offset);
    const unsigned char* keys = qkv + kLayout.keys_offset(kv_head);
    const unsigned char* values = qkv + kLayout.values_offset(kv_head);
    on_dims([&](int i, int dim, int part) {
      loaded_[i].key = load_global(reinterpret_cast<const uint32_t*>(keys + kKv.key_offset(row, dim, part)));
      SOLITON_UNROLL
      for (int k = 0; k < 2; ++k) {
        loaded_[i].values[k] =
            load_global(reinterpret_cast<const uint16_t*>(values + kKv.value_offset(row, dim + k, part)));
      }
    });
  }
  SOLITON_DEVICE void store() const {
    constexpr KvShape kKv = kPlan.card_kv();
    unsigned char* values = keys_ + kKv.half_bytes();
    on_dims([&](int i, int dim, int part) {
      store_global(reinterpret_cast<uint32_t*>(keys_ + kKv.key_offset(token_, dim, part)), loaded_[i].key);
      SOLITON_UNROLL
      for (int k = 0; k < 2; ++k) {
        store_global(reinterpret_cast<uint16_t*>(values + kKv.value_offset(token_, dim + k, part)),
                     loaded_[i].values[k]);
      }
    });
  }

 private:
  static constexpr int kParts = kPlan.card_kv().parts;
  static constexpr int kHeadDim = kPlan.card_kv().head_dim;
  static constexpr int kPairs = ceil_divide(kHeadDim, 2 * kWarpLanes);  // of a lane

  struct Pair {
    uint32_t key;
    uint16_t values[2];
  };

  template <class Visit>
  SOLITON_DEVICE void on_dims(const Visit& visit) const {
    SOLITON_UNROLL
    for (int i = 0; i < kPairs * kParts; ++i) {
      const int dim = (i / kParts * kWarpLanes + lane_) * 2;
      if (dim < kHeadDim) visit(i, dim, i % kParts);
    }
  }

  int lane_;
  int token_;  // of the page
  unsigned char* keys_;
  Pair loaded_[kPairs * kParts];
};

/// Appends the new tokens of a layer, of each KV head of a row a warp.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void append_new_tokens(const Context<kPlan>& context, int worker, int layer) {
  const int kv_heads = context.card_kv_heads();
  SOLITON_NO_UNROLL
  for (int i = context.first_unit(worker); i < context.params.tree.num_rows * kv_heads;
       i += Context<kPlan>::kUnitStride)
    NewToken<kPlan>(context, i / kv_heads, i % kv_heads, layer).store();
}

}  // namespace soliton::rows
