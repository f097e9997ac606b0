// Attention of one new token over the paged KV cache (flash decoding on tensor cores).
//
// A head block is up to four query heads of one KV head. In every mma their high-order parts are columns 0..3
// of the B operand and their low-order parts columns 4..7, as in input.cuh. Each consumer warp takes every
// kWarps-th tile of 16 tokens: scores = K q (rows are tokens), probabilities turn from accumulator into
// operand by two 8x8 transposes, output = V^T p (rows are dims). Softmax is online, in base 2, one running
// maximum a head and warp. The cache holds f16: as many bytes as bf16, but 8 times as exact, and keys and
// values are well inside its range. The new token never goes through the ring: warp 0 of the last split
// begins with it.
//
// Lane 4 g + j of an accumulator holds columns 2 j and 2 j + 1: heads 2 (j % 2) and 2 (j % 2) + 1, high part
// if j < 2.
#pragma once

#include "ops/consumer.cuh"

namespace soliton {

template <class Plan>
class AttentionState {
 public:
  static constexpr int kHeadDim = Plan::kHeadDim;
  static constexpr int kSteps =
      kHeadDim / kMmaColumns;                    // mma of one token tile for the scores, and for the output
  static constexpr int kQuarter = kHeadDim / 4;  // dims of q that one lane holds

  /// q: the dims of lane quad j of head lane / 4 % 4.
  SOLITON_DEVICE void begin(const float4 (&q)[kQuarter / 4], int lane) {
    const bool low = lane / 4 >= kHeadsPerBlock;
    SOLITON_UNROLL
    for (int i = 0; i < kSteps; ++i) query_[i] = low ? pack_low_f16(q[i]) : pack_high_f16(q[i]);
    SOLITON_UNROLL
    for (int h = 0; h < 2; ++h) {
      maximum_[h] = -INFINITY;
      sum_[h] = 0.0f;
    }
    SOLITON_UNROLL
    for (int i = 0; i < kSteps; ++i) {
      SOLITON_UNROLL
      for (int r = 0; r < 4; ++r) output_[i][r] = 0.0f;
    }
  }

  /// Begins with the new token. key: the dims of this lane's quad; value(dim) gives its value. Both rounded
  /// to f16, as the cache will hold them.
  template <class Value>
  SOLITON_DEVICE void begin_with_token(const float4 (&q)[kQuarter / 4], const float4 (&key)[kQuarter / 4],
                                       int lane, const Value& value) {
    float dot = 0.0f;
    SOLITON_UNROLL
    for (int i = 0; i < kQuarter / 4; ++i) {
      dot += q[i].x * round_f16(key[i].x) + q[i].y * round_f16(key[i].y) + q[i].z * round_f16(key[i].z) +
             q[i].w * round_f16(key[i].w);
    }
    dot += shuffle_xor(dot, 1);
    dot += shuffle_xor(dot, 2);
    SOLITON_UNROLL
    for (int h = 0; h < 2; ++h) {
      maximum_[h] = shuffle(dot, (lane % 2 * 2 + h) * 4) * Plan::kScoreScale;
      sum_[h] = lane / 4 == 0 ? 1.0f : 0.0f;
    }
    const bool high = lane % 4 < 2;
    SOLITON_UNROLL
    for (int i = 0; i < kSteps; ++i) {
      const float upper = round_f16(value(i * 2));
      const float lower = round_f16(value(i * 2 + 1));
      output_[i][0] = output_[i][1] = high ? upper : 0.0f;
      output_[i][2] = output_[i][3] = high ? lower : 0.0f;
    }
  }

