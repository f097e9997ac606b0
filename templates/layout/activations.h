// The vectors that kernels of several rows exchange. They lie in global memory as the consumers want them in
// shared memory, so that a chunk of columns of all rows is one bulk copy.
#pragma once

#include "layout/page.h"
#include "layout/phase.h"
#include "layout/weight_format.h"

namespace soliton {

constexpr int kQueryRows = 16;  // query heads in one tile of attention: the m of the mma

/// Parts of query tiles that workers hand to others at once.
constexpr int kPartPlaces = 4;

/// Worker warps of a kernel of several rows.
constexpr int kWorkers = 8;

/// Rows of a kernel that is for chunks of prompts.
constexpr int kChunkRows = 128;

constexpr int kGroupWarps = 4;  // of a warpgroup
// Registers of each thread of a kernel that shares them out, at its launch and then.
constexpr int kLaunchRegisters = 168;
constexpr int kWorkerRegisters = 216;
constexpr int kOtherRegisters = 72;
static_assert(3 * kLaunchRegisters == 2 * kWorkerRegisters + kOtherRegisters,
              "two warpgroups of workers, one of all others");

/// Of a CTA, the watch included.
SOLITON_HOST_DEVICE constexpr int threads_of(int working_warps, bool shares_registers) {
  return round_up(working_warps + 1, shares_registers ? kGroupWarps : 1) * kWarpLanes;
}

/// Floats of a tile's row of activations in shared memory: 16 sums, and a gap so that lanes meet no bank
/// twice.
constexpr int kTileStride = kTileRows + 4;

/// Rows of a kernel whose warpgroups multiply integers by digits of x. With more it pays to make bf16 of the integers.
constexpr int kMostDigitRows = 16;

/// Warpgroups that multiply, and tiles that one multiplies together: the m of wgmma.
constexpr int kWarpgroups = kWorkers / kGroupWarps;
constexpr int kGroupTiles = 4;

/// Shape of a kernel that takes `rows` activation vectors a step.
struct RowsShape {
  int rows = 0;
  int parts = 1;           // bf16 values that a float is split into: high part, low part
  int tiles_per_slot = 1;  // weight tiles side by side in a ring slot; of each fewer columns
  int tiles_together = 1;  // tiles that share what is read of x out of shared memory
  int column_warps = 0;  // workers that multiply different columns of a slot; the others multiply other rows
  int handed_tiles = 0;  // whose sums go to those that finish them, all at once
  bool warpgroups =
      false;  // do warpgroups multiply, four tiles each, and exchange the sums through device memory?
  int brought_words = 0;  // of 16 bytes, that a thread then brings at once of the tiles that it finishes
  int digits =
      0;  // signed bytes that a value of the input is where warpgroups multiply integers as they are; or 0

  /// Columns of a ring slot, and of a chunk of an activation vector.
  SOLITON_HOST_DEVICE constexpr int chunk_columns() const { return kPageColumns / tiles_per_slot; }
  /// The same of a slot where warpgroups multiply: of integers it holds four chunks of a group of tiles, or two of two
  /// groups.
  SOLITON_HOST_DEVICE constexpr int slot_columns(WeightFormat format) const {
    return (!format.has_scales() ? 1 : digits > 0 ? 4 : 2) * chunk_columns();
  }
  SOLITON_HOST_DEVICE constexpr int column_bytes() const { return rows * parts * 2; }
  SOLITON_HOST_DEVICE constexpr int chunk_bytes() const { return chunk_columns() * column_bytes(); }

  /// Tiles whose sums workers hold at once: each of two warpgroups those of a group of four, or of two.
  SOLITON_HOST_DEVICE constexpr int tiles_at_once() const {
    return warpgroups ? (digits > 0 ? 1 : 2) * kWarpgroups * kGroupTiles : 4;
  }

  /// Columns of the input that shared memory holds as digits, and bytes of one.
  SOLITON_HOST_DEVICE constexpr int digit_columns() const { return digits == 0 ? 0 : 2048; }
  SOLITON_HOST_DEVICE constexpr int digit_column_bytes() const { return rows * digits; }

