// Shared memory and barriers of the kernels for several rows. A further region or barrier is a word and a line here.
#pragma once

#include <cstddef>

#include "layout/launch.h"
#include "layout/structure.h"
#include "layout/tree.h"

namespace soliton::rows {

/// Items in the tree's plan that a CTA holds in shared memory: loads out of L2 are slow where all wait for them.
constexpr int kHeldItems = 7;

/// Items of attention that workers may be at, or between them; a wait by parity allows no more.
constexpr int kItemSlots = 8;

/// Rounds in which the parts of a query tile that kWorkers share become one.
constexpr int kMergeRounds = 3;
static_assert(1 << kMergeRounds == kWorkers && kPartPlaces == kWorkers / 2);

/// What workers say about a step: stop[w] is 1 if a row of worker w ends the launch.
struct StepDecision {
  int32_t stop[kWorkers];
};

/// What TileBlock says of a CTA and a matrix phase, in few words: it is the same in all layers and steps, and finding it
/// takes divisions.
struct HeldBlock {
  uint32_t tiles;    // the first, and in the upper half how many
  uint32_t columns;  // the first, in units of RowsShape::chunk_columns(); in the upper half how many chunks
  uint32_t places;   // first_chunk; and above it, a byte each, slice and first_own
};
/// Do so many half words hold what there is of a plan?
constexpr bool holds_blocks(const KernelPlan& plan) {
  for (int i = 0; i < plan.num_phases; ++i) {
    if (plan.phases[i].kind != PhaseKind::kMatrix) continue;
    const PackedMatrix& matrix = plan.matrices[plan.phases[i].matrix];
    if (matrix.num_tiles > 0xffff || matrix.padded_columns > 0xffff * plan.shape().chunk_columns())
      return false;
  }
  return true;
}

/// What a CTA holds of the plans, its own and the tree's; then, where warpgroups multiply, a HeldBlock of every matrix; then
/// position, seen_end, slot and first_page of every row: TreeRow's, 0 for rows that are not there; then HeldMerges, if it
/// holds them.
struct HeldPlan {
  TreeItem items[kHeldItems];  // the first of this CTA
  int32_t first_item;
  int32_t end_item;
};
constexpr int kHeldBlocksOffset = static_cast<int>(offsetof(HeldPlan, end_item) + sizeof(int32_t));
SOLITON_HOST_DEVICE constexpr int held_rows_offset(const KernelPlan& plan) {
  return round_up(kHeldBlocksOffset + plan.num_matrices * static_cast<int>(sizeof(HeldBlock)),
                  static_cast<int>(alignof(HeldPlan)));
}
constexpr int kHeldOfRow = 4;  // words
/// Of several blocks of rows they stay in the tree: shared memory has better use for the room.
SOLITON_HOST_DEVICE constexpr bool holds_rows(const KernelPlan& plan) {
  return row_blocks(plan.rows) == 1;
}

/// Merge lists of each worker's first unit, see merge_units(). Only where RowsPolicy::holds_merges.
struct HeldMerges {
  TreeMerge first[kWorkers][kWarpLanes];
  int32_t count[kWorkers];  // of all
};
constexpr int held_bytes(const KernelPlan& plan) {
  const int merges = plan.shape().holds_merges ? static_cast<int>(sizeof(HeldMerges)) : 0;
  return held_rows_offset(plan) + (holds_rows(plan) ? kHeldOfRow * 4 * plan.rows : 0) + merges;
}

/// What a CTA knows of the experts that the rows of a step go through: words, in shared memory. An expert that some row has
/// chosen is a slot, or several, slots are in the order of their experts; a row and an expert of its choice are a pair, and pairs are in
/// the order of slots, and within one of rows. Offsets in words.
struct ExpertsLayout {
  int rows = 0;
  Mixture mixture = {};
  int slot_pairs = 0;     // of a slot at most: an expert with more is several; 0: it has all
  bool has_runs = false;  // see runs()

  SOLITON_HOST_DEVICE constexpr int stored() const { return mixture.experts + mixture.shared; }
  SOLITON_HOST_DEVICE constexpr int pairs() const { return rows * mixture.used(); }
  SOLITON_HOST_DEVICE constexpr int slots() const {
    const int chosen = rows * mixture.chosen;
    const int further = slot_pairs == 0 ? 0 : pairs() / slot_pairs;  // one for every so many
    return mixture.shared + (mixture.experts < chosen ? mixture.experts : chosen) + further;
  }
  SOLITON_HOST_DEVICE constexpr int mask_words() const { return ceil_divide(rows, 32); }

