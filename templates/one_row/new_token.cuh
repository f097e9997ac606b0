// The step's own token in attention. Its key and value come straight from the phase's input: the epilogue
// rounds and scores them while the consumers read the cache, these merge them as one more part, and the epilogue appends
// them to the cache one phase later.
#pragma once

#include "one_row/context.cuh"
#include "one_row/input.cuh"
#include "ops/cached_bytes.cuh"

namespace soliton::one_row {

/// Writes two neighbouring dims as the cache will hold them, part after part; returns what that makes of them. `exponent`: of
/// a cache of bytes, whose values are kept as f16.
template <const KernelPlan& kPlan>
SOLITON_DEVICE float2 keep_parts(float2 value, uint32_t* kept, int exponent) {
  if constexpr (kPlan.model.kv_e4m3) {
    const uint32_t packed = PairOfBytes(exponent).rounded(pack_f16(value.x, value.y));
    store_shared(kept, packed);
    return unpack_f16(packed);
  } else {
    float2 rounded = make_float2(0, 0);
    SOLITON_UNROLL
    for (int part = 0; part < kPlan.model.kv().parts; ++part) {
      const uint32_t packed = pack_f16(value.x - rounded.x, value.y - rounded.y);
      store_shared(kept + part * kPlan.model.head_dim, packed);
      const float2 unpacked = unpack_f16(packed);
      rounded = make_float2(rounded.x + unpacked.x, rounded.y + unpacked.y);
    }
    return rounded;
  }
}

/// Four neighbouring dims of the value that add_token() kept, as the cache will hold it.
template <const KernelPlan& kPlan>
SOLITON_DEVICE float4 kept_value(const Context<kPlan>& context, int unit, int dim) {
  constexpr int kHeadDim = kPlan.model.head_dim;
  float4 value = make_float4(0, 0, 0, 0);
  SOLITON_UNROLL
  for (int part = 0; part < kPlan.model.kv().parts; ++part) {
    const uint32_t* kept = context.new_token(unit) + part * kHeadDim + (kHeadDim + dim) / 2;
    const uint2 packed = load_shared(reinterpret_cast<const uint2*>(kept));
    const float2 first = unpack_f16(packed.x);
    const float2 second = unpack_f16(packed.y);
    value = make_float4(value.x + first.x, value.y + first.y, value.z + second.x, value.w + second.y);
  }
  return value;
}

/// Rounds the new token's key and value as the cache will hold them, and keeps them for merge_parts() and
/// append_token(); scores the key. q, k and v are in shared memory, see Context::staged(). `first_head`: of the unit's, of the
/// model.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void add_token(const Context<kPlan>& context, int unit, int layer, int first_head) {
  constexpr int kHeadDim = kPlan.model.head_dim;
  uint32_t* kept = context.new_token(unit);
  // Neighbouring dims, the first of which is even.
  const auto pair_at = [&](int row, int dim) {
    return load_shared(reinterpret_cast<const float2*>(context.staged(row, dim)) + dim % 4 / 2);
  };
  const auto query_at = [&](int head, int dim) {
    const auto* group = reinterpret_cast<const uint32_t*>(context.staged(head, dim)) + dim % 4 / 2;
    const float2 high = unpack_f16(load_shared(group));
    const float2 low = unpack_f16(load_shared(group + 2));
    return make_float2(high.x + low.x, high.y + low.y);
  };
  int key_exponent = 0;
  int value_exponent = 0;
  if constexpr (kPlan.model.kv_e4m3) {
    float largest[2] = {};
    for (int pair = context.lane; pair < kHeadDim / 2; pair += kWarpLanes) {
      largest[0] = larger_magnitude(largest[0], pair_at(kKeyRow, 2 * pair));
      largest[1] = larger_magnitude(largest[1], pair_at(kValueRow, 2 * pair));
    }
    key_exponent = exponent_of_warp(largest[0]);
    value_exponent = exponent_of_warp(largest[1]);
  }
  float dot[kHeadsPerBlock] = {};
  for (int pair = context.lane; pair < kHeadDim / 2; pair += kWarpLanes) {
    const float2 key = pair_at(kKeyRow, 2 * pair);
    const float2 value = pair_at(kValueRow, 2 * pair);
    const float2 rounded_key = keep_parts<kPlan>(key, kept + pair, key_exponent);
    keep_parts<kPlan>(value, kept + kHeadDim / 2 + pair, value_exponent);
    SOLITON_UNROLL
    for (int head = 0; head < kHeadsPerBlock; ++head) {
      const float2 query = query_at(head, 2 * pair);
      dot[head] += query.x * rounded_key.x + query.y * rounded_key.y;
    }
  }
  SOLITON_UNROLL
  for (int head = 0; head < kHeadsPerBlock; ++head) {
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) dot[head] += shuffle_xor(dot[head], mask);
    const int position = context.position();
    const float score = Variant<kPlan>(layer).score(dot[head], {first_head + head, position, position});
    if (context.lane == 0) store_shared(context.token_scores() + head, score * Variant<kPlan>::kScale);
  }
}

