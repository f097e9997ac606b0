// The kernel of several rows: what all roles of a CTA share. Rows are the new tokens of a tree of branches
// (layout/tree.h): parallel samples, a speculative tree, a chunk of a prompt.
//
//   worker warps        multiply, sum the parts of tiles in fixed order, write the outputs; attention, and
//                       merging its partial results
//   input loader warp   begins the phases: waits for all CTAs, then brings activations to shared memory
//
// With many rows activations are too large to be polled word by word as the kernel of one row does: phases
// are separated by a grid-wide counter, and chunks of activations stream through shared memory like weights.
#pragma once

#include "formats/formats.cuh"
#include "layout/several_rows.h"
#include "machine/walk.cuh"
#include "ops/attention_variant.cuh"
#include "ops/expert_table.cuh"
#include "ops/kv_pages.cuh"
#include "ops/split.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
constexpr RowsShape kShape = kPlan.shape();

/// Rows that this CTA multiplies: those of a step, or a block of them.
template <const KernelPlan& kPlan>
constexpr int kBlockRows = kPlan.block_rows();

/// Are rows grouped by the experts of a mixture, see layout/grouped_rows.h?
template <const KernelPlan& kPlan>
constexpr bool kGroups = PhaseOrder<kPlan>::kGroups;

/// Are experts multiplied pair by pair, see layout/expert_pairs.h?
template <const KernelPlan& kPlan>
constexpr bool kPairs = kPlan.multiplies_pairs();

template <const KernelPlan& kPlan>
constexpr int kTilesAtOnce = kShape<kPlan>.tiles_at_once();  // whose sums workers hold at once

template <const KernelPlan& kPlan>
constexpr QkvLayout kQkv = kPlan.qkv_layout();

template <const KernelPlan& kPlan>
constexpr int kMergeShares = kPlan.model.head_dim % (4 * kShape<kPlan>.merge_shares) == 0
                                 ? kShape<kPlan>.merge_shares
                                 : 1;

template <const KernelPlan& kPlan>
constexpr int kColumnWarps = kShape<kPlan>.column_warps;

/// Columns of a phase's slots, where warpgroups multiply.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int slot_columns(const MatrixPhase& matrix) {
  constexpr int kOfIntegers = kShape<kPlan>.slot_columns(kPlan.model.integers);
  constexpr int kOthers = kShape<kPlan>.slot_columns({});
  return has_scales<kPlan>(matrix.format.type) ? kOfIntegers : kOthers;
}

/// Chunks of activations that a unit of a full page of integers meets.
template <const KernelPlan& kPlan>
constexpr int kChunksOfUnit = kPlan.model.integers.page_columns() / kUnits / kShape<kPlan>.chunk_columns();

template <const KernelPlan& kPlan>
constexpr bool kHoldsBlocks = holds_blocks(kPlan);

/// Does the input of a phase become digits?
template <const KernelPlan& kPlan>
SOLITON_DEVICE bool takes_digits(const MatrixPhase& matrix) {
  return kShape<kPlan>.digits > 0 && has_scales<kPlan>(matrix.format.type);
}

/// Do both warpgroups multiply so many tiles of integers, a slot of their columns each in turn?
template <const KernelPlan& kPlan>
SOLITON_DEVICE bool shares_group(int tiles) {
  return kShape<kPlan>.digits > 0 && tiles <= kGroupTiles;
}

/// What every thread knows.
template <const KernelPlan& kPlan>
struct Context : MachineContext<kPlan, RegionId, BarrierId> {
  using Base = MachineContext<kPlan, RegionId, BarrierId>;
  using Base::barrier, Base::cta, Base::global_cta, Base::lane, Base::params, Base::phase, Base::region,
      Base::step, Base::wait;
  static_assert(kPlan.num_ctas > 0 && kPlan.consumer_warps == kWorkers);

  /// By all threads of the CTA, before any of them goes on.
  static constexpr int kStepPhases = kPlan.step_phases() + 1;  // before them, the embedding