  SOLITON_HOST_DEVICE constexpr int count() const { return 0; }                    // of slots
  SOLITON_HOST_DEVICE constexpr int experts() const { return 1; }                  // of each slot its expert,
  SOLITON_HOST_DEVICE constexpr int masks() const { return experts() + slots(); }  // its rows, a bit each,
  SOLITON_HOST_DEVICE constexpr int first_pairs() const {  // and its first pair; then the end of all
    return masks() + slots() * mask_words();
  }
  SOLITON_HOST_DEVICE constexpr int pair_rows() const { return first_pairs() + slots() + 1; }
  SOLITON_HOST_DEVICE constexpr int pair_weights() const { return pair_rows() + pairs(); }
  // While they are chosen: of each pair, row after row, its expert and weight; of each expert its rows and its first slot.
  SOLITON_HOST_DEVICE constexpr int picks() const { return pair_weights() + pairs(); }
  SOLITON_HOST_DEVICE constexpr int pick_weights() const { return picks() + pairs(); }
  SOLITON_HOST_DEVICE constexpr int expert_masks() const { return pick_weights() + pairs(); }
  SOLITON_HOST_DEVICE constexpr int slots_of() const { return expert_masks() + stored() * mask_words(); }
  // Where pairs are multiplied: what tiles of gate and up this CTA has, of the first half of the experts and of the second; then of
  // down.
  SOLITON_HOST_DEVICE constexpr int runs() const { return slots_of() + stored(); }
  SOLITON_HOST_DEVICE constexpr int bytes() const {
    return mixture.experts == 0 ? 0 : 4 * (runs() + (has_runs ? kRuns * kRunWords : 0));
  }