/// Writes a token's key and value, of which lanes have pairs of dims as f16, as bytes.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void append_bytes(unsigned char* keys, unsigned char* values, int token, const uint32_t* kept,
                                 int lane) {
  constexpr KvShape kKv = kPlan.card_kv();
  constexpr int kHalf = kKv.head_dim / 2;
  float largest[2] = {};
  for (int pair = lane; pair < kHalf; pair += kWarpLanes) {
    largest[0] = larger_magnitude(largest[0], unpack_f16(load_shared(kept + pair)));
    largest[1] = larger_magnitude(largest[1], unpack_f16(load_shared(kept + kHalf + pair)));
  }
  const int key_exponent = exponent_of_warp(largest[0]);
  const int value_exponent = exponent_of_warp(largest[1]);
  if (lane == 0) {
    store_global(keys + kKv.exponent_offset(token), static_cast<unsigned char>(key_exponent));
    store_global(values + kKv.exponent_offset(token), static_cast<unsigned char>(value_exponent));
  }
  SOLITON_NO_UNROLL
  for (int pair = lane; pair < kHalf; pair += kWarpLanes) {
    const uint32_t key = PairOfBytes(key_exponent).bytes(load_shared(kept + pair));
    const uint32_t value = PairOfBytes(value_exponent).bytes(load_shared(kept + kHalf + pair));
    store_global(reinterpret_cast<uint16_t*>(keys + kKv.key_offset(token, 2 * pair)),
                 static_cast<uint16_t>(key));
    store_global(values + kKv.value_offset(token, 2 * pair), static_cast<unsigned char>(value));
    store_global(values + kKv.value_offset(token, 2 * pair + 1), static_cast<unsigned char>(value >> 8));
  }
}

/// Appends the key and value that add_token() kept to their pages. Only in the phase after attention: by then
/// every CTA has published what it computed from the pages, so no copy still reads the one that is written.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void append_token(const Context<kPlan>& context, int layer, int kv_slot, int unit) {
  constexpr KvShape kKv = kPlan.card_kv();
  const int position = context.position();
  const int physical =
      physical_page<kPlan>(context.params, context.params.page_table, position / kKvPageTokens, layer);
  unsigned char* keys = kv_page<kPlan>(context.params, physical, layer, kv_slot);
  unsigned char* values = keys + kKv.half_bytes();
  const int token = position % kKvPageTokens;
  const uint32_t* kept = context.new_token(unit);
  // The lanes that kept a pair write it.
  if constexpr (kKv.e4m3) {
    append_bytes<kPlan>(keys, values, token, kept, context.lane);
  } else {
    SOLITON_NO_UNROLL
    for (int pair = context.lane; pair < kKv.head_dim / 2; pair += kWarpLanes) {
      SOLITON_UNROLL
      for (int part = 0; part < kKv.parts; ++part) {
        const uint32_t* own = kept + part * kKv.head_dim + pair;
        store_global(reinterpret_cast<uint32_t*>(keys + kKv.key_offset(token, 2 * pair, part)),
                     load_shared(own));
        const uint32_t value = load_shared(own + kKv.head_dim / 2);
        store_global(reinterpret_cast<uint16_t*>(values + kKv.value_offset(token, 2 * pair, part)),
                     static_cast<uint16_t>(value));
        store_global(reinterpret_cast<uint16_t*>(values + kKv.value_offset(token, 2 * pair + 1, part)),
                     static_cast<uint16_t>(value >> 16));
      }
    }
  }
}

}  // namespace soliton::one_row
