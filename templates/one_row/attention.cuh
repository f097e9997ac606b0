// Attention of one new token over the paged KV cache (flash decoding on tensor cores).
//
// A head block is up to four query heads of one KV head. In every mma their high-order parts are columns 0..3
// of the B operand and their low-order parts columns 4..7, as in input.cuh. Each consumer warp takes every
// kWarps-th tile of 16 tokens, or of a cache of bytes every kWarps-th two (byte_tokens.cuh): scores = K q (rows are
// tokens), probabilities turn from accumulator into operand by two 8x8 transposes, output = V^T p (rows are dims).
// Softmax is online, in base 2, one running maximum a head and warp. The new token never goes through the ring: the
// epilogue of the last split adds it as one more part, see new_token.cuh. Then the consumers merge the parts.
//
// Lane 4 g + j of an accumulator holds columns 2 j and 2 j + 1: heads 2 (j % 2) and 2 (j % 2) + 1, high part
// if j < 2.
#pragma once

#include "one_row/consumer.cuh"
#include "one_row/joint_norm.cuh"
#include "ops/head_norm.cuh"

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

  /// Scores of one token tile; afterwards probability operands are ready for add_values(). `first_token` is
  /// the position of its first token; only tokens from `first_seen` to the one before the query count (at least one does).
  SOLITON_DEVICE uint2 add_scores(const unsigned char* keys, int lane, int first_token, int first_seen,
                                  const BlockQuery<kPlan>& query) {
    float chains[2][4] = {};  // of dependent mma: two hide their latency
    MmaBatch batch;
    SOLITON_UNROLL
    for (int i = 0; i < kKvParts * kSteps; ++i) {
      const int offset = i / kSteps * kKv.part_bytes() + i % kSteps * 2 * kCoreBytes;
      mma_f16(chains[i % 2], load_matrices<kKv.key_stride(), kCoreBytes>(keys + offset, lane),
              query_[i % kSteps]);
    }
    batch.end();
    float scores[4];
    SOLITON_UNROLL
    for (int r = 0; r < 4; ++r) {
      scores[r] = chains[0][r] + chains[1][r];
      const int token = first_token + lane / 4 + r / 2 * 8;
      scores[r] = query.score(scores[r] + shuffle_xor(scores[r], 2), lane % 2 * 2 + r % 2, token);
      if (token >= query.position || (Variant<kPlan>::kHidesKeys && token < first_seen))
        scores[r] = -INFINITY;
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

  SOLITON_DEVICE void add_values(const unsigned char* values, int lane, uint2 probabilities) {
    const MmaBatch batch;
    SOLITON_UNROLL
    for (int i = 0; i < kKvParts * kSteps; ++i) {
      mma_f16(output_[i % kSteps],
              load_matrices<kKv.kValueStride, kCoreBytes>(values + i * kFragmentBytes, lane), probabilities);
    }
  }

  /// byte_tokens.cuh: adds two tiles of a cache of bytes that follow one another, as add_scores() and add_values() do.
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
  SOLITON_DEVICE void score_bytes(const unsigned char* keys, int lane, int first_token,
                                  const BlockQuery<kPlan>& query, float (&scores)[4]) const;
  SOLITON_DEVICE void weigh(float (&scores)[kByteTiles][4]);
  SOLITON_DEVICE void add_byte_values(const unsigned char* values, int lane, float (&weights)[4]);

  uint2 query_[kSteps];
  float maximum_[2];
  float sum_[2];  // of this lane's tokens
  float output_[kSteps][4];
};

/// Which groups of 4 words of q | k | v a thread brings to shared memory for a unit: group thread, thread +
/// all consumers' threads, ...
template <const KernelPlan& kPlan>
class StagedGroups {
 public:
  static constexpr int kThreads = kPlan.consumer_warps * kWarpLanes;
  static constexpr int kHeadGroups = kPlan.model.head_dim / 4;
  static constexpr int kRows = kHeadsPerBlock + 2;
  static constexpr int kGroups = kRows * kHeadGroups;
  static constexpr int kPieces =
      kPlan.model.head_pieces();  // of a row that a lane brings, where a warp brings it
  static constexpr int kLoads = kPlan.staged_loads();

  SOLITON_DEVICE StagedGroups(const HeadBlock<kPlan>& heads, int thread) : heads_(heads), thread_(thread) {}

  SOLITON_DEVICE bool present(int i) const {
    return (kPieces == 1 && kGroups % kThreads == 0) || group(i) < kGroups;
  }
  /// Group of the phase's input. Heads that the block does not have are stood in for by its first.
  SOLITON_DEVICE int source(int i) const {
    return head_of(group(i) / kHeadGroups) * kHeadGroups + group(i) % kHeadGroups;
  }
  /// The head that it belongs to, whose groups neighbouring lanes bring.
  SOLITON_DEVICE HeadOfToken head(int i, int layer, int position) const {
    const int row = group(i) / kHeadGroups;
    return {layer, position, row == kHeadsPerBlock, present(i) && row <= kHeadsPerBlock, head_of(row)};
  }
  SOLITON_DEVICE void store(const Context<kPlan>& context, int i, float4 words) const {
    const int row = group(i) / kHeadGroups;
    unsigned char* at = context.staged(row, group(i) % kHeadGroups * 4);
    if (row < kHeadsPerBlock) {
      const uint2 high = pack_high_f16(words);
      const uint2 low = pack_low_f16(words);
      store_shared(reinterpret_cast<uint4*>(at), make_uint4(high.x, high.y, low.x, low.y));
    } else {
      store_shared(reinterpret_cast<float4*>(at), words);
    }
  }

 private:
  SOLITON_DEVICE int group(int i) const {
    if constexpr (kPieces == 1) return i * kThreads + thread_;
    const int row = i / kPieces * kPlan.consumer_warps + thread_ / kWarpLanes;
    return row * kHeadGroups + i % kPieces * kWarpLanes + thread_ % kWarpLanes;
  }
  /// Among all heads of q, k and v.
  SOLITON_DEVICE int head_of(int row) const {
    return row < kHeadsPerBlock    ? heads_.first_head + (row < heads_.count ? row : 0)
           : row == kHeadsPerBlock ? kPlan.model.num_heads + heads_.kv_head
                                   : kPlan.model.rotary_heads() + heads_.kv_head;
  }

  const HeadBlock<kPlan>& heads_;
  int thread_;
};

/// Brings q, k and v of a unit to shared memory, with all other consumers. Without work it makes one round too: every
/// warp sees a word of the vector before it goes on to the next phase. Signatures are asked for on the first round.
template <const KernelPlan& kPlan>
template <int kPhase>
SOLITON_DEVICE void Consumer<kPlan>::stage_unit(const HeadBlock<kPlan>& heads, bool works, int layer,
                                                Signatures<kPlan>& signatures, bool is_first) {
  using Staged = StagedGroups<kPlan>;
  constexpr Vector kInput = kPlan.vector(kPlan.phases[kPhase].reads);
  const uint32_t tag = tag_of(context_.use(layer));
  const int lane = context_.lane;
  const int thread = warp_ * kWarpLanes + lane;
  const float* input = context_.vector(kInput, context_.use(layer));
  Staged staged(heads, thread);
  PolledLoads<float4, Staged::kLoads, kPlan> loads;
  const auto address = [&](int i) {
    const int any = (context_.cta * Staged::kThreads + thread) % (kInput.elements / 4);
    return reinterpret_cast<const float4*>(input) + (works && staged.present(i) ? staged.source(i) : any);
  };
  loads.issue(address, [&](int i) { return i == 0 || (works && staged.present(i)); });
  HeadNorm<kPlan> norms[Staged::kLoads / Staged::kPieces];
  SOLITON_UNROLL
  for (int i = 0; i < Staged::kLoads; i += Staged::kPieces)
    norms[i / Staged::kPieces].load(context_.params, staged.head(i, layer, context_.position()), lane);
  JointNorm<kPlan> joint(input, lane);
  joint.issue(works);
  if (is_first && warp_ == 0) signatures.issue();
  wait_for_input(
      tag, [&] { return loads.retry(address, tag); }, [&] { return joint.retry(tag); },
      [&] { return signatures.retry(tag); });
  if (!works) return;
  const JointScales scales = joint.scales();
  SOLITON_UNROLL
  for (int i = 0; i < Staged::kLoads; i += Staged::kPieces) {
    if constexpr (Staged::kPieces == 1) {
      const float4 words = norms[i].finish(without_tag(loads.value[i]), lane, scales);
      if (staged.present(i)) staged.store(context_, i, words);
    } else {
      float4 first = without_tag(loads.value[i]);
      float4 second = without_tag(loads.value[i + 1]);
      norms[i / Staged::kPieces].finish(first, second, scales);
      if (!staged.present(i)) continue;
      staged.store(context_, i, first);
      staged.store(context_, i + 1, second);
    }
  }
  warp_arrive(&context_.barrier(BarrierId::kQueryFull));
}

/// This warp's tiles of the share's cached pages.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Consumer<kPlan>::attend_pages(AttentionState<kPlan>& state, const AttentionShare& share,
                                                  int layer, int first_head) {
  constexpr KvShape kKv = kPlan.card_kv();
  constexpr int kTogether =
      kKv.e4m3 ? AttentionState<kPlan>::kByteTiles : 1;                // token tiles that are added at once
  constexpr int kTiles = kKv.slot_tokens() / kTailTokens / kTogether;  // of a slot
  constexpr int kOwnTiles = ceil_divide(kTiles, kWarps);
  constexpr int kSlots = kKv.slots_per_half();
  const int lane = context_.lane;
  const int cached = context_.position();
  const BlockQuery<kPlan> query = {Variant<kPlan>(layer), first_head, cached};
  const int first_seen = query.variant.first_key(cached);
  for (int slot = share.first_page * kSlots; slot < share.end_page * kSlots; ++slot) {
    const int first_own = ((warp_ - slot * kTiles) % kWarps + kWarps) % kWarps;
    int slots[2];
    if constexpr (kPlan.copies == CopyKind::kBulk) {
      wait_pair(slots);
    } else {  // which has no registers for both
      slots[0] = wait_page();
      slots[1] = wait_page();
    }
    const unsigned char* keys = page_bytes(slots[0]);
    const unsigned char* values = page_bytes(slots[1]);
    SOLITON_UNROLL
    for (int own = 0; own < kOwnTiles; ++own) {
      const int tile = first_own + own * kWarps;
      const int token = (slot * kTiles + tile) * kTogether * kTailTokens;
      const bool in_window = !Variant<kPlan>::kHidesKeys || token + kTogether * kTailTokens > first_seen;
      if (tile < kTiles && token < cached && in_window) {
        constexpr int kBytes = kTogether * kKv.tile_bytes();
        if constexpr (kKv.e4m3) {
          state.add_bytes(keys + tile * kBytes, values + tile * kBytes, lane, token, first_seen, query);
        } else {
          const uint2 probabilities = state.add_scores(keys + tile * kBytes, lane, token, first_seen, query);
          state.add_values(values + tile * kBytes, lane, probabilities);
        }
      }
    }
    release_page(slots[0]);
    release_page(slots[1]);
  }
}