  static constexpr int kRuns = 4;
  /// Of a run: its first tile and behind its last one; the slot and the first pair of its first one; behind the pairs of its last one.
  enum { kTile, kEndTile, kSlot, kFirstPair, kEndPair, kRunWords };
};

/// Tiles whose sums workers hold at once: those of the shape; where units are taken, as many as are handed over. Of integers single
/// warps hold a slot of each, while one chunk of activations after the other comes: no more than a short ring has.
SOLITON_HOST_DEVICE constexpr int tiles_at_once(const KernelPlan& plan) {
  const int tiles = plan.shape().tiles_at_once();
  if (plan.takes_units()) return tiles < plan.shape().handed_tiles ? tiles : plan.shape().handed_tiles;
  const bool holds_slots = !plan.warpgroups && plan.model.integers.has_scales();
  return holds_slots && plan.ring_slots < tiles ? plan.ring_slots / 2 * 2 : tiles;
}

SOLITON_HOST_DEVICE constexpr ExpertsLayout experts_layout(const KernelPlan& plan) {
  const bool gathers = plan.multiplies_pairs() && gathers_lines(plan.rows);
  return {plan.rows, plan.model.mixture, gathers ? most_pair_lines(plan.rows) : 0, plan.multiplies_pairs()};
}

/// May lm_head be multiplied by some bands of a block's rows alone? It is in bf16; CTAs do not share its sums, whose tags tell no
/// more than some uses of a place apart; and kernels of mixtures have no register left.
SOLITON_HOST_DEVICE constexpr bool multiplies_bands(const KernelPlan& plan) {
  if (!plan.warpgroups || plan.block_rows() != kMostBlockRows || plan.model.mixture.experts > 0) return false;
  const Phase& logits = plan.phases[plan.num_phases - 1];
  return plan.matrices[logits.matrix].format.type == WeightType::kBf16 && logits.column_slices == 1 &&
         plan.shape().parts == 1 && plan.shape().slot_chunks > 1;
}

enum class BarrierId : int {
  kPageFull,    // producer and copy -> workers
  kPageEmpty,   // workers -> producer
  kInputFull,   // input loader and copy -> workers
  kInputEmpty,  // workers -> input loader
  kTilesFull,   // workers -> workers that finish tiles: all parts of the handed tiles are there
  kTilesEmpty,  // these -> workers
  kBegun,       // input loader -> workers: all CTAs have ended the phase before
  kAttending,   // input loader -> producer: the same of the phase before attention
  kPhaseDone,   // workers -> input loader: this CTA has ended the phase
  kQueryFull,   // input loader and copy -> workers: queries and new tokens of an item
  kItemDone,    // workers -> workers, input loader
  kPartsFull,   // workers -> workers: parts of query tiles
  kStepKnown,  // workers that finish tiles -> workers, input loader: StepDecision says whether the step happens
  kStepRead,       // input loader -> producer: all KV of the step before may be read
  kPicksKnown,     // workers -> the first of them: what every row goes through stands in shared memory
  kExpertsChosen,  // the first worker -> all others: so do the slots
  kLinesReady,  // workers -> workers: lines of a batch of pairs stand in shared memory; they are through a batch
  kExpertsTaken,  // producers -> the first worker: they have copied what these have
  kStopped,       // input loader -> producer: no further step
  kEnded,         // all others -> watch
  kCount
};

constexpr auto barrier_rules(const KernelPlan& plan) {
  Rules<BarrierRule, BarrierId, static_cast<int>(BarrierId::kCount)> rules;
  const int ring = plan.ring_slots;
  const int buffers = plan.input_buffers;
  rules[BarrierId::kPageFull] = {"page_full", ring, ring, copier(plan)};
  rules[BarrierId::kPageEmpty] = {"page_empty", ring, ring, Arrivers::kConsumers};
  rules[BarrierId::kInputFull] = {"input_full", buffers, buffers, copier(plan)};
  rules[BarrierId::kInputEmpty] = {"input_empty", buffers, buffers, Arrivers::kConsumers};
  rules[BarrierId::kTilesFull] = {"tiles_full", 1, 1, Arrivers::kConsumers};
  rules[BarrierId::kTilesEmpty] = {"tiles_empty", 1, 1, Arrivers::kFinishers};
  rules[BarrierId::kBegun] = {"begun", 1, 1, Arrivers::kLane};
  rules[BarrierId::kAttending] = {"attending", 1, 1, Arrivers::kLane};
  rules[BarrierId::kPhaseDone] = {"phase_done", 1, 1, Arrivers::kConsumers};
  rules[BarrierId::kQueryFull] = {"query_full", kItemSlots, kItemSlots, copier(plan)};
  rules[BarrierId::kItemDone] = {"item_done", kItemSlots, kItemSlots, Arrivers::kConsumers};
  rules[BarrierId::kPartsFull] = {"parts_full", kMergeRounds * kPartPlaces, kMergeRounds * kPartPlaces,
                                  Arrivers::kWarp};
  rules[BarrierId::kStepKnown] = {"step_known", 1, 1, Arrivers::kFinishers};
  rules[BarrierId::kStepRead] = {"step_read", 1, 1, Arrivers::kLane};
  const int mixes = plan.model.mixture.experts > 0 ? 1 : 0;
  const int picks = plan.warpgroups ? 0 : mixes;
  rules[BarrierId::kPicksKnown] = {"picks_known", picks, picks, Arrivers::kConsumers};
  rules[BarrierId::kExpertsChosen] = {"experts_chosen", mixes, mixes, Arrivers::kWarp};
  const int lines = plan.multiplies_pairs() ? 1 : 0;
  rules[BarrierId::kLinesReady] = {"lines_ready", 2 * lines, 2 * lines, Arrivers::kConsumers};
  rules[BarrierId::kExpertsTaken] = {"experts_taken", mixes, mixes, Arrivers::kProducers};
  rules[BarrierId::kStopped] = {"stopped", 1, 1, Arrivers::kLane};
  rules[BarrierId::kEnded] = {"ended", 1, 1, Arrivers::kWorkingLanes};
  return rules;
}

enum class RegionId : int {
  kPages,  // the ring
  kInput,  // chunks of activations, or digits of the input or of pairs; during attention queries and new tokens of items
  kTiles,     // sums of handed tiles: [tile][column warp][row][kTileStride]; during attention parts
              // of query tiles, which begin lent_bytes() before
  kResidual,  // residual stream, as threads hold it; where warpgroups multiply it lies in device memory
  kFactors,   // RMS norm's factors of the rows, while a phase's input is normed
  kHeld,      // HeldPlan
  kDecision,  // StepDecision
  kFenced,    // phases whose fence is through, where pages wait for it
  kExperts,   // ExpertsLayout; where warpgroups multiply the list of groups, see GroupedRows
  kStatus,    // WarpStatus of every working warp
  kBarriers,  // last
  kCount
};

static_assert(static_cast<int>(RegionId::kCount) <= kMaxRegions);
static_assert(static_cast<int>(BarrierId::kCount) <= kMaxBarriers);

constexpr auto region_rules(const KernelPlan& plan) {
  Rules<RegionRule, RegionId, static_cast<int>(RegionId::kCount)> rules;
  const auto barriers = barrier_rules(plan);
  rules[RegionId::kPages] = {"pages", plan.ring_slots * plan.slot_bytes, 16};
  rules[RegionId::kInput] = {"input", plan.input_bytes(), 16};
  rules[RegionId::kTiles] = {"tiles", plan.tile_bytes(), 16};
  rules[RegionId::kResidual] = {"residual", plan.warpgroups ? 0 : plan.residual_bytes(), 16};
  rules[RegionId::kFactors] = {"factors", 4 * plan.block_rows(), 4};
  rules[RegionId::kHeld] = {"held", held_bytes(plan), 16};
  rules[RegionId::kDecision] = {"decision", static_cast<int>(sizeof(StepDecision)), 4};
  rules[RegionId::kFenced] = {"fenced", plan.shape().early_slots > 0 ? 4 : 0, 4};
  rules[RegionId::kExperts] = {
      "experts", plan.warpgroups ? plan.grouped().list_bytes() : experts_layout(plan).bytes(), 4};
  rules[RegionId::kStatus] = {"status", plan.working_warps() * static_cast<int>(sizeof(WarpStatus)), 16};
  rules[RegionId::kBarriers] = {"barriers", kBarrierBytes * count_barriers(barriers.begin(), barriers.end()),
                                kBarrierBytes};
  return rules;
}

}  // namespace soliton::rows