  /// Scores of one token tile; afterwards probability operands are ready for add_values(). `first_token` is
  /// the position of its first token; tokens from `end_token` on do not count (at least one does).
  SOLITON_DEVICE uint2 add_scores(const uint4* keys, int lane, int first_token, int end_token) {
    float scores[4] = {};
    SOLITON_UNROLL
    for (int i = 0; i < kSteps; ++i) mma_f16(scores, load_shared(keys + i * kWarpLanes + lane), query_[i]);
    SOLITON_UNROLL
    for (int r = 0; r < 4; ++r) {
      scores[r] = (scores[r] + shuffle_xor(scores[r], 2)) * Plan::kScoreScale;
      if (first_token + lane / 4 + r / 2 * 8 >= end_token) scores[r] = -INFINITY;
    }
    float rescale[2];
    SOLITON_UNROLL
    for (int h = 0; h < 2; ++h) {
      float maximum = scores[h] > scores[h + 2] ? scores[h] : scores[h + 2];
      for (int mask = 4; mask < kWarpLanes; mask *= 2) {
        const float other = shuffle_xor(maximum, mask);
        maximum = other > maximum ? other : maximum;
      }
      maximum = maximum > maximum_[h] ? maximum : maximum_[h];
      rescale[h] = exp2_fast(maximum_[h] - maximum);
      maximum_[h] = maximum;
      scores[h] = exp2_fast(scores[h] - maximum);
      scores[h + 2] = exp2_fast(scores[h + 2] - maximum);
      sum_[h] = sum_[h] * rescale[h] + scores[h] + scores[h + 2];
    }
    SOLITON_UNROLL
    for (int i = 0; i < kSteps; ++i) {
      SOLITON_UNROLL
      for (int r = 0; r < 4; ++r) output_[i][r] *= rescale[r % 2];
    }
    if (lane % 4 >= 2) {
      SOLITON_UNROLL
      for (int r = 0; r < 4; ++r) scores[r] = low_part_f16(scores[r]);
    }
    return make_uint2(transpose_8x8(pack_f16(scores[0], scores[1])),
                      transpose_8x8(pack_f16(scores[2], scores[3])));
  }

  SOLITON_DEVICE void add_values(const uint4* values, int lane, uint2 probabilities) {
    SOLITON_UNROLL
    for (int i = 0; i < kSteps; ++i)
      mma_f16(output_[i], load_shared(values + i * kWarpLanes + lane), probabilities);
  }

  SOLITON_DEVICE void store(AttentionPart<Plan>& part, int lane) {
    const int quad = lane % 4;
    SOLITON_UNROLL
    for (int h = 0; h < 2; ++h) {
      const int head = quad % 2 * 2 + h;
      for (int mask = 4; mask < kWarpLanes; mask *= 2) sum_[h] += shuffle_xor(sum_[h], mask);
      if (lane < 2) {
        store_shared(&part.maximum[head], maximum_[h]);
        store_shared(&part.sum[head], sum_[h]);
      }
      SOLITON_UNROLL
      for (int i = 0; i < kSteps; ++i) {
        const float upper = output_[i][h] + shuffle_xor(output_[i][h], 2);
        const float lower = output_[i][h + 2] + shuffle_xor(output_[i][h + 2], 2);
        if (quad < 2) {
          store_shared(&part.output[head][i * 16 + lane / 4], upper);
          store_shared(&part.output[head][i * 16 + lane / 4 + 8], lower);
        }
      }
    }
  }

 private:
  static SOLITON_DEVICE float round_f16(float value) { return f16_to_float(float_to_f16(value)); }

