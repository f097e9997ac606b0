// The persistent kernel for one row: what its roles share.
//
//   consumer warps   multiply: each owns fixed columns of every page, and its own slice of x
//   epilogue warp    sums the parts of a tile in fixed order and writes the few output values
#pragma once

#include "layout/one_row.h"
#include "machine/context.cuh"
#include "ops/attention_variant.cuh"
#include "ops/kv_pages.cuh"

namespace soliton::one_row {

/// Tiles that a consumer sums up at once when their input is too wide for shared memory.
template <const KernelPlan& kPlan>
constexpr int kTilesAtOnce = kPlan.residual_tiles < 4 ? kPlan.residual_tiles : 4;

/// Pages ahead of consumers that wait, from which on the window is waiting_window. With fewer they would wait for memory next; but
/// where experts are not known yet there are never more. H200, us a token: 8B in 4 bits, of a ring of 12, always 1165, from 5 on
/// 1158, 6 1145, 7 1134, 8 1137, 9 1147; Qwen3-0.6B 453 -> 441, 3B 1542 -> 1531, but 8B 3340 -> 3351; Qwen3-30B-A3B would be
/// 1749 -> 1766.
template <const KernelPlan& kPlan>
constexpr int kEnoughPages = kPlan.model.mixture.experts > 0 ? 0 : kPlan.ring_slots / 2 + 1;

/// One consumer's part of an attention unit: maximum score, sum and output of each head.
template <const KernelPlan& kPlan>
struct AttentionPart {
  float maximum[kHeadsPerBlock];
  float sum[kHeadsPerBlock];
  float output[kHeadsPerBlock][kPlan.model.head_dim];  // not divided by sum
};

/// Rows of what attention has of a unit in shared memory: q of its heads, then k and v.
constexpr int kKeyRow = kHeadsPerBlock;
constexpr int kValueRow = kKeyRow + 1;

/// What every thread knows.
template <const KernelPlan& kPlan>
struct Context : MachineContext<kPlan, RegionId, BarrierId> {
  using Base = MachineContext<kPlan, RegionId, BarrierId>;
  using Base::cta, Base::params, Base::region, Base::shared, Base::step;

  static constexpr bool kEvenHeads = kPlan.model.num_kv_heads % kPlan.num_cards == 0;

  SOLITON_DEVICE void set_up() const {
    if (thread_index() == 0) say_working();
    constexpr int kWords = zeros_bytes(kPlan) / 16;
    constexpr int kThreads = kPlan.working_warps() * kWarpLanes;
    for (int i = thread_index(); i < kWords; i += kThreads)
      store_shared(reinterpret_cast<uint4*>(region(RegionId::kZeros)) + i, uint4{});
  }

  /// All consumers decide alike; each has a copy of its own, because registers are few.
  SOLITON_DEVICE StepDecision& decision(int warp) const {
    return this->template region<StepDecision>(RegionId::kDecision)[warp];
  }

  /// Where norms follow blocks: the residual stream, [hidden], of which every consumer writes the columns that it reads. Who
  /// reads those of another, whose matrix has other pages, has waited for input_taken two phases later.
  SOLITON_DEVICE float* stream() const { return this->template region<float>(RegionId::kResidual); }

  /// Partial sums of a tile: [slot][consumer warp][row].
  SOLITON_DEVICE float* tile_parts(int slot, int warp) const {
    return this->template region<float>(RegionId::kTiles) + (slot * kPlan.consumer_warps + warp) * kTileRows;
  }
  /// A consumer's slice of x.
  SOLITON_DEVICE unsigned char* slice(int warp) const {
    constexpr int kSliceBytes = kPlan.x_bytes() / kPlan.consumer_warps;
    static_assert(kSliceBytes % 16 == 0 && kSliceBytes >= kPlan.attention_slice_bytes());
    return region(RegionId::kX) + warp * kSliceBytes;
  }
  SOLITON_DEVICE AttentionPart<kPlan>& attention_part(int warp) const {
    return *reinterpret_cast<AttentionPart<kPlan>*>(slice(warp));
  }
  /// Four neighbouring values of a unit's q, k or v, dims `dim` to `dim` + 3: of q as f16, two high parts, two more, then
  /// the low parts; of k and v as floats. They lie in the slice of the consumer that brings them, group by group, so
  /// that no warp writes where another may still read its x. Lanes that read the same step of an mma's operand, a
  /// quarter of the dims apart, find neighbours in other banks.
  SOLITON_DEVICE unsigned char* staged(int row, int dim) const {
    constexpr int kThreads = kPlan.consumer_warps * kWarpLanes;
    if constexpr (kPlan.model.head_pieces() > 1) {
      // A warp brings a row; in either half four neighbours take a place each of every quarter of the banks.
      const int lane = dim / 4 % kWarpLanes;
      const int load = row / kPlan.consumer_warps * kPlan.model.head_pieces() + dim / 4 / kWarpLanes;
      const int place = (lane + dim / 4 / kWarpLanes) % 8 * 4 + lane / 8;
      return slice(row % kPlan.consumer_warps) + kPlan.partial_words() * 4 + (load * kWarpLanes + place) * 16;
    }
    const int group = (row * kPlan.model.head_dim + dim) / 4;
    const int place = (group + group / kWarpLanes) % 8 * 4 + group % kWarpLanes / 8;
    return slice(group % kThreads / kWarpLanes) + kPlan.partial_words() * 4 +
           (group / kThreads * kWarpLanes + place) * 16;
  }
  /// Scores of the new token, of each head of a unit.
  SOLITON_DEVICE float* token_scores() const { return token_part<float>(token_layout(kPlan).scores); }
  /// k, then v of the new token of one of this CTA's attention units: pairs of f16, part after part.
  SOLITON_DEVICE uint32_t* new_token(int unit) const {
    return token_part<uint32_t>(token_layout(kPlan).new_token) +
           unit * (kPlan.model.kv_parts * kPlan.model.head_dim);
  }
  /// cos and sin of the step's position for each pair of dims. Where heads are normed first there are none.
  SOLITON_DEVICE float2* rotations() const { return token_part<float2>(token_layout(kPlan).rotations); }
  /// Sum of squares of a consumer's slice of x.
  SOLITON_DEVICE float* squares(uint32_t generation, int warp) const {
    return this->template region<float>(RegionId::kSquares) + generation * kPlan.consumer_warps + warp;
  }

