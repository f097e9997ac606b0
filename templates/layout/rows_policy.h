// What the rows of a step decide, in one table: which tiles are multiplied together, what registers hold, how attention is
// shared, what a plan begins with. Planner, verifier, kernels and runtime ask it, and hold no threshold of their own.
//
// "Measured": us a step of Llama-3.1-8B on an H200, bf16 unless it says 4 bits, without the choice -> with it.
// "Registers": ptxas has none for more.
#pragma once

#include "layout/phase.h"

namespace soliton {

/// Rows of the kernels that there are.
constexpr int kRowCounts[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024};

/// Worker warps of a kernel of several rows.
constexpr int kWorkers = 8;

/// Warpgroups that multiply, and tiles that one multiplies together: the m of wgmma.
constexpr int kGroupWarps = 4;
constexpr int kWarpgroups = kWorkers / kGroupWarps;
constexpr int kGroupTiles = 4;

/// Are weights of few rows multiplied as they stand, by digits of the input? Not those of groups of 16 columns, which would take two
/// products each, nor of blocks with zeros. Measured against bf16, H200, 8 rows: Q8_0 2870 -> 2631, Q5_0 3107 -> 2747.
SOLITON_HOST_DEVICE constexpr bool multiplies_digits(WeightFormat format) {
  return format.takes_digits() && format.group >= kStepColumns &&
         (format.block == 0 || format.symmetric_zero() == 0);
}

/// May warpgroups sum up products of integers that became bf16, of more than 8 rows, and then scale the sums? Others are multiplied
/// by their scales first: minima would take sums of the activations, and scales of 16 columns or in blocks, or two formats beside
/// each other, more registers.
SOLITON_HOST_DEVICE constexpr bool scales_sums(WeightFormat format, WeightFormat further) {
  const bool is_plain = format.bits() == 4 && !format.has_minima && format.block == 0;
  return !further.has_scales() && (!format.takes_digits() || is_plain);
}

/// Rows from which on warpgroups multiply where they can. Measured: 5439 -> 5336 for 64 rows; 4 bits, 2752 -> 2419 for 8; Q4_K_M,
/// 4520 -> 3643 for 16, 7434 -> 3939 for 32, on an H200 4150 -> 2945 for 8, Q5_K_M 4687 -> 3224, Q6_K 6089 -> 4272, IQ4_XS 3925 -> 2953,
/// Q4_1 3156 -> 2440, and by bf16 Q5_0 3446 -> 3083, Q5_1 3777 -> 3596, Q8_0 3102 -> 2876; fp8 on an H200, 3112 -> 2920 for 8, 3313 -> 2969 for
/// 16, 4865 -> 3108 for 32, where 8 rows of bf16 would take 3990 instead of 3730; NVFP4 on an H200, 3206 -> 2573 for 8, 3444 -> 2725
/// for 16; with slots of half as many columns, 4560 -> 3381 for 32, 6108 -> 3886 for 64.
constexpr int least_warpgroup_rows(WeightFormat format, WeightFormat further) {
  if (further.type == WeightType::kE2m1) return format.has_scales() ? 32 : 8;
  return format.has_scales() ? 8 : 64;
}

/// Rows at most. Without warpgroups registers of a worker have room for 8, or 4 where integers become bf16.
constexpr int most_rows(WeightFormat format, bool warpgroups) {
  return warpgroups ? 1024 : format.has_scales() ? 32 : 64;
}

/// Rows whose sums registers have room for. More are blocks of as many, among which the CTAs are divided while matrices are
/// multiplied: the blocks' weights come out of L2 all but once.
constexpr int kMostBlockRows = 256;
SOLITON_HOST_DEVICE constexpr int row_blocks(int rows) {
  return rows <= kMostBlockRows ? 1 : rows / kMostBlockRows;
}
/// Rows that lm_head is multiplied by or not, of a block of kMostBlockRows: few rows of a step choose a token where it feeds prompts.
constexpr int kBandRows = 64;
constexpr int kBands = kMostBlockRows / kBandRows;
/// The bands of rows `first` to `end` - 1 of a step, a bit each; all kernels take fewer rows than 32 bands have.
constexpr uint32_t row_bands(int first, int end) {
  uint32_t bands = 0;
  for (int band = first / kBandRows; band < 32 && band * kBandRows < end; ++band) bands |= 1u << band;
  return bands;
}
/// Two bands of a block, or twice the same one, as LaunchParams has them.
constexpr int pack_bands(int first, int second) {
  return 1 + first + kBands * second;
}
SOLITON_HOST_DEVICE constexpr int first_band(int packed) {
  return (packed - 1) % kBands;
}
SOLITON_HOST_DEVICE constexpr int second_band(int packed) {
  return (packed - 1) / kBands;
}

/// Rows beyond which an item's new tokens come through the ring, where warpgroups attend to pages together: of more rows
/// shared memory has no room for them beside queries.
constexpr int kMostRowsInPlace = 128;

/// Rows up to which words of a phase's input are awaited in place of a grid barrier, see awaits_words(): every word is written once
/// more than it has to be. Measured, Qwen3-30B-A3B in 4 bits: 2635 -> 2550 for 8 rows, 3348 -> 3272 by what down reads;
/// 16 and 32, before pairs, took as long either way.
constexpr int kMostAwaitedRows = 32;

/// Slots of gate and up, where experts are multiplied pair by pair, that CTAs have less which have tiles of the router: they come
/// later by the time of so many. Measured, Qwen3-30B-A3B, 8 rows: 3386 -> 3343.
constexpr int kRouterSlots = 5;

/// Heads whose pages, as they lie, are operands of warpgroups.
SOLITON_HOST_DEVICE constexpr bool suits_warpgroup_pages(const KvShape& kv) {
  return kv.parts == 1 && !kv.e4m3 && (kv.head_dim == 64 || kv.head_dim == 128);
}

/// What it costs that CTAs share the columns of tiles, in bytes of activations that one could read meanwhile. Fitted to
/// steps of 64 and 128 rows whose phases were shared by 1, 2, 4 and 8 CTAs.
struct SliceCosts {
  int meeting = 40 * 1024;  // until a team's sums have come
  int sum_byte;
  int digits_byte = 2;       // of activations that become digits
  int column = 72;           // that a warpgroup multiplies,
  int integer_column = 150;  // or of integers that become bf16
};

/// The value for 8 rows (and for one), 16, 32, 64 and 128, and for 256 unless it is the same as for 128.
template <class Value>
SOLITON_HOST_DEVICE constexpr Value at_rows(int rows, Value of8, Value of16, Value of32, Value of64,
                                            Value of128, Value of256) {
  if (rows > 128) return of256;
  return rows <= 8 ? of8 : rows <= 16 ? of16 : rows <= 32 ? of32 : rows <= 64 ? of64 : of128;
}
template <class Value>
SOLITON_HOST_DEVICE constexpr Value at_rows(int rows, Value of8, Value of16, Value of32, Value of64,
                                            Value of128) {
  return at_rows(rows, of8, of16, of32, of64, of128, of128);
}

/// Has a slot room for the columns of two groups of tiles? Those of bf16 have a slot each.
SOLITON_HOST_DEVICE constexpr bool fills_half(WeightFormat format) {
  return !format.has_scales() || format.bits() == 4;
}

/// What a kernel does.
struct RowsPolicy {
  int rows;  // of a block of them
  CopyKind copies;
  WeightFormat format;   // of the matrices that are integers, if any is
  WeightFormat further;  // of those of another format
  bool warpgroups;  // do warpgroups multiply, four tiles each, and exchange the sums through device memory?
  bool gathers;     // do single rows come to shared memory, as experts want them?