  SOLITON_DEVICE void set_up() const {
    if (thread_index() == 0) {
      for (int32_t& stop : decision().stop) store_shared(&stop, 0);
    }
    if constexpr (kMixes<kPlan> && !kGroups<kPlan>) {
      const int words = kExpertsLayout.slots_of() - kExpertsLayout.expert_masks();
      for (int i = thread_index(); i < words; i += kPlan.threads())
        store_shared(expert_words(kExpertsLayout.expert_masks()) + i, 0u);
    }
    hold_plan();
  }

  /// The block of rows that this CTA multiplies, where there are several; and its number among the CTAs that do.
  SOLITON_DEVICE int row_block() const { return kRowBlocks == 1 ? 0 : cta / kPlan.block_ctas(); }
  SOLITON_DEVICE int block_cta() const { return kRowBlocks == 1 ? global_cta() : cta % kPlan.block_ctas(); }
  SOLITON_DEVICE int first_row() const { return row_block() * kBlockRows<kPlan>; }
  /// Does this CTA tell of the block's rows what is the same in all?
  SOLITON_DEVICE bool tells_of_rows() const {
    return kRowBlocks == 1 ? this->is_first_cta() : block_cta() == 0;
  }
  static constexpr int kRowBlocks = kShape<kPlan>.row_blocks;
  static_assert(kRowBlocks == 1 || (kPlan.num_cards == 1 && kPlan.num_ctas % kRowBlocks == 0),
                "each block of rows has as many CTAs");

  SOLITON_DEVICE StepDecision& decision() const {
    return *this->template region<StepDecision>(RegionId::kDecision);
  }

  /// Sums of a handed tile over some of its columns: [row of activations][kTileStride].
  SOLITON_DEVICE float* tile_parts(int tile, int column_warp) const {
    return this->template region<float>(RegionId::kTiles) +
           (tile * kColumnWarps<kPlan> + column_warp) * kBlockRows<kPlan> * kTileStride;
  }

  /// RMS norm's factors of the rows, while a phase's input is normed.
  SOLITON_DEVICE float* factors() const { return this->template region<float>(RegionId::kFactors); }

  /// Tokens of the rows in this step, for this CTA's warps that draw.
  SOLITON_DEVICE int32_t* fed_tokens() const {
    return reinterpret_cast<int32_t*>(params.sampling.exchange +
                                      ExchangeLayout{kPlan.all_ctas()}.fed_offset(kPlan.rows)) +
           cta * kMaxSampledRows;
  }

  /// Waits until all CTAs have ended the phase before. All warps that wait here take part in phase_done: the
  /// parity is never more than one phase off.
  SOLITON_DEVICE void wait_begun() const {
    // phases_done, for which workers have no register.
    const uint32_t ended = static_cast<uint32_t>(step * kStepPhases + phase);
    wait(barrier(BarrierId::kBegun), ended & 1, WaitKind::kBegun, ended);
  }
  /// Waits until it is known whether the step happens. Pairs with the arrivals of workers that finish tiles.
  SOLITON_DEVICE bool step_happens() const {
    wait(barrier(BarrierId::kStepKnown), step & 1, WaitKind::kStepKnown, 0);
    int32_t stop = 0;
    SOLITON_UNROLL
    for (int warp = 0; warp < kShape<kPlan>.team_workers(); ++warp)
      stop |= load_shared(&decision().stop[warp]);
    return stop == 0;
  }

  /// See ExpertsLayout.
  static constexpr ExpertsLayout kExpertsLayout{kPlan.rows, kPlan.model.mixture};
  /// No register is to hold where they are for the launch.
  SOLITON_DEVICE uint32_t* expert_words(int offset) const {
    return this->template region<uint32_t>(RegionId::kExperts) + opaque(offset);
  }
  SOLITON_DEVICE int expert_slots() const {
    return static_cast<int>(load_shared(expert_words(kExpertsLayout.count())));
  }
  /// Choices of experts of this launch before a layer's. Nobody has a register to count them.
  SOLITON_DEVICE uint32_t choices(int layer) const {
    if constexpr (kPlan.model.num_kinds() == 1) return step * kPlan.model.num_layers + layer;
    const auto& mixtures = kLayerTable<kPlan>.mixtures;
    return step * mixtures[kPlan.model.num_layers] + mixtures[layer];
  }
  /// Waits for a layer's. Pairs with the first worker's arrival in choose().
  SOLITON_DEVICE void wait_experts(int layer) const {
    const uint32_t before = choices(layer);
    wait(barrier(BarrierId::kExpertsChosen), before & 1, WaitKind::kExpertsChosen, before);
  }

