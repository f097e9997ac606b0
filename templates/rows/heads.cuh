// Where the qkv phase puts heads: f16 as attention reads them, see QkvLayout; or, where heads are normed first, q and
// k as floats for the phase that norms them. Of several cards each has its own heads: numbers are of the model where
// nothing else is said.
#pragma once

#include "ops/head_norm.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

/// Two neighbouring dims in `parts` parts, of which `offset(part)` says where they go on the card that has the KV head.
template <int parts, const KernelPlan& kPlan, class Offset>
SOLITON_DEVICE void put_parts(const Context<kPlan>& context, int kv_head, unsigned char* to, float2 v,
                              const Offset& offset) {
  SOLITON_UNROLL
  for (int part = 0; part < parts; ++part) {
    context.publish_of_head(kv_head, reinterpret_cast<uint32_t*>(to + offset(part)), pack_f16(v.x, v.y));
    if (part + 1 < parts) v = make_float2(low_part_f16(v.x), low_part_f16(v.y));
  }
}

/// Two neighbouring dims of a query.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void put_query(const Context<kPlan>& context, int kv_head, int query, int dim, float2 v) {
  constexpr QkvLayout kLayout = kQkv<kPlan>;
  unsigned char* to = context.template workspace<unsigned char>(kPlan.heads_in().offset);
  put_parts<kShape<kPlan>.parts>(context, kv_head, to, v, [&](int part) {
    return kLayout.query_offset(kv_head / kPlan.num_cards, query, dim, part);
  });
}

/// Two neighbouring dims of a row's key.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void put_key(const Context<kPlan>& context, int kv_head, int row, int dim, float2 v) {
  constexpr QkvLayout kLayout = kQkv<kPlan>;
  unsigned char* to = context.template workspace<unsigned char>(kPlan.heads_in().offset);
  put_parts<kLayout.kv.parts>(context, kv_head, to + kLayout.keys_offset(kv_head / kPlan.num_cards), v,
                              [&](int part) { return kLayout.kv.key_offset(row, dim, part); });
}

/// Dim `dim` of head `head` of q | k of a row, neither normed nor rotated: [row][head][head_dim].
template <const KernelPlan& kPlan>
SOLITON_DEVICE float* unnormed(const Context<kPlan>& context, int row, int head, int dim) {
  return context.template workspace<float>(kPlan.unnormed_heads().offset) +
         (row * kPlan.model.rotary_heads() + head) * kPlan.model.head_dim + dim;
}

/// The sum of squares of a row's tile of q | k, where all heads are normed together: behind q and k, [row][tile].
template <const KernelPlan& kPlan>
SOLITON_DEVICE float* joint_squares(const Context<kPlan>& context, int row, int tile) {
  constexpr int kDims = kPlan.model.rotary_heads() * kPlan.model.head_dim;
  return context.template workspace<float>(kPlan.unnormed_heads().offset) + kPlan.rows * kDims +
         row * (kDims / kTileRows) + tile;
}

/// The factor of a head of q or k by them, of which the lanes that hold the head add up some each. Collective.
template <const KernelPlan& kPlan>
SOLITON_DEVICE JointScales joint_scales(const Context<kPlan>& context, int row, int head) {
  if constexpr (!kPlan.model.joint_norm) return {};
  constexpr int kLanes = HeadNorm<kPlan>::kLanes;
  constexpr int kHeadTiles = kPlan.model.head_dim / kTileRows;
  const bool is_key = head >= kPlan.model.num_heads;
  const int first = is_key ? kPlan.model.num_heads * kHeadTiles : 0;
  const int count = (is_key ? kPlan.model.num_kv_heads : kPlan.model.num_heads) * kHeadTiles;
  const float* squares = joint_squares(context, row, first);
  float sum = 0.0f;
  SOLITON_NO_UNROLL
  for (int tile = context.lane % kLanes; tile < count; tile += kLanes) sum += load_global(squares + tile);
  SOLITON_UNROLL
  for (int mask = 1; mask < kLanes; mask *= 2) sum += shuffle_xor(sum, mask);
  const float scale = rsqrt_fast(sum / static_cast<float>(count * kTileRows) + kPlan.model.norm_epsilon);
  return {scale, scale};
}

/// A lane's share of a head of q or k of a row, on its way through norm and rotation.
template <const KernelPlan& kPlan>
struct HeadOnItsWay {
  static constexpr bool kHasHalves =
      kPlan.model.head_pieces() > 1;  // does a lane have dims of both halves of a head?