  /// A team has a worker for every 8 rows, or for every 8 * rows_per_thread(). Handed tiles go to the teams in turn.
  SOLITON_HOST_DEVICE constexpr int team_workers() const { return rows / 8 < kWorkers ? rows / 8 : kWorkers; }
  SOLITON_HOST_DEVICE constexpr int rows_per_thread() const { return rows / 8 / team_workers(); }
  SOLITON_HOST_DEVICE constexpr int teams() const {
    const int most = kWorkers / team_workers();
    return handed_tiles < most ? handed_tiles : most;
  }
  SOLITON_HOST_DEVICE constexpr int finishing_workers() const { return teams() * team_workers(); }
  /// Of warpgroups: what every thread has brought of the tiles that it finishes, and then what it gathers of its rows.
  SOLITON_HOST_DEVICE constexpr int brought_bytes() const {
    return kWorkers * brought_words * kWarpLanes * 16;
  }
  /// And behind these what one warpgroup adds of the sums of another, where both share a group of tiles.
  SOLITON_HOST_DEVICE constexpr int shared_sums_offset() const {
    return brought_bytes() + kWorkers * kWarpLanes * rows_per_thread() * 8;
  }
  SOLITON_HOST_DEVICE constexpr int handed_bytes() const {
    if (warpgroups) return shared_sums_offset() + (digits > 0 ? kGroupTiles * sums_bytes() : 0);
    return handed_tiles * column_warps * rows * kTileStride * 4;
  }
  /// Sums of a tile: 16 of every row.
  SOLITON_HOST_DEVICE constexpr int sums_bytes() const { return rows * kTileRows * 4; }
};

/// Up to 8 rows leave half of the mma's time: as for one row, x counts with 16 bits. From 32 rows on two
/// tiles share what is read of x out of shared memory. Bulk copies of half a page are slower: each tile has a slot of its
/// own if it can; as many columns of 64 rows of x would leave too little of shared memory, and the code for integers has
/// no registers left for two slots.
SOLITON_HOST_DEVICE constexpr RowsShape rows_shape(int rows, CopyKind copies, WeightFormat format,
                                                   bool warpgroups) {
  if (warpgroups) {
    const bool by_digits = format.takes_digits() && rows <= kMostDigitRows;
    return {.rows = rows,
            .parts = rows <= 8 ? 2 : 1,
            .tiles_per_slot = kGroupTiles,
            .column_warps = kWorkers,
            .handed_tiles = kWorkers,
            .warpgroups = true,
            .brought_words = rows >= kChunkRows || format.has_scales() ? 4 : 6,  // as there are registers
            .digits = !by_digits  ? 0
                      : rows <= 8 ? 3
                                  : 2};
  }
  const bool whole_pages = copies == CopyKind::kBulk && !format.has_scales();
  return {.rows = rows,
          .parts = rows <= 8 ? 2 : 1,
          .tiles_per_slot = rows <= 16 || (rows <= 32 && whole_pages) ? 1 : 2,
          .tiles_together = rows <= 16 ? 1 : 2,
          .column_warps = rows <= 16 ? kWorkers : kWorkers / 2,
          .handed_tiles = rows <= 8 ? 4 : 2};
}

/// Byte offset of an element of an activation vector: blocks of 32 columns; in each of every part, of every
/// row, 32 bf16. For warpgroups: blocks of the 8 columns that are a row of a core matrix, neighbouring pairs of all four
/// quads of lanes (layout/page.h); in each of every part 8 bf16 of every row.
SOLITON_HOST_DEVICE constexpr int64_t activation_offset(RowsShape shape, int part, int row, int column) {
  if (shape.warpgroups) {
    const int block = column / kColumnBlock * 4 + column % 8 / 2;
    const int place = column % kColumnBlock / 8 * 2 + column % 2;
    return (static_cast<int64_t>(block * shape.parts + part) * shape.rows + row) * 16 + place * 2;
  }
  const int64_t line = static_cast<int64_t>(column / kColumnBlock * shape.parts + part) * shape.rows + row;
  return line * kColumnBlock * 2 + column % kColumnBlock * 2;
}

/// Rows of the tiles that hold the step's own keys and values.
SOLITON_HOST_DEVICE constexpr int tail_tokens(int rows) {
  return round_up(rows, kTailTokens);
}

/// What the qkv phase writes: the queries of each KV head in tiles of 16, in the order of a key page (query
/// head h of row r is number r * group + h); then of each KV head the step's keys and its values, in the
/// order of a KV page. All f16; queries in `shape.parts` parts, tile by tile.
struct QkvLayout {
  RowsShape shape;
  KvShape kv;
  int group = 0;  // query heads of a KV head

  SOLITON_HOST_DEVICE constexpr int query_tiles() const {  // of a KV head
    return ceil_divide(shape.rows * group, kQueryRows);
  }
  SOLITON_HOST_DEVICE constexpr int query_tile_bytes() const {  // of all parts
    return query_tile().tile_bytes();
  }
  SOLITON_HOST_DEVICE constexpr int tail_bytes() const {  // of keys, or of values, of a KV head
    return tail_tokens(shape.rows) / kTailTokens * kv.tile_bytes();
  }
  SOLITON_HOST_DEVICE constexpr int64_t query_offset(int kv_head, int query, int dim, int part) const {
    const int tile = kv_head * query_tiles() + query / kQueryRows;
    return static_cast<int64_t>(tile) * query_tile_bytes() +
           query_tile().key_offset(query % kQueryRows, dim, part);
  }
  SOLITON_HOST_DEVICE constexpr int64_t keys_offset(int kv_head) const {
    return static_cast<int64_t>(kv.num_kv_heads) * query_tiles() * query_tile_bytes() +
           static_cast<int64_t>(kv_head) * 2 * tail_bytes();
  }
  SOLITON_HOST_DEVICE constexpr int64_t values_offset(int kv_head) const {
    return keys_offset(kv_head) + tail_bytes();
  }
  SOLITON_HOST_DEVICE constexpr int64_t bytes() const { return keys_offset(kv.num_kv_heads); }

 private:
  SOLITON_HOST_DEVICE constexpr KvShape query_tile() const {
    return {.head_dim = kv.head_dim, .parts = shape.parts};
  }
};

}  // namespace soliton