  SOLITON_HOST_DEVICE constexpr RowsPolicy(int rows, CopyKind copies, WeightFormat format,
                                           WeightFormat further, bool warpgroups, bool gathers)
      : rows(rows),
        copies(copies),
        format(format),
        further(further),
        warpgroups(warpgroups),
        gathers(gathers) {}

  // ---- Products

  /// bf16 values that a float is split into: high part, low part. Up to 8 rows leave half of the mma's time.
  int parts = at_rows(rows, 2, 1, 1, 1, 1);
  /// Are integers multiplied by their scales first, in bf16? Registers of many rows hold no products beside the sums.
  bool scales_first = at_rows(rows, false, !scales_sums(format, further), !scales_sums(format, further),
                              !scales_sums(format, further), true);
  /// Signed bytes that a value of the input is where warpgroups multiply integers as they are; or 0. Measured, 4 bits: 3400
  /// -> 2692 for 16 rows; 32 rows would take 4150 instead of 3157, and on an H200 16 rows of Q4_1 3012 instead of 2931.
  int digits = !warpgroups
                   ? 0
                   : at_rows(rows, multiplies_digits(format) || multiplies_digits(further) ? 3 : 0,
                             multiplies_digits(format) && scales_sums(format, further) ? 2 : 0, 0, 0, 0);
  /// Columns of the input that shared memory holds as digits.
  int digit_columns = digits == 0 ? 0 : 2048;
  /// Chunks of columns in a slot of integers, where warpgroups multiply: four of a group of tiles, or two of two groups; of 256
  /// rows, whose chunks are half as wide, four of a group.
  int integer_slot_chunks = digits > 0 ? 4 : at_rows(rows, 2, 2, 2, 2, 2, 4);
  /// The same of a slot of bf16: of 256 rows shared memory has room for few columns, and pieces of tiles of so few are slow to
  /// copy. One of E2M1 has kE2m1PaddedColumns.
  int slot_chunks = at_rows(rows, 1, 1, 1, 1, 1, 2);
  /// Tiles side by side in a ring slot; of each fewer columns. Bulk copies of half a page are slower (measured: 4909 -> 4568
  /// for 32 rows), but whole pages of two tiles take as many columns of x, for which 64 rows have no room, and integers no
  /// registers.
  int tiles_per_slot = warpgroups                                          ? kGroupTiles
                       : copies == CopyKind::kBulk && !format.has_scales() ? at_rows(rows, 1, 1, 1, 2, 2)
                                                                           : at_rows(rows, 1, 1, 2, 2, 2);
  /// Tiles that share what is read of x out of shared memory. Two of 8 or 16 rows are 0.3 and 2% slower.
  int tiles_together = warpgroups ? 1 : at_rows(rows, 1, 1, 2, 2, 2);
  /// Groups of four tiles whose sums a warpgroup, or all workers, hold at once: with two, activations are read once for 16
  /// tiles. Sums of digits leave no registers for two, nor do those of 256 rows; where single warps multiply, two take 2 to 6%
  /// longer. Of more than 4 bits a slot has no room for two.
  int tile_groups =
      warpgroups && digits == 0 && rows <= 128 && fills_half(format) && fills_half(further) ? 2 : 1;
  /// Workers that multiply different columns of a slot; the others multiply other rows.
  int column_warps = warpgroups ? kWorkers : at_rows(rows, 8, 8, 4, 4, 4);
  /// Tiles whose sums go to those that finish them, all at once. Measured: 4117 -> 3976 for 8 rows, with the ring's slots.
  int handed_tiles = warpgroups ? kWorkers : at_rows(rows, 4, 2, 2, 2, 2);
  /// Words of 16 bytes that a thread then brings at once of the tiles that it finishes. Registers.
  int brought_words = !warpgroups ? 0 : format.has_scales() ? 4 : at_rows(rows, 6, 6, 6, 6, 4);
  /// Sets of products that registers hold: of integers one is scaled while the next is made. Measured, 4 bits: 3140 -> 3074
  /// for 32 rows.
  int product_sets = at_rows(rows, 2, 2, 2, 1, 1);
  /// Neighbouring CTAs that begin with the same chunk of activations that stay bf16. Measured: 47.15 -> 46.3 a token of a
  /// prompt.
  int alike_ctas = 4;