  int row;
  int head;  // of the model
  bool present;
  float4 value;
  float4 second;  // of the rear half
  JointScales joint;
  HeadNorm<kPlan> norm;

  /// `index`: among this card's heads of all rows. Collective of the lanes that hold the head.
  SOLITON_DEVICE void load(const Context<kPlan>& context, int index, int num_heads, int layer) {
    const int card_queries = context.card_kv_heads() * kPlan.model.group();
    const int card_heads = card_queries + context.card_kv_heads();
    present = index < num_heads;
    row = present ? index / card_heads : 0;
    const int of_card = index % card_heads;
    head = of_card < card_queries
               ? context.head_of_model(of_card)
               : kPlan.model.num_heads + (of_card - card_queries) * kPlan.num_cards + context.card();
    const auto load_at = [&](int behind) {
      if (!present) return make_float4(0, 0, 0, 0);
      return kAwaits ? load_relaxed(place(context, behind)) : load_global(place(context, behind));
    };
    value = load_at(0);
    if constexpr (kHasHalves) second = load_at(kPlan.model.head_dim / 2);
    joint = joint_scales(context, row, head);
    norm.load(context.params, {layer, context.position(row), head >= kPlan.model.num_heads, present, head},
              context.lane);
  }

  /// Waits until all of it has been written, where it says that itself.
  SOLITON_DEVICE void await(const Context<kPlan>& context) {
    if constexpr (kAwaits) {
      if (!present) return;
      float4 words[kHasHalves ? 2 : 1] = {value};
      if constexpr (kHasHalves) words[1] = second;
      context.await_words(row, words, [&](int i) { return place(context, i * (kPlan.model.head_dim / 2)); });
      value = words[0];
      if constexpr (kHasHalves) second = words[1];
    }
  }

  SOLITON_DEVICE void finish(const Context<kPlan>& context) {
    const int dim = first_dim(context);
    if constexpr (kHasHalves) {
      norm.finish(value, second, joint);
      put(context, dim + kPlan.model.head_dim / 2, second);
    } else {
      value = norm.finish(value, context.lane, joint);
    }
    put(context, dim, value);
  }

 private:
  static constexpr bool kAwaits = awaits_words(kPlan, PhaseKind::kNormHeads);

  /// This lane's four dims of the head, or those `behind` them.
  SOLITON_DEVICE float4* place(const Context<kPlan>& context, int behind) const {
    return reinterpret_cast<float4*>(unnormed(context, row, head, first_dim(context) + behind));
  }
  static SOLITON_DEVICE int first_dim(const Context<kPlan>& context) {
    return context.lane % HeadNorm<kPlan>::kLanes * 4;
  }
  SOLITON_DEVICE void put(const Context<kPlan>& context, int dim, const float4& v) const {
    if (!present) return;
    constexpr int kGroup = kPlan.model.group();
    for (int pair = 0; pair < 4; pair += 2) {
      const float2 two = pair == 0 ? make_float2(v.x, v.y) : make_float2(v.z, v.w);
      if (head < kPlan.model.num_heads) {
        put_query(context, head / kGroup, row * kGroup + head % kGroup, dim + pair, two);
      } else {
        put_key(context, head - kPlan.model.num_heads, row, dim + pair, two);
      }
    }
  }
};

/// Norms and rotates this card's heads of q and k of all rows: by all warps of its CTAs, which have numbers `first`,
/// first + stride, ...; as many heads at a time as a warp holds, and of many rows the loads of several times on their way at
/// once.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void norm_heads(const Context<kPlan>& context, int first, int stride, int layer) {
  constexpr int kHeads = kWarpLanes / HeadNorm<kPlan>::kLanes;
  constexpr int kAtOnce = kShape<kPlan>.normed_heads;
  const int num_heads = context.params.tree.num_rows * context.card_kv_heads() * (kPlan.model.group() + 1);
  SOLITON_NO_UNROLL
  for (int i = first * kHeads; i < num_heads; i += kAtOnce * stride * kHeads) {
    HeadOnItsWay<kPlan> heads[kAtOnce];
    SOLITON_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      const int index = i + k * stride * kHeads + context.lane / HeadNorm<kPlan>::kLanes;
      heads[k].load(context, index, num_heads, layer);
    }
    SOLITON_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      heads[k].await(context);
      heads[k].finish(context);
    }
  }
}

}  // namespace soliton::rows
