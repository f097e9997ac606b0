// Where the qkv phase puts heads: f16 as attention reads them, see QkvLayout; or, where heads are normed first, q and
// k as floats for the phase that norms them.
#pragma once

#include "ops/head_norm.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

/// Two neighbouring dims.
SOLITON_DEVICE void put_pair(unsigned char* to, float2 v) {
  store_global(reinterpret_cast<uint32_t*>(to), pack_f16(v.x, v.y));
}

/// Two neighbouring dims in `parts` parts, of which `offset(part)` says where they go.
template <int parts, class Offset>
SOLITON_DEVICE void put_parts(unsigned char* to, float2 v, const Offset& offset) {
  SOLITON_UNROLL
  for (int part = 0; part < parts; ++part) {
    put_pair(to + offset(part), v);
    if (part + 1 < parts) v = make_float2(low_part_f16(v.x), low_part_f16(v.y));
  }
}

/// Two neighbouring dims of a query.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void put_query(unsigned char* to, int kv_head, int query, int dim, float2 v) {
  constexpr QkvLayout kLayout = kQkv<kPlan>;
  put_parts<kShape<kPlan>.parts>(to, v,
                                 [&](int part) { return kLayout.query_offset(kv_head, query, dim, part); });
}

/// Two neighbouring dims of a row's key.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void put_key(unsigned char* to, int kv_head, int row, int dim, float2 v) {
  constexpr QkvLayout kLayout = kQkv<kPlan>;
  put_parts<kLayout.kv.parts>(to + kLayout.keys_offset(kv_head), v,
                              [&](int part) { return kLayout.kv.key_offset(row, dim, part); });
}

/// Dim `dim` of head `head` of q | k of a row, neither normed nor rotated: [row][head][head_dim].
template <const KernelPlan& kPlan>
SOLITON_DEVICE float* unnormed(const Context<kPlan>& context, int row, int head, int dim) {
  return context.template workspace<float>(kPlan.vector(VectorId::kUnnormed).offset) +
         (row * kPlan.model.rotary_heads() + head) * kPlan.model.head_dim + dim;
}

/// Norms and rotates the heads of q and k of all rows: by all warps of all CTAs, which have numbers `first`,
/// first + stride, ...; as many heads at a time as a warp holds.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void norm_heads(const Context<kPlan>& context, int first, int stride, int layer) {
  constexpr int kLanes = HeadNorm<kPlan>::kLanes;
  constexpr int kAtOnce = kWarpLanes / kLanes;
  unsigned char* to = context.template workspace<unsigned char>(kPlan.vector(VectorId::kQkv).offset);
  const int num_heads = context.params.tree.num_rows * kPlan.model.rotary_heads();
  SOLITON_NO_UNROLL
  for (int i = first * kAtOnce; i < num_heads; i += stride * kAtOnce) {
    const int index = i + context.lane / kLanes;
    const bool present = index < num_heads;
    const int row = present ? index / kPlan.model.rotary_heads() : 0;
    const int head = index % kPlan.model.rotary_heads();
    const int dim = context.lane % kLanes * 4;
    float4 v = make_float4(0, 0, 0, 0);
    if (present) v = load_global(reinterpret_cast<const float4*>(unnormed(context, row, head, dim)));
    HeadNorm<kPlan> norm;
    norm.load(context.params, {layer, context.position(row), head >= kPlan.model.num_heads, present},
              context.lane);
    v = norm.finish(v, context.lane);
    if (!present) continue;
    for (int pair = 0; pair < 4; pair += 2) {
      const float2 two = pair == 0 ? make_float2(v.x, v.y) : make_float2(v.z, v.w);
      if (head < kPlan.model.num_heads) {
        put_query<kPlan>(to, head / kPlan.model.group(),
                         row * kPlan.model.group() + head % kPlan.model.group(), dim + pair, two);
      } else {
        put_key<kPlan>(to, head - kPlan.model.num_heads, row, dim + pair, two);
      }
    }
  }
}

}  // namespace soliton::rows
