// What a consumer warp adds up of the cached tokens of an attention unit, and which tiles of tokens are its own; see
// one_row/attention.cuh.
//
// Lane 4 g + j of an accumulator holds columns 2 j and 2 j + 1: heads 2 (j % 2) and 2 (j % 2) + 1, high part
// if j < 2.
#pragma once

#include "one_row/context.cuh"
#include "ops/split.cuh"

namespace soliton::one_row {

/// The step's query of each head of a block.
template <const KernelPlan& kPlan>
struct BlockQuery {
  Variant<kPlan> variant;
  int first_head;  // of the model
  int position;    // all cached tokens are before it

  /// In base 2, of head `head` of the block and the key at `token`.
  SOLITON_DEVICE float score(float product, int head, int token) const {
    return variant.score(product, {first_head + head, position, token}) * Variant<kPlan>::kScale;
  }
};

template <const KernelPlan& kPlan>
class AttentionState {
 public:
  static constexpr int kHeadDim = kPlan.model.head_dim;
  static constexpr int kSteps =
      kHeadDim / kMmaColumns;  // mma of one token tile for the scores, and for the output
  static constexpr KvShape kKv = kPlan.model.kv();
  static constexpr int kKvParts = kKv.parts;
  /// Of dependent mma: two hide their latency. Where lanes copy and there are experts, registers would spill.
  static constexpr int kChains = kPlan.copies == CopyKind::kBulk || kPlan.model.mixture.experts == 0 ? 2 : 1;

