// The plan of one kernel as the generator writes it and the kernel reads it: one constexpr value of a structural type,
// which is the kernel's template argument. What the verifier has judged is what runs: shared memory is addressed
// through `regions`, barriers are initialised from `barriers`, and the step walks `phases`.
//
// Which regions and barriers there are, how large they are and who arrives stands in layout/one_row.h and
// layout/several_rows.h, once for planner, verifier and kernel.
#pragma once

#include <cstdint>

#include "layout/activations.h"
#include "layout/deal.h"
#include "layout/expert_pairs.h"
#include "layout/grouped_rows.h"
#include "layout/model_shape.h"
#include "layout/order.h"
#include "layout/phase.h"
#include "layout/shared_memory.h"

namespace soliton {

struct KernelPlan {
  ModelShape model;
  // A step: what stands once in a library, or is written apart so that it reads well.
  const PackedMatrix* matrices = nullptr;  // [num_matrices], in the order of the packed weights
  int num_matrices = 0;
  const Vector* vectors = nullptr;  // [num_vectors], in the order of the workspace
  int num_vectors = 0;
  const Phase* phases = nullptr;  // [num_phases], of one kind of layers after another, each in order
  int num_phases = 0;
  int rows = 1;  // of activations in a step
  SyncMode sync = SyncMode::kSelfValidating;
  int num_ctas = 0;   // of a card
  int num_cards = 1;  // that a launch spans
  CopyKind copies = CopyKind::kBulk;
  int consumer_warps = 0;  // several rows: workers
  int producer_warps = 1;
  int ring_slots = 0;
  int slot_bytes = 0;
  int window = 0;          // pages in flight of matrices,
  int waiting_window = 0;  // of these while the CTA's consumers wait for their input; one row, bulk copies
  int kv_window = 0;       // and of the cache
  int prefetch_pages = 0;  // brought into L2 while the ring is full
  int residual_tiles = 0;  // of one CTA at most
  int num_norms = 0;       // rows of LaunchParams::norms
  // One row only.
  int tile_slots = 0;
  int chunk_columns = 0;  // of an input that shared memory holds at once
  int min_pages_per_split = 0;
  int max_splits = kMaxSplits;  // of attention
  // Several rows only.
  int input_buffers = 0;          // chunks of activations that shared memory holds at once
  int max_query_tiles = 0;        // of an attention item
  int warp_dims = 128;            // output dims of a query tile that one warp's registers hold
  bool shares_registers = false;  // do workers take registers from the other warps, as whole warpgroups can?
  bool warpgroups = false;        // do warpgroups multiply (wgmma)?
  int squares = kNone;            // several rows: the vector of the sums of squares of each CTA's columns
  int block = kNone;              // the same, where norms follow blocks: what these give, as threads hold it,
  int block_squares = kNone;      // and its sums of squares
  Vector partials = {};           // one row: of attention that is split over CTAs
  Vector sums = {};               // warpgroups: of tiles, of every CTA those of sum_passes()
  int64_t counter_offset = 0;     // in the workspace, as all up to
  int64_t counter_bytes = 0;
  int64_t workspace_bytes = 0;
  int num_regions = 0;
  Region regions[kMaxRegions] = {};
  int num_barriers = 0;
  BarrierSet barriers[kMaxBarriers] = {};