  /// What the first consumer says while it waits for its input: which page it reads next. Nothing but the producer's pace depends
  /// on it, so that it may be seen late.
  SOLITON_DEVICE void say_waiting(const PackedRingPosition<kPlan.ring_slots>& page) const {
    store_hint(this->template region<uint32_t>(RegionId::kWaiting), static_cast<uint32_t>(page.place()) + 1);
  }
  SOLITON_DEVICE void say_working() const {
    store_hint(this->template region<uint32_t>(RegionId::kWaiting), 0u);
  }
  /// Do they wait, with enough pages for later? `page`: the next that is copied.
  SOLITON_DEVICE bool consumers_wait(const RingPosition<kPlan.ring_slots>& page) const {
    const uint32_t said = load_hint(this->template region<uint32_t>(RegionId::kWaiting));
    return said != 0 &&
           uses_between<kPlan.ring_slots>(static_cast<int>(said) - 1, page.place()) >= kEnoughPages<kPlan>;
  }

  /// Numbers of the experts that the step's token goes through in the layer: shared ones, then those that it chose first.
  SOLITON_DEVICE int32_t* experts() const { return this->template region<int32_t>(RegionId::kExperts); }

  SOLITON_DEVICE int position() const { return params.first_position + step; }
  /// Of what is written once a layer: how often it has been before in this launch.
  SOLITON_DEVICE uint32_t use(int layer) const {
    return static_cast<uint32_t>(step) * kPlan.model.num_layers + layer;
  }
  /// The same of a vector, which may be one of some layers.
  SOLITON_DEVICE uint32_t use(const Vector& vector, int layer) const {
    if constexpr (kPlan.model.num_kinds() > 1) {
      constexpr const LayerTable<kPlan>& kLayers = kLayerTable<kPlan>;
      if (vector.layer_kind != kNone)
        return step * kLayers.of_kind[vector.layer_kind] + kLayers.before[layer];
    }
    return use(layer);
  }
  /// Of a matrix phase's input: the residual stream comes from the layer before.
  SOLITON_DEVICE uint32_t input_use(const MatrixPhase& phase, int layer) const {
    if (phase.output == OutputKind::kLogits) return use(kPlan.model.num_layers - 1);
    if (phase.input == InputKind::kHidden) return use(layer) - 1;
    return use(phase.input_vector, layer);
  }
  SOLITON_DEVICE float* vector(const Vector& vector, uint32_t use) const {
    return this->template workspace<float>(vector.place(use));
  }
  /// What a CTA has of a head block that is split: maximum, sum and output of each head.
  SOLITON_DEVICE float* partial(int cta) const {
    return this->template workspace<float>(kPlan.partials.offset) +
           static_cast<int64_t>(cta) * kPlan.partial_words();
  }
  /// Does this step choose a token?
  SOLITON_DEVICE bool chooses() const { return step >= params.num_input_tokens - 1; }
  /// Pages of the cache that hold tokens of earlier steps: computed where it is needed, or it would take a register of
  /// all phases.
  SOLITON_DEVICE int cached_pages() const { return ceil_divide(opaque(position()), kKvPageTokens); }
  /// Of the pages from the first on of which the query sees a token; of none where it sees itself alone.
  SOLITON_DEVICE AttentionShare attention_share(int layer) const {
    const int first_key = Variant<kPlan>(layer).first_key(position());
    const int first_page = first_key / kKvPageTokens;
    int pages = cached_pages() - first_page;
    if constexpr (Variant<kPlan>::kHidesKeys) {
      if (first_key == position()) pages = 0;
    }
    AttentionShare share = share_attention(kPlan.card_blocks(), pages, kPlan.min_pages_per_split,
                                           kPlan.num_ctas, cta, kPlan.max_splits);
    share.first_page += first_page;
    share.end_page += first_page;
    return kEvenHeads ? share : limit_share(share, card_blocks(), kPlan.num_ctas);
  }
  /// Head blocks of this card.
  SOLITON_DEVICE int card_blocks() const {
    constexpr int kBlocksPerHead = kPlan.model.num_blocks() / kPlan.model.num_kv_heads;
    if constexpr (kEvenHeads) return kPlan.card_blocks();
    return kBlocksPerHead * kv_heads_of_card(kPlan.model.num_kv_heads, kPlan.num_cards, this->card());
  }
  /// Tiles, of all cards', of a phase that this CTA computes in this step: the lm_head has none while the prompt is read.
  SOLITON_DEVICE TileRun tiles(const MatrixPhase& matrix) const {
    TileRun run = deal_tiles(matrix.num_tiles, matrix.first_cta, kPlan.all_ctas(), this->global_cta());
    if (matrix.output == OutputKind::kLogits && !chooses()) run.count = 0;
    return run;
  }