  /// Tiles, of all cards', of a phase that this CTA finishes; of experts, once they are chosen.
  SOLITON_DEVICE TileRun tiles(const MatrixPhase& matrix) const {
    if constexpr (kMixes<kPlan> && !kGroups<kPlan>) {
      const ExpertPhase& experts = kExpertTable<kPlan>.phases[matrix.number];
      if constexpr (kPairs<kPlan>) {
        if (experts.axis != ExpertAxis::kNone) return whole_slots(experts);
      }
      if (experts.axis == ExpertAxis::kRows) return neighbours(expert_slots() * experts.tiles);
    }
    TileRun run = deal_tiles(matrix.num_tiles, matrix.first_cta, kPlan.block_ctas(), block_cta());
    if (matrix.output == OutputKind::kLogits && params.skips_choice != 0) run.count = 0;
    return run;
  }
  /// Of tiles of experts those that follow one another: a CTA needs the rows of few experts.
  SOLITON_DEVICE TileRun neighbours(int num_tiles) const {
    const int first = num_tiles * global_cta() / kPlan.all_ctas();
    return {first, 1, num_tiles * (global_cta() + 1) / kPlan.all_ctas() - first};
  }
  /// The same where pairs are multiplied, of slots that have a few tiles each.
  SOLITON_DEVICE TileRun whole_slots(const ExpertPhase& experts) const {
    const TileRun slots = neighbours(expert_slots() * (experts.tiles / experts.slot_tiles));
    return {slots.first * experts.slot_tiles, 1, slots.count * experts.slot_tiles};
  }
  /// How many of the `left` tiles from `tile` on are multiplied together: of one expert alone.
  static SOLITON_DEVICE int tiles_together(const MatrixPhase& matrix, int tile, int left) {
    int most = left < kTilesAtOnce<kPlan> ? left : kTilesAtOnce<kPlan>;
    if constexpr (kMixes<kPlan>) {
      const ExpertPhase& experts = kExpertTable<kPlan>.phases[matrix.number];
      if (experts.axis != ExpertAxis::kRows) return most;
      const int of_expert = experts.tiles - tile % experts.tiles;
      most = of_expert < most ? of_expert : most;
    }
    return most;
  }
  /// Tiles and columns of a phase that this CTA multiplies, where warpgroups do.
  SOLITON_DEVICE TileBlock block(const MatrixPhase& matrix) const {
    const HeldBlock* held_block = held_blocks() + matrix.number;
    const auto low = [](uint32_t word) { return static_cast<int>(word & 0xffff); };
    const auto high = [](uint32_t word) { return static_cast<int>(word >> 16); };
    const uint32_t tiles = load_shared(&held_block->tiles);
    const uint32_t columns = load_shared(&held_block->columns);
    const uint32_t places = load_shared(&held_block->places);
    TileBlock block;
    block.tiles = {low(tiles), of_slices(kPlan.block_ctas(), matrix.column_slices), high(tiles)};
    block.first_column = low(columns) * kShape<kPlan>.chunk_columns();
    block.num_chunks = high(columns);
    block.first_chunk = low(places);
    block.slice = high(places) & 0xff;
    block.first_own = high(places) >> 8;
    return block;
  }
  /// Waits for all workers, collective: in turn with every other use of the barrier.
  SOLITON_DEVICE void meet_workers(uint32_t& parity) const {
    warp_arrive(&barrier(BarrierId::kTilesFull));
    wait(barrier(BarrierId::kTilesFull), parity, WaitKind::kTilesFull, 0);
    warp_sync();
    parity ^= 1;
  }
  /// KV heads of this card.
  SOLITON_DEVICE int card_kv_heads() const {
    constexpr int kHeads = kPlan.model.num_kv_heads;
    if constexpr (kHeads % kPlan.num_cards == 0) return kHeads / kPlan.num_cards;
    return kv_heads_of_card(kHeads, kPlan.num_cards, this->card());
  }
  /// Query head `head` of this card's as one of the model.
  SOLITON_DEVICE int head_of_model(int head) const {
    constexpr int kGroup = kPlan.model.group();
    if constexpr (kPlan.num_cards == 1) return head;
    return (head / kGroup * kPlan.num_cards + this->card()) * kGroup + head % kGroup;
  }
  /// Publishes a word in the workspace: every card has a copy.
  template <class T>
  SOLITON_DEVICE void publish(T* word, T value) const {
    store_to_all<kPlan>(params, &PeerOffsets::workspace, word, value);
  }
  /// The same for the card that has a KV head.
  template <class T>
  SOLITON_DEVICE void publish_of_head(int kv_head, T* word, T value) const {
    store_to_card<kPlan>(params, &PeerOffsets::workspace, kv_head % kPlan.num_cards, word, value);
  }
  /// Do those who read a vector gather rows of it? Then it lies row by row.
  static SOLITON_DEVICE bool is_gathered(const Vector& vector) {
    return kMixes<kPlan> && !kGroups<kPlan> && vector.offset == mixture_input<kPlan>().offset;
  }
  static SOLITON_DEVICE int64_t gathered_offset(int part, int row, int column) {
    constexpr int kParts = kShape<kPlan>.parts;
    constexpr int kColumns = mixture_input<kPlan>().elements * 2 / (kPlan.rows * kParts);
    return ((static_cast<int64_t>(row) * kParts + part) * kColumns + column) * 2;
  }
  /// Byte offset of an element of an activation vector.
  static SOLITON_DEVICE int64_t element_offset(const Vector& vector, int part, int row, int column) {
    if constexpr (kMixes<kPlan> && !kGroups<kPlan>) {
      if (is_gathered(vector)) return gathered_offset(part, row, column);
    }
    return activation_offset(kShape<kPlan>, part, row, column);
  }
  /// Publishes one element of an activation vector. A neighbour may be another thread's.
  SOLITON_DEVICE void publish_element(Vector vector, int row, int column, float value) const {
    unsigned char* to = this->template workspace<unsigned char>(vector.offset);
    SOLITON_UNROLL
    for (int part = 0; part < kShape<kPlan>.parts; ++part) {
      publish(reinterpret_cast<uint16_t*>(to + element_offset(vector, part, row, column)),
              float_to_bf16(value));
      value = low_part(value);
    }
  }

