// Appending a step's keys and values to their pages: by all workers of all CTAs, once nobody reads the layer's pages.
#pragma once

#include "ops/cached_bytes.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

/// Of a cache of bytes: makes them of the key and value of a token, which are f16 still.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void append_bytes(const Context<kPlan>& context, int row, int kv_head, int layer) {
  constexpr KvShape kKv = kPlan.card_kv();
  constexpr QkvLayout kLayout = kQkv<kPlan>;
  constexpr int kPairs = ceil_divide(kKv.head_dim, 2 * kWarpLanes);  // of a lane
  const int slot = context.slot_of(row) + context.step;
  const int page = context.first_page_of(row) + slot / kKvPageTokens;
  const int physical = physical_page<kPlan>(context.params, context.params.tree.pages, page, layer);
  const int token = slot % kKvPageTokens;
  unsigned char* keys = kv_page<kPlan>(context.params, physical, layer, kv_head);
  unsigned char* values = keys + kKv.half_bytes();
  const unsigned char* qkv = context.template workspace<unsigned char>(kPlan.heads_in().offset);
  const unsigned char* new_keys = qkv + kLayout.keys_offset(kv_head);
  const unsigned char* new_values = qkv + kLayout.values_offset(kv_head);
  const auto load_value = [&](int dim) {
    return load_global(reinterpret_cast<const uint16_t*>(new_values + kLayout.kv.value_offset(row, dim)));
  };
  const auto dim_of = [&](int i) { return (i * kWarpLanes + context.lane) * 2; };
  uint32_t key[kPairs] = {};
  uint32_t value[kPairs] = {};
  float largest[2] = {};
  SOLITON_UNROLL
  for (int i = 0; i < kPairs; ++i) {
    const int dim = dim_of(i);
    if (dim >= kKv.head_dim) continue;
    key[i] = load_global(reinterpret_cast<const uint32_t*>(new_keys + kLayout.kv.key_offset(row, dim)));
    value[i] = load_value(dim) | static_cast<uint32_t>(load_value(dim + 1)) << 16;
    largest[0] = larger_magnitude(largest[0], unpack_f16(key[i]));
    largest[1] = larger_magnitude(largest[1], unpack_f16(value[i]));
  }
  const int exponents[] = {exponent_of_warp(largest[0]), exponent_of_warp(largest[1])};
  if (context.lane == 0) {
    store_global(keys + kKv.exponent_offset(token), static_cast<unsigned char>(exponents[0]));
    store_global(values + kKv.exponent_offset(token), static_cast<unsigned char>(exponents[1]));
  }
  SOLITON_UNROLL
  for (int i = 0; i < kPairs; ++i) {
    const int dim = dim_of(i);
    if (dim >= kKv.head_dim) continue;
    const uint32_t two = PairOfBytes(exponents[1]).bytes(value[i]);
    store_global(reinterpret_cast<uint16_t*>(keys + kKv.key_offset(token, dim)),
                 static_cast<uint16_t>(PairOfBytes(exponents[0]).bytes(key[i])));
    store_global(values + kKv.value_offset(token, dim), static_cast<unsigned char>(two));
    store_global(values + kKv.value_offset(token, dim + 1), static_cast<unsigned char>(two >> 8));
  }
}

/// Pairs of dims that a lane has of the key and value of a token in one KV head: of few rows a warp appends one of each lane's, of
/// many all, which then are on their way at once.
template <const KernelPlan& kPlan>
constexpr int kAppendedPairs = ceil_divide(kPlan.model.head_dim, 2 * kWarpLanes) * kPlan.card_kv().parts;
template <const KernelPlan& kPlan>
constexpr int kAppendShares =
    kPlan.model.kv_e4m3 || kShape<kPlan>.appends_at_once ? 1 : kAppendedPairs<kPlan>;