  SOLITON_HOST_DEVICE constexpr Vector vector(int index) const {
    return index == kNone ? Vector{} : vectors[index];
  }
  /// Calls body(phase, layer) for the phases of a whole step, in order, by their index: while it is compiled, or on the host.
  template <class Body>
  constexpr void for_each_step_phase(const Body& body) const {
    for (int layer = 0; layer <= model.num_layers; ++layer) {
      for (int i = 0; i < num_phases; ++i) {
        if (phases[i].layer_kind == model.layers[layer].kind) body(i, layer);
      }
    }
  }
  constexpr int step_phases() const {
    int count = 0;
    for_each_step_phase([&](int, int) { ++count; });
    return count;
  }
  /// Phases that a timeline has of a step: those of several rows begin with the tokens' embedding.
  constexpr int recorded_phases() const { return step_phases() + (rows > 1 ? 1 : 0); }
  /// The first phase of a kind; an empty one if there is none.
  SOLITON_HOST_DEVICE constexpr Phase phase(PhaseKind kind) const {
    for (int i = 0; i < num_phases; ++i) {
      if (phases[i].kind == kind) return phases[i];
    }
    return {};
  }
  /// q, k and v as attention reads them, and what it puts out.
  SOLITON_HOST_DEVICE constexpr Vector heads_in() const { return vector(phase(PhaseKind::kAttention).reads); }
  SOLITON_HOST_DEVICE constexpr Vector heads_out() const {
    return vector(phase(PhaseKind::kAttention).writes);
  }
  /// Several rows: q and k before their heads are normed.
  SOLITON_HOST_DEVICE constexpr Vector unnormed_heads() const {
    return vector(phase(PhaseKind::kNormHeads).reads);
  }
  /// The residual stream as a layer finds it.
  SOLITON_HOST_DEVICE constexpr Vector layer_input() const { return vector(phases[0].reads); }
  /// The best token of each CTA, and whether to stop.
  SOLITON_HOST_DEVICE constexpr Vector candidates() const { return vector(phases[num_phases - 1].writes); }
  SOLITON_HOST_DEVICE constexpr OrderTables order_tables() const {
    return {num_norms, model.hidden, model.num_heads * model.head_dim};
  }
  /// Pages that a phase has in flight.
  SOLITON_HOST_DEVICE constexpr int window_of(const Phase& phase) const {
    return phase.kind == PhaseKind::kMatrix ? window : phase.kind == PhaseKind::kAttention ? kv_window : 0;
  }
  /// Of all cards, see tiles_of_card().
  SOLITON_HOST_DEVICE constexpr int all_ctas() const { return num_ctas * num_cards; }
  /// Of these, that multiply a block of rows, see row_blocks().
  SOLITON_HOST_DEVICE constexpr int block_ctas() const { return all_ctas() / row_blocks(rows); }
  SOLITON_HOST_DEVICE constexpr int block_rows() const { return rows / row_blocks(rows); }
  /// What a card's cache holds of the KV heads, and their head blocks.
  SOLITON_HOST_DEVICE constexpr KvShape card_kv() const {
    return {model.num_layers, kv_heads_of_card(model.num_kv_heads, num_cards, 0), model.head_dim,
            model.kv_parts, model.kv_e4m3};
  }
  SOLITON_HOST_DEVICE constexpr int card_blocks() const {
    return model.num_blocks() / model.num_kv_heads * card_kv().num_kv_heads;
  }
  /// Lanes that copy of a warp that does nothing but copy.
  SOLITON_HOST_DEVICE constexpr int copy_lanes() const { return copies == CopyKind::kBulk ? 1 : kWarpLanes; }
  /// Warps that the watch looks after: consumers or workers, producers, the epilogue or the input loader.
  SOLITON_HOST_DEVICE constexpr int working_warps() const { return consumer_warps + producer_warps + 1; }
  SOLITON_HOST_DEVICE constexpr int threads() const { return threads_of(working_warps(), shares_registers); }
  SOLITON_HOST_DEVICE constexpr RowsShape shape() const {
    return {rows,          copies,     model.integers,
            model.further, warpgroups, model.mixture.experts > 0 && !warpgroups};
  }
  /// Where warpgroups multiply the experts of a mixture.
  SOLITON_HOST_DEVICE constexpr GroupedRows grouped() const {
    return {rows, warpgroups ? model.mixture : Mixture{}, model.hidden, model.integers};
  }
  /// Are experts multiplied pair by pair, see layout/expert_pairs.h?
  SOLITON_HOST_DEVICE constexpr bool multiplies_pairs() const {
    return !warpgroups && phase(PhaseKind::kUngroup).kind == PhaseKind::kUngroup;
  }
  /// Of the activations of one pair in front of what an expert's down multiplies.
  SOLITON_HOST_DEVICE constexpr int pair_bytes() const { return model.mixture.ffn * shape().parts * 2; }
  SOLITON_HOST_DEVICE constexpr PairLines pair_lines(int columns) const {
    return {columns, set_steps() * kStepColumns, pair_digits(rows)};
  }
  SOLITON_HOST_DEVICE constexpr bool takes_units() const {
    return suits_units(rows) && shares_registers && multiplies_pairs();
  }
  /// Of a card's heads.
  SOLITON_HOST_DEVICE constexpr QkvLayout qkv_layout() const {
    return {shape(), card_kv().in_f16(), model.group()};
  }