  SOLITON_DEVICE HeldPlan& held() const { return *this->template region<HeldPlan>(RegionId::kHeld); }
  SOLITON_DEVICE HeldBlock* held_blocks() const {
    return reinterpret_cast<HeldBlock*>(region(RegionId::kHeld) + kHeldBlocksOffset);
  }
  /// TreeRow::position of every row, and then ::seen_end, ::slot, ::first_page.
  SOLITON_DEVICE int32_t* held_positions() const {
    return reinterpret_cast<int32_t*>(region(RegionId::kHeld) + held_rows_offset(kPlan));
  }
  /// Of a row what TreeRow says, of one that is not there 0.
  SOLITON_DEVICE int seen_end(int row) const { return of_row(row, 1, &TreeRow::seen_end); }
  SOLITON_DEVICE int slot_of(int row) const { return of_row(row, 2, &TreeRow::slot); }
  SOLITON_DEVICE int first_page_of(int row) const { return of_row(row, 3, &TreeRow::first_page); }
  static constexpr bool kHoldsMerges = kShape<kPlan>.holds_merges;
  static_assert(!kHoldsMerges || holds_rows(kPlan), "behind the rows");
  SOLITON_DEVICE HeldMerges& held_merges() const {
    return *reinterpret_cast<HeldMerges*>(held_positions() + kHeldOfRow * kPlan.rows);
  }
  SOLITON_DEVICE int first_item() const { return load_shared(&held().first_item); }
  SOLITON_DEVICE int end_item() const { return load_shared(&held().end_item); }
  SOLITON_DEVICE TreeItem item(int index) const {
    const int own = index - first_item();
    const auto unpack = [](uint4 a, uint4 b, uint2 c) {
      return TreeItem{.kv_head = static_cast<int>(a.x),
                      .first_page = static_cast<int>(a.y),
                      .tokens = static_cast<int>(a.z),
                      .capacity = static_cast<int>(a.w),
                      .first_row = static_cast<int>(b.x),
                      .end_row = static_cast<int>(b.y),
                      .first_new = static_cast<int>(b.z),
                      .end_new = static_cast<int>(b.w),
                      .first_partial = static_cast<int>(c.x),
                      .undivided = static_cast<int>(c.y)};
    };
    if (own < kHeldItems) {
      const TreeItem* at = held().items + own;
      const uint4* words = reinterpret_cast<const uint4*>(at);
      return unpack(load_shared(words), load_shared(words + 1),
                    load_shared(reinterpret_cast<const uint2*>(&at->first_partial)));
    }
    const TreeItem* at = params.tree.items + index;
    const uint4* words = reinterpret_cast<const uint4*>(at);
    return unpack(load_constant(words), load_constant(words + 1),
                  load_constant(reinterpret_cast<const uint2*>(&at->first_partial)));
  }
  /// Item `index` as a layer sees it: without the pages that none of its rows sees.
  SOLITON_DEVICE void limit_to_seen(TreeItem& item, int index, const Variant<kPlan>& variant) const {
    if constexpr (Variant<kPlan>::kHidesKeys || Variant<kPlan>::kPlacesScores) {
      const auto* at = reinterpret_cast<const uint2*>(&params.tree.items[index].first_position);
      const uint2 positions = load_constant(at);
      item.first_position = static_cast<int>(positions.x);
      item.least_query = static_cast<int>(positions.y);
      if constexpr (Variant<kPlan>::kHidesKeys)
        item = without_unseen(item, step, variant.first_key(item.least_query + step));
    }
  }
  /// Position of a row's token; of a row that is not there any that is sound.
  SOLITON_DEVICE int position(int row) const { return of_row(row, 0, &TreeRow::position) + step; }