 private:
  template <class T>
  SOLITON_DEVICE T* token_part(int offset) const {
    return reinterpret_cast<T*>(region(RegionId::kToken) + offset);
  }
};

/// A head block of a card as heads of the model: it holds query heads first_head .. first_head + count of KV head
/// kv_head, which is number kv_slot in the card's cache.
template <const KernelPlan& kPlan>
struct HeadBlock {
  static constexpr int kGroup = kPlan.model.group();
  static constexpr int kBlocksPerKvHead = ceil_divide(kGroup, kHeadsPerBlock);
  int kv_slot;
  int kv_head;
  int first_head;
  int count;

  SOLITON_DEVICE HeadBlock(int block, int card) {
    kv_slot = block / kBlocksPerKvHead;
    kv_head = kv_slot * kPlan.num_cards + card;
    const int within = block % kBlocksPerKvHead * kHeadsPerBlock;
    first_head = kv_head * kGroup + within;
    count = kGroup - within < kHeadsPerBlock ? kGroup - within : kHeadsPerBlock;
  }
  /// Is this the block of its KV head that appends the new token to the cache?
  SOLITON_DEVICE bool appends() const { return first_head == kv_head * kGroup; }
};

/// Is what a phase reads normed?
template <const KernelPlan& kPlan>
SOLITON_DEVICE bool norms_input(const MatrixPhase& phase) {
  if constexpr (norms_before(kPlan.model.norms)) return phase.input != InputKind::kVector;
  return phase.output == OutputKind::kLogits;  // layers read the residual stream as it is
}

/// Calls body<kind>(), of the kinds that the model has.
template <const KernelPlan& kPlan, class Body>
SOLITON_DEVICE void with_output(OutputKind kind, const Body& body) {
  switch (kind) {
    case OutputKind::kRotary:
      return body.template operator()<OutputKind::kRotary>();
    case OutputKind::kResidual:
      return body.template operator()<OutputKind::kResidual>();
    case OutputKind::kSwiglu:
      return body.template operator()<OutputKind::kSwiglu>();
    case OutputKind::kLogits:
      return body.template operator()<OutputKind::kLogits>();
    case OutputKind::kRouter:
      if constexpr (kPlan.model.mixture.experts > 0) return body.template operator()<OutputKind::kRouter>();
  }
}

constexpr int kMaxWidths = 8;  // of inputs in either format

/// The widths of the model's inputs, each once.
struct Widths {
  int count = 0;
  Width widths[kMaxWidths] = {};
};
SOLITON_HOST_DEVICE constexpr Widths input_widths(const KernelPlan& plan) {
  Widths all;
  for (int i = 0; i < plan.num_phases; ++i) {
    const Phase& phase = plan.phases[i];
    if (phase.kind != PhaseKind::kMatrix) continue;
    const PackedMatrix& matrix = plan.matrices[phase.matrix];
    int at = 0;
    while (at < all.count &&
           (all.widths[at].columns != matrix.columns || all.widths[at].format.type != matrix.format.type)) {
      ++at;
    }
    if (at == all.count)
      all.widths[all.count++] = {matrix.columns, matrix.padded_columns, false, matrix.format};
    if (phase.input != InputKind::kVector) all.widths[at].normed = true;
  }
  return all;
}

/// Calls body<Width>() for the one of the model's widths that has `columns` in weights of `type`.
template <const KernelPlan& kPlan, int kIndex = 0, class Body>
SOLITON_DEVICE void with_width(int columns, WeightType type, const Body& body) {
  constexpr Widths kWidths = input_widths(kPlan);
  if constexpr (kIndex + 1 < kWidths.count) {
    if (columns != kWidths.widths[kIndex].columns || type != kWidths.widths[kIndex].format.type) {
      with_width<kPlan, kIndex + 1>(columns, type, body);
      return;
    }
  }
  body.template operator()<kWidths.widths[kIndex]>();
}

}  // namespace soliton::one_row