  /// Blocks of columns of E2M1 that warpgroups multiply at once, while as many become bf16. Registers. Measured, NVFP4: 3416 -> 3381
  /// for 32 rows, 3988 -> 3886 for 64.
  int code_blocks = at_rows(rows, 2, 2, 2, 2, 1);

  /// Registers of a worker, where they are shared out. With fewer, attention of 256 rows spills a few, 128 rows of integers with heads
  /// of 64, and 8 rows of integers of 4 bits beside some of 8. Others have fewer then: measured, 4 bits on an H200, 1955 -> 1972 for 8.
  int worker_registers = at_rows(rows, further.has_scales() ? 224 : 216, 216, 216, 216, 224);

  /// Slots that a phase's pages fill before this CTA's fence for the phase before is through; or 0: as many as there is room for.
  /// Pages that come later would be on their way when the fence comes, and that delays it, and the words that CTAs then wait for of
  /// one another. Measured, 8 rows on an H200: 4 bits 1925 -> 1900 (with 4 slots 1917), fp8 2713 -> 2665 (with 6 slots 2688), bf16 3787 ->
  /// 3723 (with 6 slots 3757); 16 rows of 4 bits, and NVFP4, take as long either way; 8 rows of Qwen3-30B-A3B would take 3075 instead
  /// of 2980.
  int early_slots = rows == 1 || copies != CopyKind::kBulk || gathers ? 0
                    : digits > 0                                      ? 6
                    : rows <= 8 && further.type != WeightType::kE2m1  ? 4
                                                                      : 0;

