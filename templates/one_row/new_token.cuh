// The step's own token in attention. Its key and value come straight from the phase's input: the epilogue
// adds them to attention as one more part, while the consumers read the cache, and appends them to the cache
// one phase later.
#pragma once

#include "one_row/context.cuh"
#include "one_row/input.cuh"

namespace soliton::one_row {

SOLITON_DEVICE float2 unpack_f16(uint32_t packed) {
  return make_float2(f16_to_float(static_cast<uint16_t>(packed)),
                     f16_to_float(static_cast<uint16_t>(packed >> 16)));
}

/// Writes two neighbouring dims as the cache will hold them, part after part; returns what that makes of them.
template <const KernelPlan& kPlan>
SOLITON_DEVICE float2 keep_parts(float2 value, uint32_t* kept) {
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

/// Writes the part of the new token: its scores, a sum of 1 and its value, rounded as the cache will hold it.
/// Keeps its key and value for append_token(). q, k and v are in shared memory, see QueryLayout.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void add_token(const Context<kPlan>& context, int unit) {
  using Layout = QueryLayout<kPlan.model.head_dim>;
  constexpr int kHeadDim = kPlan.model.head_dim;
  AttentionPart<kPlan>& part = context.attention_part(kPlan.consumer_warps);
  uint32_t* kept = context.new_token(unit);
  const auto pair_at = [&](int word) {
    return load_shared(reinterpret_cast<const float2*>(context.query() + word));
  };
  const auto query_at = [&](int head, int dim) {
    const auto part_at = [&](bool low) {
      return unpack_f16(load_shared(reinterpret_cast<const uint32_t*>(context.query()) +
                                    Layout::query_word(head, dim, low)));
    };
    const float2 high = part_at(false);
    const float2 low = part_at(true);
    return make_float2(high.x + low.x, high.y + low.y);
  };
  float dot[kHeadsPerBlock] = {};
  for (int pair = context.lane; pair < kHeadDim / 2; pair += kWarpLanes) {
    const float2 key = pair_at(Layout::kKey + 2 * pair);
    const float2 value = pair_at(Layout::kValue + 2 * pair);
    const float2 rounded_key = keep_parts<kPlan>(key, kept + pair);
    const float2 rounded_value = keep_parts<kPlan>(value, kept + kHeadDim / 2 + pair);
    SOLITON_UNROLL
    for (int head = 0; head < kHeadsPerBlock; ++head) {
      const float2 query = query_at(head, 2 * pair);
      dot[head] += query.x * rounded_key.x + query.y * rounded_key.y;
      store_shared(reinterpret_cast<float2*>(part.output[head]) + pair, rounded_value);
    }
  }
  SOLITON_UNROLL
  for (int head = 0; head < kHeadsPerBlock; ++head) {
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) dot[head] += shuffle_xor(dot[head], mask);
    if (context.lane == 0) {
      store_shared(&part.maximum[head], dot[head] * kPlan.model.score_scale);
      store_shared(&part.sum[head], 1.0f);
    }
  }
}

/// Appends the key and value that add_token() kept to their pages. Only in the phase after attention: by then
/// every CTA has published what it computed from the pages, so no copy still reads the one that is written.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void append_token(const Context<kPlan>& context, int layer, int kv_slot, int unit) {
  constexpr KvShape kKv = kPlan.card_kv();
  const int position = context.position();
  const int physical = load_constant(context.params.page_table + position / kKvPageTokens);
  unsigned char* keys =
      static_cast<unsigned char*>(context.params.kv_pool) + kKv.page_offset(physical, layer, kv_slot);
  unsigned char* values = keys + kKv.half_bytes();
  const int token = position % kKvPageTokens;
  const uint32_t* kept = context.new_token(unit);
  // The lanes that kept a pair write it.
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

}  // namespace soliton::one_row