  /// A word of a row, number `place` of those that are held.
  SOLITON_DEVICE int of_row(int row, int place, int32_t TreeRow::*word) const {
    if constexpr (holds_rows(kPlan)) return load_shared(held_positions() + place * kPlan.rows + row);
    return word_of_row(row, word);
  }
  SOLITON_DEVICE int word_of_row(int row, int32_t TreeRow::*word) const {
    return row < params.tree.num_rows ? load_constant(&(params.tree.rows[row].*word)) : 0;
  }

  /// By one thread: see block().
  SOLITON_DEVICE void hold_block(const MatrixPhase& matrix) const {
    static_assert(kHoldsBlocks<kPlan>, "half words are enough for tiles and chunks");
    const int slices = matrix.column_slices;
    const int chunk = slot_columns<kPlan>(matrix);
    const TileBlock block =
        deal_block(matrix.num_tiles, matrix.first_cta, kPlan.block_ctas(), slices, block_cta());
    const int count =
        matrix.output == OutputKind::kLogits && params.skips_choice != 0 ? 0 : block.tiles.count;
    const int first_column = slice_begin(matrix.padded, chunk, slices, block.slice);
    const int num_chunks =
        (slice_begin(matrix.padded, chunk, slices, block.slice + 1) - first_column) / chunk;
    const auto both = [](int low, int high) { return static_cast<uint32_t>(low | high << 16); };
    HeldBlock* held_block = held_blocks() + matrix.number;
    store_shared(&held_block->tiles, both(block.tiles.first, count));
    store_shared(&held_block->columns, both(first_column / kShape<kPlan>.chunk_columns(), num_chunks));
    // Those that begin alike ask L2 for the same of x at about the same time. Digits of all chunks are made before.
    const int first_chunk =
        (takes_digits<kPlan>(matrix) ? block_cta() : block_cta() / kShape<kPlan>.alike_ctas) % num_chunks;
    store_shared(&held_block->places, both(first_chunk, block.slice | block.first_own << 8));
  }