  // ---- Attention

  /// Do workers share the tokens of an item that has few query tiles? Items of a prompt's chunk have many; 64 rows of
  /// integers have no registers for it. Measured: 8252 -> 7378 for 64 rows with a path each.
  bool divides_tokens = !warpgroups || (format.has_scales() ? at_rows(rows, true, true, true, false, false)
                                                            : at_rows(rows, true, true, true, true, false));
  /// Units of tokens that a worker then has at least. Few rows have few items a CTA, and nothing else is to be done meanwhile: with 1
  /// no worker has two while others have none, whose number is that of a power of two. Measured, Qwen3-30B-A3B in 4 bits: 2550 -> 2519
  /// for 8 rows of short contexts.
  int least_units = at_rows(rows, 1, 2, 2, 2, 2);
  /// Query tiles, or shares of them, and whole pages from which on a warpgroup takes an item together, as it then multiplies
  /// tiles that are not there as well: of many tiles one page is enough. Measured: 9364 -> 8966 for 8 rows, whose tiles are
  /// there in two parts.
  int few_shares = parts > 1 ? 3 : 2;
  int many_shares = 3;
  int whole_pages = 2;
  /// Do an item's new tokens come through the ring, in pages of 64? See kMostRowsInPlace.
  bool streams_new_tokens = rows > kMostRowsInPlace;
  /// Do workers find which tokens an item's first queries see before these have come? Of more rows they have items enough to wait for,
  /// and registers are full. Measured, 4 bits: Qwen3-30B-A3B, 3132 -> 3097 for 8 rows; 64 rows of the 8B would take 3555 instead of 3430.
  bool looks_ahead = at_rows(rows, true, false, false, false, false);
  /// Do registers hold queries?
  bool holds_queries = at_rows(rows, true, true, true, false, false);
  /// Sets in which a page's scores are made. Registers hold the queries of one.
  int query_sets = warpgroups && !format.has_scales() ? 2 : 1;
  /// Do scores of a page come about while those before become weights? Registers: of 32 rows by warpgroups E2M1 has none. Measured:
  /// 5589 -> 5447 for 64 rows.
  bool overlaps_pages =
      !gathers &&
      (!warpgroups || (!format.has_scales() && !(further.type == WeightType::kE2m1 && rows < 64)) ||
       at_rows(rows, true, false, false, false, false));
  /// Does a warp have all of a new token's key and value on their way at once as it appends them? Of many rows it has several.
  /// Measured, 4 bits: 8203 -> 8006 for 256 rows of a prompt. Registers of few rows' kernels are fewer.
  bool appends_at_once = at_rows(rows, false, false, false, true, true);
  /// Heads that a warp norms at once, or times as many as it holds. Measured, Qwen3-30B-A3B on an H100: 40 us a layer with one.
  int normed_heads = at_rows(rows, 1, 1, 1, 1, 1, 4);
  /// Warps that merge the partials of a query head of a row, each some of its dims: with few rows all workers have something
  /// to do, and all that one loads is on its way at once. Measured: 3972 -> 3872 for 8 rows.
  int merge_shares = at_rows(rows, 4, 2, 1, 1, 1);
  /// Of these, that a warp merges at once: of many rows it has several. Measured: 4983 -> 4930 for 64 rows.
  int merged_units = at_rows(rows, 1, 1, 1, 2, 2, 4);
  /// Pieces of partials that a lane loads at once where a warp has all dims. More are more code, for which a warp waits; fewer
  /// take trees of many slices more turns. Measured: 5550 -> 5525 for 64 rows; 32 rows would lose 0.5%.
  int merge_loads = at_rows(rows, 16, 16, 16, 8, 8);
  /// Do partials hold outputs as f16, divided by the sum? With many rows it counts what is moved. Measured: 6989 -> 6582 for
  /// 64 rows of one long text.
  bool packs_partials = at_rows(rows, false, false, true, true, true);
  /// Do CTAs hold merge lists in shared memory? With many rows pages have better use for the room: a prompt of 4096 takes 384
  /// ms where it took 397; 16 rows of Qwen3-30B-A3B in 4 bits 4614 us a step where they took 4748.
  bool holds_merges = at_rows(rows, true, !(gathers && format.has_scales()), false, false, false);
};

/// What a plan begins with.
struct PlanPolicy {
  int rows;
  bool warpgroups;
  bool gathers;

