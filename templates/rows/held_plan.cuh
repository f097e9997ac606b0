// What shared memory holds of the plan for the whole launch: the CTA's items of attention, what is known of each row, merge lists,
// and the tiles and columns of its phases. Of items and merges what has no room there is read from device memory.
#pragma once

#include "ops/attention_variant.cuh"
#include "rows/shape.cuh"

namespace soliton::rows {

/// Bands of a block's rows: two, or twice the same one, or all, of which the first two are named.
struct Bands {
  int first = 0;
  int second = 1;
  bool are_all = true;

  SOLITON_DEVICE bool has(int band) const { return are_all || band == first || band == second; }
};

/// What a thread has of the sums of one.
using BandSums = float[kBandRows / 2];

/// The part of Context that fills it and reads it, and what it follows from: which block of rows is this CTA's.
template <const KernelPlan& kPlan>
struct PlanHolder : MachineContext<kPlan, RegionId, BarrierId> {
  using Base = MachineContext<kPlan, RegionId, BarrierId>;
  using Base::cta, Base::global_cta, Base::lane, Base::params, Base::region, Base::step;

  /// The block of rows that this CTA multiplies, where there are several; and its number among the CTAs that do.
  SOLITON_DEVICE int row_block() const { return kRowBlocks == 1 ? 0 : cta / kPlan.block_ctas(); }
  SOLITON_DEVICE int block_cta() const { return kRowBlocks == 1 ? global_cta() : cta % kPlan.block_ctas(); }
  SOLITON_DEVICE int first_row() const { return row_block() * kBlockRows<kPlan>; }
  /// Does this CTA tell of the block's rows what is the same in all?
  SOLITON_DEVICE bool tells_of_rows() const {
    return kRowBlocks == 1 ? this->is_first_cta() : block_cta() == 0;
  }
  static constexpr int kRowBlocks = kShape<kPlan>.row_blocks;
  /// Do all CTAs find logits of the same block of rows? They do where no others are wanted.
  SOLITON_DEVICE bool shares_logits() const { return kRowBlocks > 1 && params.logits_block > 0; }
  /// The block whose logits this CTA finds; how many do, and its number among them.
  SOLITON_DEVICE int logits_block() const { return shares_logits() ? params.logits_block - 1 : row_block(); }
  SOLITON_DEVICE int logits_ctas() const { return shares_logits() ? kPlan.num_ctas : kPlan.block_ctas(); }
  SOLITON_DEVICE int logits_cta() const { return shares_logits() ? cta : block_cta(); }
  /// Bands of the block's rows whose choices are wanted.
  SOLITON_DEVICE Bands logits_bands() const {
    if constexpr (!multiplies_bands(kPlan)) return {};
    const int wanted = opaque(params.logits_bands);  // no register is to hold it for the launch
    if (wanted == 0) return {};
    return {first_band(wanted), second_band(wanted), false};
  }
  /// Those that a phase is multiplied by.
  SOLITON_DEVICE Bands bands_of(const MatrixPhase& matrix) const {
    return matrix.output == OutputKind::kLogits ? logits_bands() : Bands{};
  }
  /// The same of a phase.
  SOLITON_DEVICE int block_of(const MatrixPhase& matrix) const {
    return matrix.output == OutputKind::kLogits ? logits_block() : row_block();
  }
  SOLITON_DEVICE int ctas_of(const MatrixPhase& matrix) const {
    return matrix.output == OutputKind::kLogits ? logits_ctas() : kPlan.block_ctas();
  }
  SOLITON_DEVICE int cta_of(const MatrixPhase& matrix) const {
    return matrix.output == OutputKind::kLogits ? logits_cta() : block_cta();
  }
  static_assert(kRowBlocks == 1 || (kPlan.num_cards == 1 && kPlan.num_ctas % kRowBlocks == 0),
                "each block of rows has as many CTAs");

  /// KV heads of this card.
  SOLITON_DEVICE int card_kv_heads() const {
    constexpr int kHeads = kPlan.model.num_kv_heads;
    if constexpr (kHeads % kPlan.num_cards == 0) return kHeads / kPlan.num_cards;
    return kv_heads_of_card(kHeads, kPlan.num_cards, this->card());
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

  /// Tiles and columns of a phase that this CTA multiplies, where warpgroups do.
  SOLITON_DEVICE TileBlock block(const MatrixPhase& matrix) const {
    const HeldBlock* held_block = held_blocks() + matrix.number;
    const auto low = [](uint32_t word) { return static_cast<int>(word & 0xffff); };
    const auto high = [](uint32_t word) { return static_cast<int>(word >> 16); };
    const uint32_t tiles = load_shared(&held_block->tiles);
    const uint32_t columns = load_shared(&held_block->columns);
    const uint32_t places = load_shared(&held_block->places);
    TileBlock block;
    block.tiles = {low(tiles), of_slices(ctas_of(matrix), matrix.column_slices), high(tiles)};
    block.first_column = low(columns) * kShape<kPlan>.chunk_columns();
    block.num_chunks = high(columns);
    block.first_chunk = low(places);
    block.slice = high(places) & 0xff;
    block.first_own = high(places) >> 8;
    return block;
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
        deal_block(matrix.num_tiles, matrix.first_cta, ctas_of(matrix), slices, cta_of(matrix));
    const int count =
        matrix.output == OutputKind::kLogits && params.skips_choice != 0 ? 0 : block.tiles.count;
    const int first_column = slice_begin(matrix.padded, chunk, slices, block.slice);
    const int num_chunks = slice_chunks(matrix.padded, chunk, slices, block.slice);
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
};

}  // namespace soliton::rows