  /// Offset in shared memory of the first barrier of a set.
  SOLITON_HOST_DEVICE constexpr int barrier_offset(int set) const {
    int offset = regions[num_regions - 1].offset;
    for (int i = 0; i < set; ++i) offset += barriers[i].slots * kBarrierBytes;
    return offset;
  }
  /// Bytes of shared memory; the barriers come last.
  SOLITON_HOST_DEVICE constexpr int shared_bytes() const {
    return regions[num_regions - 1].offset + regions[num_regions - 1].bytes;
  }

  // One row.
  SOLITON_HOST_DEVICE constexpr int attention_units() const { return ceil_divide(card_blocks(), num_ctas); }
  /// Words of a partial result of a head block: maximum, sum and output of each head.
  SOLITON_HOST_DEVICE constexpr int partial_words() const { return kHeadsPerBlock * (model.head_dim + 2); }
  /// Groups of four values of a unit's q, k and v that a lane of a consumer brings to shared memory, at most.
  SOLITON_HOST_DEVICE constexpr int staged_loads() const {
    constexpr int kRows = kHeadsPerBlock + 2;
    if (model.head_pieces() > 1) return model.head_pieces() * ceil_divide(kRows, consumer_warps);
    return ceil_divide(kRows * model.head_dim / 4, consumer_warps * kWarpLanes);
  }
  /// What lies during attention where a consumer's slice of x was: its part of a unit, then what it brought of q, k, v.
  SOLITON_HOST_DEVICE constexpr int attention_slice_bytes() const {
    return partial_words() * 4 + staged_loads() * kWarpLanes * 16;
  }
  /// Shared memory for an input, or a chunk of it.
  SOLITON_HOST_DEVICE constexpr int x_bytes() const {
    int widest = 0;
    bool digits = false;
    for (int i = 0; i < num_matrices; ++i) {
      widest = matrices[i].padded_columns > widest ? matrices[i].padded_columns : widest;
      digits = digits || matrices[i].format.takes_digits();
    }
    const int columns = widest < chunk_columns ? widest : chunk_columns;
    const int input = digits ? integer_input_bytes(chunk_columns) : columns * 4;
    const int attention = consumer_warps * attention_slice_bytes();
    return input > attention ? input : attention;
  }

  /// Are all pages as wide as those of their format may be?
  SOLITON_HOST_DEVICE constexpr bool has_only_full_pages() const {
    for (int i = 0; i < num_matrices; ++i) {
      if (!matrices[i].has_full_pages()) return false;
    }
    return true;
  }