  constexpr explicit PlanPolicy(const RowsPolicy& kernel)
      : rows(kernel.rows), warpgroups(kernel.warpgroups), gathers(kernel.gathers) {}

  /// Chunks of activations that shared memory holds at least, to bring some while others are read.
  int input_buffers = gathers ? 2 : at_rows(rows, 2, 2, 2, 3, 3);
  /// Query tiles of an attention item that are wanted: all share what is read of the cache. Fewer where activations leave no
  /// room for more.
  int query_tiles = warpgroups || gathers ? 8 : 12;
  /// Pages in flight: of pieces of four tiles, which take longer; or 0 for the card's, and some more where activations come
  /// out of L2 too and take their share. Measured: 6 or 7 take 64 rows 4 to 5% longer. Fewer rows wait for what other CTAs put
  /// down, and for a fence, behind what is in flight: 8 rows of 4 bits on an H100, 2392 with 8 pages, 2337 with 4, 2303 with 3; 16
  /// rows 2520, 2466 and 2440; 32 rows would take 3015 with 3 instead of 2950.
  int window = warpgroups ? at_rows(rows, 0, 0, 8, 8, 8) : 0;
  int further_window = at_rows(rows, 0, 0, 1, 1, 1);
  /// Pages brought into L2 while the ring is full. With many rows L2 is busy with activations. Measured: 4123 -> 4092 for 8
  /// rows; 32 rows would take 5156 instead of 5001; 8 rows of 4 bits by warpgroups on an H100, 2435 with 16 and with none.
  /// Experts' come by loops that bring none.
  int prefetch_pages = gathers || warpgroups ? 0 : at_rows(rows, 16, 16, 0, 0, 0);
  /// Sums cost more where threads finish more than one row.
  SliceCosts slices = {.sum_byte = at_rows(rows, 4, 4, 4, 4, 5)};
  /// What an item of attention takes, in the card's attention_item_us, and each of its query tiles. Measured: 3879 -> 3782 for two
  /// rows. Of 256 rows, by the timeline on an H200, an item of one tile takes 3 us beside its tokens and one of 8 tiles 7. With
  /// somewhat less, as it is here, mixed:225@31 8773 -> 8561 us, mixed:192@64 9467 -> 9326, mixed:240@16 as long, means of six
  /// runs; with as much, mixed:128@128 takes longer.
  double item_weight = !warpgroups ? 3 : at_rows(rows, 1, 1, 1, 1, 6);
  double tile_weight = warpgroups ? at_rows(rows, 0, 0, 0, 0, 1) : 0;
};

}  // namespace soliton