  uint2 query_[kSteps];
  float maximum_[2];
  float sum_[2];  // of this lane's tokens
  float output_[kSteps][4];
};

template <class Plan>
template <AttentionPhase kPhase>
SOLITON_DEVICE void Consumer<Plan>::attention(int /*layer*/) {
  using State = AttentionState<Plan>;
  constexpr int kHeadDim = Plan::kHeadDim;
  constexpr int kQuarterLoads = kHeadDim / 16;
  constexpr int kGroups = kPhase.input_vector.elements / 4;
  constexpr int kCheckLoads = ceil_divide(kGroups, kWarpLanes * kWarps);
  constexpr int kKeys = Plan::kNumHeads * kHeadDim;  // element where k begins
  constexpr int kValues = kKeys + Plan::kNumKvHeads * kHeadDim;
  begin_phase();
  const int lane = context_.lane;
  const float* input = context_.template workspace<float>(kPhase.input_vector.offset);
  const AttentionShare share = context_.attention_share();
  const int cached = context_.position();
  wait_for_grid(context_);

  // The whole CTA sees the whole vector: only then may it say so by signing the output. And every warp sees a
  // word of it: only then may it go on to the next phase.
  PolledLoads<float4, kCheckLoads, Plan::kSync> rest;
  const auto rest_address = [&](int i) {
    const int group = (i * kWarps + warp_) * kWarpLanes + lane;
    const bool inside = kGroups % (kWarps * kWarpLanes) == 0 || group < kGroups;
    return reinterpret_cast<const float4*>(input) + (inside ? group : kGroups - 1);
  };
  const auto see_rest = [&] {
    if constexpr (Plan::kSync == SyncMode::kSelfValidating) {
      rest.issue(rest_address, always);
      rest.complete(context_, WaitKind::kVector, rest_address);
      if (warp_ == 0) {
        Signatures<Plan, kPhase.input_vector> signatures;
        signatures.issue(context_);
        signatures.complete(context_);
      }
    }
  };

  for (int unit = 0; unit < share.count; ++unit) {
    const HeadBlock<Plan> heads(share.first_block + unit * Plan::kNumCtas);
    const bool with_token = warp_ == 0 && share.split == share.num_splits - 1;
    const int head = lane / 4 % kHeadsPerBlock;
    const float* q =
        input + (heads.first_head + (head < heads.count ? head : 0)) * kHeadDim + lane % 4 * (kHeadDim / 4);
    PolledLoads<float4, kQuarterLoads, Plan::kSync> query;
    const auto query_address = [&](int i) { return reinterpret_cast<const float4*>(q) + i; };
    const float* k = input + kKeys + heads.kv_head * kHeadDim + lane % 4 * (kHeadDim / 4);
    const float* v = input + kValues + heads.kv_head * kHeadDim + lane / 4;
    query.issue(query_address, always);
    if (unit == 0) see_rest();
    query.complete(context_, WaitKind::kVector, query_address);

    State state;
    state.begin(query.value, lane);
    if (with_token) {
      PolledLoads<float4, kQuarterLoads, Plan::kSync> key;
      PolledLoads<float, State::kSteps * 2, Plan::kSync> value;
      const auto key_address = [&](int i) { return reinterpret_cast<const float4*>(k) + i; };
      const auto value_address = [&](int i) { return v + i * 8; };
      key.issue(key_address, always);
      value.issue(value_address, always);
      key.complete(context_, WaitKind::kVector, key_address);
      value.complete(context_, WaitKind::kVector, value_address);
      state.begin_with_token(query.value, key.value, lane, [&](int i) { return value.value[i]; });
    }
    if (unit == share.count - 1) report_input(0.0f);

    constexpr int kTiles = kv_slot_tokens(kHeadDim) / 16;  // token tiles of a slot
    constexpr int kOwnTiles = ceil_divide(kTiles, kWarps);
    constexpr int kSlots = kv_slots_per_half(kHeadDim);
    constexpr int kTileFragments = kHeadDim / 16 * kWarpLanes;  // 16-byte words of a token tile
    for (int slot = share.first_page * kSlots; slot < share.end_page * kSlots; ++slot) {
      const int first_own = ((warp_ - slot * kTiles) % kWarps + kWarps) % kWarps;
      const int key_slot = wait_page();
      const int value_slot = wait_page();
      const uint4* keys = reinterpret_cast<const uint4*>(page_bytes(key_slot));
      const uint4* values = reinterpret_cast<const uint4*>(page_bytes(value_slot));
      SOLITON_UNROLL
      for (int own = 0; own < kOwnTiles; ++own) {
        const int tile = first_own + own * kWarps;
        const int token = (slot * kTiles + tile) * 16;
        if (tile < kTiles && token < cached) {
          const uint2 probabilities = state.add_scores(keys + tile * kTileFragments, lane, token, cached);
          state.add_values(values + tile * kTileFragments, lane, probabilities);
        }
      }
      release_page(key_slot);
      release_page(value_slot);
    }

    // Pairs with the epilogue's arrival once it has taken the unit before.
    if (units_ > 0) {
      context_.wait(context_.barriers().attention_empty, (units_ - 1) & 1, WaitKind::kAttentionEmpty, units_);
    }
    state.store(context_.attention_part(warp_), lane);
    warp_arrive(&context_.barriers().attention_full);
    ++units_;
  }

  if (share.count == 0) {
    see_rest();
    report_input(0.0f);
  }
  end_phase();
}

}  // namespace soliton