  // Several rows.
  /// The same of weights with scales.
  SOLITON_HOST_DEVICE constexpr bool has_full_pages() const {
    for (int i = 0; i < num_matrices; ++i) {
      if (matrices[i].format.has_scales() && !matrices[i].has_full_pages()) return false;
    }
    return true;
  }
  /// Steps of a strip of integers that share a scale and a page's unit: a set, whose products are summed before they are
  /// scaled.
  SOLITON_HOST_DEVICE constexpr int set_steps() const { return set_steps(model.integers); }
  SOLITON_HOST_DEVICE constexpr int set_steps(WeightFormat format) const {
    if (!format.has_scales()) return 1;
    const int of_unit = format.page_columns() / format.least_columns();
    const int of_group = format.group < kStepColumns ? 1 : format.group / kStepColumns;
    return !has_full_pages() ? 1 : of_group < of_unit ? of_group : of_unit;
  }
  SOLITON_HOST_DEVICE constexpr int digit_bytes() const {
    return shape().digit_columns * shape().digit_column_bytes();
  }
  /// The least of a format's sets of steps that digits are multiplied by.
  SOLITON_HOST_DEVICE constexpr int digit_set_steps() const {
    const int own = shape().takes_digits(model.integers) ? set_steps(model.integers) : 0;
    const int other = shape().takes_digits(model.further) ? set_steps(model.further) : 0;
    return own == 0 || (other > 0 && other < own) ? other : own;
  }
  /// Of every set of steps of the digits and pair of rows their scales and their sums.
  SOLITON_HOST_DEVICE constexpr int digit_scale_bytes() const {
    if (shape().digits == 0) return 0;
    return shape().digit_columns / kStepColumns / digit_set_steps() * (block_rows() / 2) * 16;
  }
  SOLITON_HOST_DEVICE constexpr int pair_input_bytes() const {
    if (!multiplies_pairs()) return 0;
    return soliton::pair_input_bytes(pair_lines(model.mixture.ffn), rows, matrices, num_matrices,
                                     takes_units() ? shape().column_bytes() : 0);
  }
  /// Chunks of activations; or digits of the input and their scales, or of pairs.
  SOLITON_HOST_DEVICE constexpr int input_bytes() const {
    const int chunks = input_buffers * shape().chunk_bytes();
    const int digits = digit_bytes() + digit_scale_bytes() + pair_input_bytes();
    return chunks > digits ? chunks : digits;
  }
  /// A part of a query tile, or of its share, that one warp hands to another: of each query outputs, maximum and sum.
  SOLITON_HOST_DEVICE constexpr int query_part_bytes() const {
    return qkv_layout().tile_queries() * (model.head_dim / dim_shares() + 2) * 4;
  }
  /// Warps among which the output dims of a query tile are shared; each computes all of its scores.
  SOLITON_HOST_DEVICE constexpr int dim_shares() const { return ceil_divide(model.head_dim, warp_dims); }
  /// Query tiles that an attention item of any length may touch: the pages of one with more stay in the ring until it is done.
  SOLITON_HOST_DEVICE constexpr int streamed_query_tiles() const { return kWorkers / dim_shares(); }
  /// What a CTA keeps of the residual stream.
  SOLITON_HOST_DEVICE constexpr int residual_bytes() const {
    return 4 * residual_tiles * kTileRows * block_rows();
  }
  /// Teams that have tiles of the residual stream.
  SOLITON_HOST_DEVICE constexpr int residual_teams() const {
    return shape().teams() < residual_tiles ? shape().teams() : residual_tiles;
  }
  /// Floats that hold one row's sums of squares: one of each of these of each CTA, and zeros. Lanes that share a row load 16
  /// bytes each.
  SOLITON_HOST_DEVICE constexpr int squares_stride() const {
    return round_up(block_ctas() * residual_teams(), 4 * kWarpLanes);
  }
  /// Warpgroups multiply so many tiles of a phase at a time, shape().tiles_at_once() each time; every time has a place for
  /// its sums where CTAs share columns, and every second one where they do not.
  SOLITON_HOST_DEVICE constexpr int sum_passes() const {
    int most = 2;
    for (int i = 0; i < num_phases; ++i) {
      if (phases[i].kind != PhaseKind::kMatrix || phases[i].column_slices == 1) continue;
      const int tiles =
          ceil_divide(matrices[phases[i].matrix].num_tiles, block_ctas() / phases[i].column_slices);
      const int passes = ceil_divide(tiles, shape().tiles_at_once());
      most = passes > most ? passes : most;
    }
    return most;
  }
  /// Are there CTAs that share the columns of tiles?
  SOLITON_HOST_DEVICE constexpr bool shares_columns() const {
    for (int i = 0; i < num_phases; ++i) {
      if (phases[i].column_slices > 1) return true;
    }
    return false;
  }
  /// Are there phases whose tiles warps finish?
  SOLITON_HOST_DEVICE constexpr bool finishes_by_warp() const {
    for (int i = 0; i < num_phases; ++i) {
      if (is_finished_by_warp(phases[i].output, phases[i].column_slices)) return true;
    }
    return false;
  }
  /// Do sums of a phase's tiles go through the workspace?
  SOLITON_HOST_DEVICE constexpr bool puts_sums(const Phase& phase) const {
    return warpgroups && phase.kind == PhaseKind::kMatrix &&
           matrices[phase.matrix].experts.axis == ExpertAxis::kNone &&
           !is_finished_by_warp(phase.output, phase.column_slices);
  }
  /// Where warpgroups multiply it lies behind the sums in the workspace: shared memory has better use for the room.
  SOLITON_HOST_DEVICE constexpr int64_t residual_offset(int cta) const {
    const int64_t sums_bytes =
        int64_t{sum_passes()} * num_ctas * shape().tiles_at_once() * shape().sums_bytes();
    return sums.offset + sums_bytes + static_cast<int64_t>(cta) * residual_bytes();
  }
  /// Do the warps of a warpgroup attend to whole pages together, each for a query tile?
  SOLITON_HOST_DEVICE constexpr bool attends_together() const {
    return shares_registers && dim_shares() == 1 && suits_warpgroup_pages(model.kv());
  }
  /// Do new tokens come through the ring like those of the cache? Else an item has room for all of a step beside its queries.
  SOLITON_HOST_DEVICE constexpr bool streams_new_tokens() const {
    return shape().streams_new_tokens && attends_together();
  }
  /// Do items that have all tokens of their rows write what the next phase reads, with no partial results?
  SOLITON_HOST_DEVICE constexpr bool ends_rows() const {
    return streams_new_tokens() && !model.attention.sinks && !model.ordered && num_cards == 1;
  }
  SOLITON_HOST_DEVICE constexpr int item_tail_bytes() const {
    return streams_new_tokens() ? 0 : 2 * qkv_layout().tail_bytes();
  }
  /// What an item of attention takes of the room for activations at most.
  SOLITON_HOST_DEVICE constexpr int item_bytes() const {
    return max_query_tiles * qkv_layout().query_tile_bytes() + item_tail_bytes();
  }
  /// Sums of tiles, or parts of query tiles but for what is lent to these.
  SOLITON_HOST_DEVICE constexpr int tile_bytes() const {
    const int parts = part_bytes() - lent_bytes();
    return shape().handed_bytes() > parts ? shape().handed_bytes() : parts;
  }
  SOLITON_HOST_DEVICE constexpr int part_bytes() const {
    return shape().divides_tokens ? kPartPlaces * query_part_bytes() : 0;
  }
  /// The end of the room for activations that no item needs: what parts take beside the sums' room, so that the ring gets it.
  SOLITON_HOST_DEVICE constexpr int lent_bytes() const {
    const int wanted = part_bytes() - shape().handed_bytes();
    const int left = input_bytes() - item_bytes();
    return wanted <= 0 || left <= 0 ? 0 : wanted < left ? wanted : left;
  }
  /// Tokens of an attention item that touches more than streamed_query_tiles(): its pages stay in the ring.
  SOLITON_HOST_DEVICE constexpr int resident_tokens() const {
    return ring_slots / (2 * model.kv().slots_per_half()) * kKvPageTokens;
  }
};

/// The plan with the phases of its step, which stay where they are.
template <int kNumPhases>
constexpr KernelPlan with_phases(KernelPlan plan, const Phase (&phases)[kNumPhases]) {
  plan.phases = phases;
  plan.num_phases = kNumPhases;
  return plan;
}

}  // namespace soliton
