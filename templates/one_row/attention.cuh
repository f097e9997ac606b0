// Attention of one new token over the paged KV cache (flash decoding on tensor cores).
//
// A head block is up to four query heads of one KV head. In every mma their high-order parts are columns 0..3
// of the B operand and their low-order parts columns 4..7, as in input.cuh. Each consumer warp takes every
// kWarps-th tile of 16 tokens, or of a cache of bytes every kWarps-th two (byte_tokens.cuh): scores = K q (rows are
// tokens), probabilities turn from accumulator into operand by two 8x8 transposes, output = V^T p (rows are dims).
// Softmax is online, in base 2, one running maximum a head and warp. The new token never goes through the ring: the
// epilogue of the last split adds it as one more part, see new_token.cuh. Then the consumers merge the parts.
#pragma once

#include "one_row/attention_state.cuh"
#include "one_row/consumer.cuh"
#include "one_row/joint_norm.cuh"
#include "ops/head_norm.cuh"

namespace soliton::one_row {

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
  const int lane = known_lane();
  const int thread = known_warp() * kWarpLanes + lane;
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

/// Waits for the next pages of a share of which `slots` slots of keys are left. Returns of how many.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int Consumer<kPlan>::wait_tokens(int slots) {
  constexpr int kMost = TokenTiles<kPlan>::kSlotsAtOnce;
  if (slots > kMost) slots = kMost;
  wait_ahead<2 * kMost>(2 * slots);
  return slots;
}

/// This warp's tiles of the next `slots` slots, of which the first is the cache's `slot`-th.
template <const KernelPlan& kPlan>
SOLITON_DEVICE OwnTiles<kPlan> Consumer<kPlan>::own_tiles(int slot, int slots, int first_seen) const {
  using Tiles = TokenTiles<kPlan>;
  OwnTiles<kPlan> own;
  const auto first = static_cast<uint32_t>(warp_ + (kWarps - slot % kWarps) * Tiles::kOfSlot) % kWarps;
  SOLITON_UNROLL
  for (int i = 0; i < Tiles::kOwn; ++i) {
    const uint32_t number = first + i * kWarps;  // from the first slot's first tile on
    const int ahead = static_cast<int>(number / Tiles::kOfSlot);
    const int offset = static_cast<int>(number % Tiles::kOfSlot) * Tiles::kBytes;
    own.keys[i] = page_bytes(page_.slot(2 * ahead)) + offset;
    own.values[i] = page_bytes(page_.slot(2 * ahead + 1)) + offset;
    own.token[i] = (slot * Tiles::kOfSlot + static_cast<int>(number)) * Tiles::kTokens;
    const bool in_window = !Variant<kPlan>::kHidesKeys || own.token[i] + Tiles::kTokens > first_seen;
    own.seen[i] = ahead < slots && own.token[i] < context_.position() && in_window;
  }
  return own;
}

/// Once this warp has read them.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Consumer<kPlan>::release_tokens(int slots) {
  warp_release_each([&](int i) -> Barrier& { return context_.barrier(BarrierId::kPageEmpty, page_.slot(i)); },
                    2 * slots);
  page_.advance(2 * slots);
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
    const int first_seen = Variant<kPlan>(layer).first_key(context_.position());
    constexpr int kSlots = kPlan.card_kv().slots_per_half();
    const int end = share.end_page * kSlots;
    int slots = works ? wait_tokens(end - share.first_page * kSlots) : 0;  // they come whatever the query is
    stage_unit<kPhase>(heads, works, layer, signatures, unit == 0);
    if (unit == 0) {
      mark_input();
      report_input();
    }
    if (!works) break;
    context_.wait(context_.barrier(BarrierId::kQueryFull), units_ & 1, WaitKind::kQueryFull, units_);
    warp_sync();
    const BlockQuery<kPlan> query = {Variant<kPlan>(layer), heads.first_head, context_.position()};
    AttentionState<kPlan> state;
    state.begin(context_, known_lane());
    for (int slot = share.first_page * kSlots;;) {
      own_tiles(slot, slots, first_seen).add_to(state, known_lane(), first_seen, query);
      release_tokens(slots);
      slot += slots;
      if (slot >= end) break;
      slots = wait_tokens(end - slot);
    }
    state.store(context_.attention_part(warp_), known_lane());
    warp_arrive(&context_.barrier(BarrierId::kAttentionFull));
    // Pairs with the arrivals of all consumers and of the epilogue: their parts are there.
    context_.wait(context_.barrier(BarrierId::kAttentionFull), units_ & 1, WaitKind::kAttentionFull, units_);
    warp_sync();
    const bool with_token = share.split == share.num_splits - 1;
    const bool whole = share.num_splits == 1;
    merge_parts(context_, heads, known_warp(), with_token ? unit : kNoToken, whole, layer,
                context_.vector(kOutput, context_.use(layer)), context_.partial(context_.cta));
    if (!whole) end_partial(context_, share.first_block);
    warp_arrive(&context_.barrier(BarrierId::kAttentionEmpty));
    ++units_;
  }
  end_phase();
}

}  // namespace soliton::one_row