template <const KernelPlan& kPlan>
template <int kPhase>
SOLITON_DEVICE void Consumer<kPlan>::attend(int layer) {
  constexpr Vector kInput = kPlan.vector(kPlan.phases[kPhase].reads);
  constexpr Vector kOutput = kPlan.vector(kPlan.phases[kPhase].writes);
  begin_phase();
  const AttentionShare share = context_.attention_share(layer);
  const bool works = share.count > 0;
  wait_for_grid(context_);
  Signatures<kPlan> signatures(context_, kInput, context_.use(layer));
  for (int unit = 0; unit == 0 || unit < share.count; ++unit) {
    // Pairs with all consumers' arrivals once the unit before is merged: only then may q, k and v change.
    if (works && units_ > 0) {
      context_.wait(context_.barrier(BarrierId::kAttentionEmpty), (units_ - 1) & 1, WaitKind::kAttentionEmpty,
                    units_);
    }
    const HeadBlock<kPlan> heads(works ? share.first_block + unit * kPlan.num_ctas : 0, context_.card());
    stage_unit<kPhase>(heads, works, layer, signatures, unit == 0);
    if (unit == 0) {
      mark_input();
      report_input();
    }
    if (!works) break;
    context_.wait(context_.barrier(BarrierId::kQueryFull), units_ & 1, WaitKind::kQueryFull, units_);
    warp_sync();
    AttentionState<kPlan> state;
    state.begin(context_, context_.lane);
    attend_pages(state, share, layer, heads.first_head);
    state.store(context_.attention_part(warp_), context_.lane);
    warp_arrive(&context_.barrier(BarrierId::kAttentionFull));
    // Pairs with the arrivals of all consumers and of the epilogue: their parts are there.
    context_.wait(context_.barrier(BarrierId::kAttentionFull), units_ & 1, WaitKind::kAttentionFull, units_);
    warp_sync();
    const bool with_token = share.split == share.num_splits - 1;
    const bool whole = share.num_splits == 1;
    merge_parts(context_, heads, warp_, with_token ? unit : kNoToken, whole, layer,
                context_.vector(kOutput, context_.use(layer)), context_.partial(context_.cta));
    if (!whole) end_partial(context_, share.first_block);
    warp_arrive(&context_.barrier(BarrierId::kAttentionEmpty));
    ++units_;
  }
  end_phase();
}

}  // namespace soliton::one_row
