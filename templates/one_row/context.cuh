// The persistent kernel for one row: what its roles share.
//
//   consumer warps   multiply: each owns fixed columns of every page, and its own slice of x
//   epilogue warp    sums the parts of a tile in fixed order and writes the few output values
#pragma once

#include "layout/one_row.h"
#include "layout/order.h"
#include "machine/context.cuh"

namespace soliton::one_row {

/// Tiles that a consumer sums up at once when their input is too wide for shared memory.
template <const KernelPlan& kPlan>
constexpr int kTilesAtOnce = kPlan.residual_tiles < 4 ? kPlan.residual_tiles : 4;

/// Parts of an attention unit in shared memory: one of each consumer warp, where its slice of x was, then
/// that of the new token.
template <const KernelPlan& kPlan>
constexpr int kAttentionParts = kPlan.consumer_warps + 1;

/// One part of an attention unit: maximum score, sum and output of each head.
template <const KernelPlan& kPlan>
struct AttentionPart {
  float maximum[kHeadsPerBlock];
  float sum[kHeadsPerBlock];
  float output[kHeadsPerBlock][kPlan.model.head_dim];  // not divided by sum
};

/// What attention has of a unit in shared memory: q of its heads as two f16 a value, high and low part, in the order of
/// the mma's B operands, of two steps at a time; then k and v as floats.
template <int kHeadDim>
struct QueryLayout {
  static constexpr int kQuarter = kHeadDim / 4;  // dims of a lane quad, see KvShape
  static constexpr int kKey = kHeadsPerBlock * kHeadDim;
  static constexpr int kValue = kKey + kHeadDim;
  static constexpr int kWords = kValue + kHeadDim;

  /// Of neighbouring dims, the first of which is even. High parts are columns 0 .. 3 of an operand, low parts the
  /// others; lane 4 g + j has column g.
  static SOLITON_HOST_DEVICE constexpr int query_word(int head, int dim, bool low) {
    const int lane = (head + (low ? kHeadsPerBlock : 0)) * 4 + dim / kQuarter;
    const int step = dim % kQuarter / 4;
    return (step / 2 * kWarpLanes + lane) * 4 + step % 2 * 2 + dim % 4 / 2;
  }
};

/// What every thread knows.
template <const KernelPlan& kPlan>
struct Context : MachineContext<kPlan, RegionId, BarrierId> {
  using Base = MachineContext<kPlan, RegionId, BarrierId>;
  using Base::cta, Base::params, Base::region, Base::shared, Base::step;

  static constexpr bool kEvenHeads = kPlan.model.num_kv_heads % kPlan.num_cards == 0;

  SOLITON_DEVICE void set_up() const {}

  SOLITON_DEVICE StepDecision& decision() const {
    return *this->template region<StepDecision>(RegionId::kDecision);
  }

  /// Partial sums of a tile: [slot][consumer warp][row].
  SOLITON_DEVICE float* tile_parts(int slot, int warp) const {
    return this->template region<float>(RegionId::kTiles) + (slot * kPlan.consumer_warps + warp) * kTileRows;
  }
  SOLITON_DEVICE AttentionPart<kPlan>& attention_part(int part) const {
    constexpr int kSliceBytes = kPlan.x_bytes() / kPlan.consumer_warps;
    unsigned char* at = part < kPlan.consumer_warps ? region(RegionId::kX) + part * kSliceBytes
                                                    : region(RegionId::kAttention);
    return *reinterpret_cast<AttentionPart<kPlan>*>(at);
  }
  /// k, then v of the new token of one of this CTA's attention units: pairs of f16, part after part.
  SOLITON_DEVICE uint32_t* new_token(int unit) const {
    return this->template region<uint32_t>(RegionId::kNewToken) +
           unit * (kPlan.model.kv_parts * kPlan.model.head_dim);
  }
  /// See QueryLayout.
  SOLITON_DEVICE float* query() const {
    static_assert(kPlan.regions[static_cast<int>(RegionId::kQuery)].bytes ==
                  4 * QueryLayout<kPlan.model.head_dim>::kWords);
    return this->template region<float>(RegionId::kQuery);
  }
  /// cos and sin of the step's position for each pair of dims. Where heads are normed first there are none.
  SOLITON_DEVICE float2* rotations() const { return this->template region<float2>(RegionId::kRotations); }
  /// Sum of squares of a consumer's slice of x.
  SOLITON_DEVICE float* squares(uint32_t generation, int warp) const {
    return this->template region<float>(RegionId::kSquares) + generation * kPlan.consumer_warps + warp;
  }

  /// Where a vector's reader has element `element`; see layout/order.h.
  SOLITON_DEVICE int place(OrderTable table, int layer, int element) const {
    if constexpr (kPlan.model.ordered) {
      return load_constant(
          params.positions +
          order_offset(kPlan.model.hidden, kPlan.model.num_heads * kPlan.model.head_dim, layer, table) +
          element);
    }
    return element;
  }

  SOLITON_DEVICE int position() const { return params.first_position + step; }
  /// Does this step choose a token?
  SOLITON_DEVICE bool chooses() const { return step >= params.num_input_tokens - 1; }
  /// Pages of the cache that hold tokens of earlier steps: computed where it is needed, or it would take a register of
  /// all phases.
  SOLITON_DEVICE int cached_pages() const { return ceil_divide(opaque(position()), kKvPageTokens); }
  SOLITON_DEVICE AttentionShare attention_share() const {
    const AttentionShare share =
        share_attention(kPlan.card_blocks(), cached_pages(), kPlan.min_pages_per_split, kPlan.num_ctas, cta,
                        kPlan.max_splits);
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

/// Calls body<kind>().
template <class Body>
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
  }
}

/// The widths of the model's inputs, each once.
struct Widths {
  int count = 0;
  Width widths[kNumMatrices] = {};
};
SOLITON_HOST_DEVICE constexpr Widths input_widths(const KernelPlan& plan) {
  Widths all;
  for (int i = 0; i < plan.num_phases; ++i) {
    const Phase& phase = plan.phases[i];
    if (phase.kind != PhaseKind::kMatrix) continue;
    const PackedMatrix& matrix = plan.matrix(phase.matrix);
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