/// Appends the key and value of a row's token in one KV head to its page, or share `share` of them.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void append(const Context<kPlan>& context, int row, int kv_head, int share, int layer) {
  constexpr KvShape kKv = kPlan.card_kv();
  constexpr QkvLayout kLayout = kQkv<kPlan>;
  constexpr int kParts = kKv.parts;
  constexpr int kHeadDim = kKv.head_dim;
  constexpr int kPairs = kAppendedPairs<kPlan>;
  const int lane = kShape<kPlan>.appends_at_once
                       ? opaque(context.lane)
                       : context.lane;  // no register holds addresses for the launch
  const int slot = context.slot_of(row) + context.step;
  const int page = context.first_page_of(row) + slot / kKvPageTokens;
  const int physical = physical_page<kPlan>(context.params, context.params.tree.pages, page, layer);
  unsigned char* keys = kv_page<kPlan>(context.params, physical, layer, kv_head);
  unsigned char* values = keys + kKv.half_bytes();
  const int token = slot % kKvPageTokens;
  const unsigned char* qkv = context.template workspace<unsigned char>(kPlan.heads_in().offset);
  const unsigned char* new_keys = qkv + kLayout.keys_offset(kv_head);
  const unsigned char* new_values = qkv + kLayout.values_offset(kv_head);
  const auto load_key = [&](int dim, int part) {
    return load_global(reinterpret_cast<const uint32_t*>(new_keys + kKv.key_offset(row, dim, part)));
  };
  const auto load_value = [&](int dim, int part) {
    return load_global(reinterpret_cast<const uint16_t*>(new_values + kKv.value_offset(row, dim, part)));
  };
  const auto store_key = [&](int dim, int part, uint32_t key) {
    store_global(reinterpret_cast<uint32_t*>(keys + kKv.key_offset(token, dim, part)), key);
  };
  const auto store_value = [&](int dim, int part, uint16_t value) {
    store_global(reinterpret_cast<uint16_t*>(values + kKv.value_offset(token, dim, part)), value);
  };
  // Where every lane has a pair nobody asks: what is loaded under a condition would have registers for the whole launch.
  constexpr bool kIsWhole = kHeadDim % (2 * kWarpLanes) == 0;
  constexpr int kOwn = kPairs / kAppendShares<kPlan>;
  const auto on_pairs = [&](const auto& visit) {
    SOLITON_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int pair = share * kOwn + i;
      const int dim = (pair / kParts * kWarpLanes + lane) * 2;
      if (kIsWhole || dim < kHeadDim) visit(i, dim, pair % kParts);
    }
  };
  uint32_t new_key[kOwn];
  uint16_t new_value[kOwn][2];
  on_pairs([&](int i, int dim, int part) {
    new_key[i] = load_key(dim, part);
    new_value[i][0] = load_value(dim, part);
    new_value[i][1] = load_value(dim + 1, part);
  });
  on_pairs([&](int i, int dim, int part) {
    store_key(dim, part, new_key[i]);
    store_value(dim, part, new_value[i][0]);
    store_value(dim + 1, part, new_value[i][1]);
  });
}

/// Appends the new tokens of a layer, of each KV head of a row a warp or as many as have shares of it: of several teams those first that
/// have fewest tiles to finish.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void append_new_tokens(const Context<kPlan>& context, int worker, int layer) {
  constexpr int kShares = kAppendShares<kPlan>;
  if constexpr (kShape<kPlan>.teams() > 1) worker = kWorkers - 1 - worker;
  const int kv_heads = context.card_kv_heads();
  SOLITON_NO_UNROLL
  for (int i = context.first_unit(worker); i < context.params.tree.num_rows * kv_heads * kShares;
       i += Context<kPlan>::kUnitStride) {
    const int head = i / kShares;
    if constexpr (kPlan.model.kv_e4m3) {
      append_bytes(context, head / kv_heads, head % kv_heads, layer);
    } else {
      append(context, head / kv_heads, head % kv_heads, i % kShares, layer);
    }
  }
}

}  // namespace soliton::rows