  SOLITON_DEVICE void begin(const Context<kPlan>& context, int lane) {
    constexpr int kQuarter = kHeadDim / 4;  // dims of a lane quad, see KvShape
    const int head = lane / 4 % kHeadsPerBlock;
    const int low = lane / 4 / kHeadsPerBlock;
    SOLITON_UNROLL
    for (int i = 0; i < kSteps; ++i) {
      const unsigned char* group = context.staged(head, lane % 4 * kQuarter + i * 4);
      query_[i] = load_shared(reinterpret_cast<const uint2*>(group) + low);
    }
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

  /// Adds some tiles, all of them at once: instructions of one fill the waits of another's. first_token[t] is the position of the
  /// first token of tile t; only tokens from `first_seen` to the one before the query count (of the tiles at least one does).
  template <int kCount>
  SOLITON_DEVICE void add_tiles(const unsigned char* const (&keys)[kCount],
                                const unsigned char* const (&values)[kCount], int lane,
                                const int (&first_token)[kCount], int first_seen,
                                const BlockQuery<kPlan>& query) {
    float chains[kCount][kChains][4] = {};
    MmaBatch batch;
    SOLITON_UNROLL
    for (int i = 0; i < kKvParts * kSteps; ++i) {
      const int offset = i / kSteps * kKv.part_bytes() + i % kSteps * 2 * kCoreBytes;
      SOLITON_UNROLL
      for (int t = 0; t < kCount; ++t)
        mma_f16(chains[t][i % kChains], load_matrices<kKv.key_stride(), kCoreBytes>(keys[t] + offset, lane),
                query_[i % kSteps]);
    }
    batch.end();
    float scores[kCount][4];
    SOLITON_UNROLL
    for (int t = 0; t < kCount; ++t) {
      SOLITON_UNROLL
      for (int r = 0; r < 4; ++r) {
        float sum = chains[t][0][r];
        if constexpr (kChains > 1) sum += chains[t][1][r];
        const int token = first_token[t] + lane / 4 + r / 2 * 8;
        scores[t][r] = query.score(sum + shuffle_xor(sum, 2), lane % 2 * 2 + r % 2, token);
      }
      hide(scores[t], lane, first_token[t], first_seen, query);
    }
    weigh(scores, 0.0f);
    SOLITON_UNROLL
    for (int t = 0; t < kCount; ++t) add_values(values[t], lane, probabilities(scores[t], lane));
  }

  /// byte_tokens.cuh: the same of two tiles of a cache of bytes that follow one another.
  static constexpr int kByteTiles = 2;
  SOLITON_DEVICE void add_bytes(const unsigned char* keys, const unsigned char* values, int lane,
                                int first_token, int first_seen, const BlockQuery<kPlan>& query);

  SOLITON_DEVICE void store(AttentionPart<kPlan>& part, int lane) {
    const int quad = lane % 4;
    const bool high =
        quad < 2;  // holds sums of high parts: stores rows 0..7 of a step, the others rows 8..15
    SOLITON_UNROLL
    for (int h = 0; h < 2; ++h) {
      const int head = quad % 2 * 2 + h;
      for (int mask = 4; mask < kWarpLanes; mask *= 2) sum_[h] += shuffle_xor(sum_[h], mask);
      if (lane < 2) {
        store_shared(&part.maximum[head], maximum_[h]);
        store_shared(&part.sum[head], sum_[h]);
      }
      float* output = part.output[head] + lane / 4 + (high ? 0 : 8);
      SOLITON_UNROLL
      for (int i = 0; i < kSteps; ++i) {
        const float kept = high ? output_[i][h] : output_[i][h + 2];
        const float given = high ? output_[i][h + 2] : output_[i][h];
        store_shared(output + i * 16, kept + shuffle_xor(given, 2));
      }
    }
  }

 private:
  /// Scores of tokens that the query does not see are -infinity.
  static SOLITON_DEVICE void hide(float (&scores)[4], int lane, int first_token, int first_seen,
                                  const BlockQuery<kPlan>& query) {
    SOLITON_UNROLL
    for (int r = 0; r < 4; ++r) {
      const int token = first_token + lane / 4 + r / 2 * 8;
      if (token >= query.position || (Variant<kPlan>::kHidesKeys && token < first_seen))
        scores[r] = -INFINITY;
    }
  }
  /// Takes scores of some tiles into the maxima, and turns them into weights: below 2^headroom.
  template <int kCount>
  SOLITON_DEVICE void weigh(float (&scores)[kCount][4], float headroom) {
    float rescale[2];
    SOLITON_UNROLL
    for (int h = 0; h < 2; ++h) {
      float maximum = larger_of(scores[0][h], scores[0][h + 2]);
      SOLITON_UNROLL
      for (int t = 1; t < kCount; ++t)
        maximum = larger_of(maximum, larger_of(scores[t][h], scores[t][h + 2]));
      SOLITON_UNROLL
      for (int mask = 4; mask < kWarpLanes; mask *= 2)
        maximum = larger_of(maximum, shuffle_xor(maximum, mask));
      maximum = larger_of(maximum - headroom, maximum_[h]);
      rescale[h] = exp2_fast(maximum_[h] - maximum);
      maximum_[h] = maximum;
      sum_[h] *= rescale[h];
      SOLITON_UNROLL
      for (int t = 0; t < kCount; ++t) {
        scores[t][h] = exp2_fast(scores[t][h] - maximum);
        scores[t][h + 2] = exp2_fast(scores[t][h + 2] - maximum);
        sum_[h] += scores[t][h] + scores[t][h + 2];
      }
    }
    SOLITON_UNROLL
    for (int i = 0; i < kSteps; ++i) {
      SOLITON_UNROLL
      for (int r = 0; r < 4; ++r) output_[i][r] *= rescale[r % 2];
    }
  }
  /// Operand B of add_values() out of a tile's weights.
  static SOLITON_DEVICE uint2 probabilities(float (&weights)[4], int lane) {
    if (lane % 4 >= 2) {
      SOLITON_UNROLL
      for (int r = 0; r < 4; ++r) weights[r] = low_part_f16(weights[r]);
    }
    return make_uint2(transpose_8x8(pack_f16(weights[0], weights[1])),
                      transpose_8x8(pack_f16(weights[2], weights[3])));
  }
  SOLITON_DEVICE void add_values(const unsigned char* values, int lane, uint2 probabilities) {
    const MmaBatch batch;
    SOLITON_UNROLL
    for (int i = 0; i < kKvParts * kSteps; ++i) {
      mma_f16(output_[i % kSteps],
              load_matrices<kKv.kValueStride, kCoreBytes>(values + i * kFragmentBytes, lane), probabilities);
    }
  }
  SOLITON_DEVICE void score_bytes(const unsigned char* keys, int lane, int first_token,
                                  const BlockQuery<kPlan>& query, float (&scores)[4]) const;
  SOLITON_DEVICE void add_byte_values(const unsigned char* values, int lane, float (&weights)[4]);

  uint2 query_[kSteps];
  float maximum_[2];
  float sum_[2];  // of this lane's tokens
  float output_[kSteps][4];
};

/// How the token tiles of cached pages are dealt: one after the other to one consumer warp after the other.
template <const KernelPlan& kPlan>
struct TokenTiles {
  static constexpr KvShape kKv = kPlan.card_kv();
  /// Tiles of 16 tokens that are dealt together.
  static constexpr int kTogether = kKv.e4m3 ? AttentionState<kPlan>::kByteTiles : 1;
  static constexpr int kTokens = kTogether * kTailTokens;
  static constexpr int kBytes = kTogether * kKv.tile_bytes();
  /// Of a slot of keys and the one of values behind it.
  static constexpr int kOfSlot = kKv.slot_tokens() / kTokens;
  /// Slots of keys whose pages are waited for at once, so that every warp has two tiles of 16 tokens. Behind them the ring keeps
  /// four pages, so that the next ones come meanwhile. Where lanes copy there are no registers for several.
  static constexpr int kSlotsAtOnce = [] {
    const int wanted = 2 / kTogether * kPlan.consumer_warps / kOfSlot;
    const int room = (kPlan.ring_slots - 4) / 2;
    const int slots = wanted < room ? wanted : room;
    return kPlan.copies != CopyKind::kBulk || slots < 1 ? 1 : slots;
  }();
  static constexpr int kOwn = ceil_divide(kOfSlot * kSlotsAtOnce, kPlan.consumer_warps);
};

/// What a consumer warp attends to of some slots at once.
template <const KernelPlan& kPlan>
struct OwnTiles {
  using Tiles = TokenTiles<kPlan>;
  const unsigned char* keys[Tiles::kOwn];
  const unsigned char* values[Tiles::kOwn];
  int token[Tiles::kOwn];  // the tile's first
  bool seen[Tiles::kOwn];  // is it there, and does the query see anything of it?

  SOLITON_DEVICE void add_to(AttentionState<kPlan>& state, int lane, int first_seen,
                             const BlockQuery<kPlan>& query) const {
    if constexpr (Tiles::kKv.e4m3) {
      SOLITON_UNROLL
      for (int i = 0; i < Tiles::kOwn; ++i) {
        if (seen[i]) state.add_bytes(keys[i], values[i], lane, token[i], first_seen, query);
      }
    } else if constexpr (Tiles::kOwn == 2) {
      if (seen[0] && seen[1]) {
        state.template add_tiles<2>(keys, values, lane, token, first_seen, query);
      } else if (seen[0] || seen[1]) {
        const int i = seen[0] ? 0 : 1;
        state.template add_tiles<1>({i == 0 ? keys[0] : keys[1]}, {i == 0 ? values[0] : values[1]}, lane,
                                    {i == 0 ? token[0] : token[1]}, first_seen, query);
      }
    } else {
      SOLITON_UNROLL
      for (int i = 0; i < Tiles::kOwn; ++i) {
        if (seen[i]) state.template add_tiles<1>({keys[i]}, {values[i]}, lane, {token[i]}, first_seen, query);
      }
    }
  }
};

}  // namespace soliton::one_row