  /// Fills held(), by all threads of the CTA.
  SOLITON_DEVICE void hold_plan() const {
    const TreeView& tree = params.tree;
    const int first = load_constant(tree.first_item + cta);
    const int end = load_constant(tree.first_item + cta + 1);
    const int thread = thread_index();
    if (thread == 0) {
      store_shared(&held().first_item, first);
      store_shared(&held().end_item, end);
    }
    constexpr int kWords = sizeof(TreeItem) / 16;
    if (thread < kHeldItems * kWords && first + thread / kWords < end) {
      store_shared(reinterpret_cast<uint4*>(held().items) + thread,
                   load_constant(reinterpret_cast<const uint4*>(tree.items + first) + thread));
    }
    if (holds_rows(kPlan) && thread < kPlan.rows) {
      const auto hold = [&](int place, int32_t TreeRow::*word) {
        store_shared(held_positions() + place * kPlan.rows + thread, word_of_row(thread, word));
      };
      hold(0, &TreeRow::position);
      hold(1, &TreeRow::seen_end);
      hold(2, &TreeRow::slot);
      hold(3, &TreeRow::first_page);
    }
    if constexpr (kShape<kPlan>.warpgroups) {
      if (thread < PhaseOrder<kPlan>::kMatrices) hold_block(kMatrixTable<kPlan>.phases[thread]);
    }
    const int worker = thread / kWarpLanes;
    if (kHoldsMerges && worker < kWorkers) hold_merges(worker);
  }

  /// Units of merging: a share of a query head of a row each. Neighbours go to different CTAs: the work is as even as can
  /// be.
  SOLITON_DEVICE int units_of_row() const {
    return card_kv_heads() * kPlan.model.group() * kMergeShares<kPlan>;
  }
  SOLITON_DEVICE int num_units() const { return params.tree.num_rows * units_of_row(); }
  SOLITON_DEVICE int first_unit(int worker) const { return worker * kPlan.num_ctas + cta; }
  static constexpr int kUnitStride = kPlan.num_ctas * kWorkers;

  /// Entry `i` of the merge list of a row, which may be held for a worker.
  SOLITON_DEVICE TreeMerge merge(int worker, bool is_held, int row, int i) const {
    if (is_held && i < kWarpLanes) {
      const uint2 words = load_shared(reinterpret_cast<const uint2*>(&held_merges().first[worker][i]));
      return {static_cast<int>(words.x), static_cast<int>(words.y)};
    }
    const TreeMerge* at = params.tree.merges + load_constant(&params.tree.rows[row].first_merge) + i;
    return {load_constant(&at->partial), load_constant(&at->first_step)};
  }
  SOLITON_DEVICE void hold_merges(int worker) const {
    const int unit = first_unit(worker);
    if (unit >= num_units()) return;
    const int row = unit / units_of_row();
    const int first = load_constant(&params.tree.rows[row].first_merge);
    const int count = load_constant(&params.tree.rows[row].end_merge) - first;
    if (lane == 0) store_shared(&held_merges().count[worker], count);
    if (lane >= count) return;
    store_shared(reinterpret_cast<uint2*>(&held_merges().first[worker][lane]),
                 load_constant(reinterpret_cast<const uint2*>(params.tree.merges + first + lane)));
  }
  SOLITON_DEVICE bool has_work(const TreeItem& item) const {
    return cached_tokens(item, step) > 0 || takes_new_tokens(item, step);
  }

  /// Says that this warp has ended the phase, collective. Pairs with the input loader's wait.
  SOLITON_DEVICE void finish_phase() {
    warp_arrive(&barrier(BarrierId::kPhaseDone));
    this->end_phase();
  }
};

}  // namespace soliton::rows
