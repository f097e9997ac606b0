// The vectors that kernels of several rows exchange. They lie in global memory as the consumers want them in
// shared memory, so that a chunk of columns of all rows is one bulk copy.
#pragma once

#include "layout/page.h"
#include "layout/rows_policy.h"

namespace soliton {

constexpr int kQueryRows = 16;  // rows of a tile of queries: the m of the mma

/// Parts of query tiles that workers hand to others at once.
constexpr int kPartPlaces = 4;

/// Registers of each thread of a kernel that shares them out, at its launch.
constexpr int kLaunchRegisters = 168;
/// And then of each thread of the third warpgroup, which has all warps but the workers, where these have so many.
SOLITON_HOST_DEVICE constexpr int other_registers(int of_workers) {
  return 3 * kLaunchRegisters - 2 * of_workers;
}

/// Of a CTA, the watch included.
SOLITON_HOST_DEVICE constexpr int threads_of(int working_warps, bool shares_registers) {
  return round_up(working_warps + 1, shares_registers ? kGroupWarps : 1) * kWarpLanes;
}

/// Floats of a tile's row of activations in shared memory: 16 sums, and a gap so that lanes meet no bank
/// twice.
constexpr int kTileStride = kTileRows + 4;

/// Between the rows that are gathered in shared memory, each `columns` columns of a part: lanes meet no bank twice.
constexpr int kRowGapBytes = 64;
SOLITON_HOST_DEVICE constexpr int gathered_row_bytes(int columns) {
  return columns * 2 + kRowGapBytes;
}

/// What follows from the policy of a kernel that takes several activation vectors a step.
struct RowsShape : RowsPolicy {
  int row_blocks;

  SOLITON_HOST_DEVICE constexpr RowsShape(int step_rows, CopyKind copies, WeightFormat format,
                                          WeightFormat further, bool warpgroups, bool gathers)
      : RowsPolicy(step_rows / soliton::row_blocks(step_rows), copies, format, further, warpgroups, gathers),
        row_blocks(soliton::row_blocks(step_rows)) {}

  SOLITON_HOST_DEVICE constexpr int step_rows() const { return rows * row_blocks; }

  /// Columns of a chunk of an activation vector; of a ring slot too, where it has one chunk.
  SOLITON_HOST_DEVICE constexpr int chunk_columns() const {
    return kPageColumns / tiles_per_slot / slot_chunks;
  }
  /// Those of a slot of a matrix, where warpgroups multiply.
  SOLITON_HOST_DEVICE constexpr int slot_columns(WeightFormat matrix) const {
    if (matrix.type == WeightType::kE2m1) return kE2m1PaddedColumns;
    if (!matrix.has_scales()) return slot_chunks * chunk_columns();
    const int parts =
        digits > 0 && !(takes_digits(matrix) && matrix.bits() == 4) ? 2 : 1;  // of what 4 bits have room for
    return integer_slot_chunks / parts * chunk_columns();
  }
  SOLITON_HOST_DEVICE constexpr int column_bytes() const { return rows * parts * 2; }
  /// From one chunk of a vector to the next: chunks of all blocks of rows lie side by side.
  SOLITON_HOST_DEVICE constexpr int chunk_stride() const { return chunk_bytes() * row_blocks; }
  SOLITON_HOST_DEVICE constexpr int chunk_bytes() const {
    return chunk_columns() * column_bytes() + (gathers ? rows * parts * kRowGapBytes : 0);
  }

  /// Tiles whose sums workers hold at once.
  SOLITON_HOST_DEVICE constexpr int tiles_at_once() const {
    return tile_groups * kGroupTiles * (warpgroups ? kWarpgroups : 1);
  }

  /// Are weights of a matrix multiplied by digits?
  SOLITON_HOST_DEVICE constexpr bool takes_digits(WeightFormat matrix) const {
    return digits > 0 && multiplies_digits(matrix);
  }
  /// Bytes of a column of the input as digits.
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

/// Byte offset of an element of an activation vector: blocks of 32 columns; in each of every part, of every
/// row, 32 bf16. For warpgroups: blocks of the 8 columns that are a row of a core matrix, neighbouring pairs of all four
/// quads of lanes (layout/page.h); in each of every part 8 bf16 of every row. Blocks of rows have a chunk of columns each.
SOLITON_HOST_DEVICE constexpr int64_t activation_offset(RowsShape shape, int part, int row, int column) {
  if (shape.warpgroups) {
    const int block = column / kColumnBlock * 4 + column % 8 / 2;
    const int place = column % kColumnBlock / 8 * 2 + column % 2;
    if (shape.row_blocks > 1) {
      const int chunk_blocks = shape.chunk_columns() / 8;
      const int chunk = block / chunk_blocks * shape.row_blocks + row / shape.rows;
      const int line = (block % chunk_blocks * shape.parts + part) * shape.rows + row % shape.rows;
      return static_cast<int64_t>(chunk) * shape.chunk_bytes() + line * 16 + place * 2;
    }
    return (static_cast<int64_t>(block * shape.parts + part) * shape.rows + row) * 16 + place * 2;
  }
  const int64_t line = static_cast<int64_t>(column / kColumnBlock * shape.parts + part) * shape.rows + row;
  return line * kColumnBlock * 2 + column % kColumnBlock * 2;
}

/// Rows of the tiles that hold the step's own keys and values.
SOLITON_HOST_DEVICE constexpr int tail_tokens(int rows) {
  return round_up(rows, kTailTokens);
}

/// Queries of a KV head up to which both parts of a query are rows of one tile: as many tiles then as there are workers.
constexpr int kMostStackedQueries = kWorkers * (kQueryRows / 2);

/// What the qkv phase writes: the queries of each KV head in tiles of 16 rows, in the order of a key page (query
/// head h of row r is number r * group + h); then of each KV head the step's keys and its values, in the
/// order of a KV page. All f16. Of two parts of few queries a tile has 8, whose low parts are the rows behind them; else queries are
/// in `shape.parts` parts, tile by tile.
struct QkvLayout {
  RowsShape shape;
  KvShape kv;
  int group = 0;  // query heads of a KV head

  SOLITON_HOST_DEVICE constexpr bool stacks_parts() const {
    return shape.parts == 2 && shape.step_rows() * group <= kMostStackedQueries;
  }
  SOLITON_HOST_DEVICE constexpr int tile_queries() const {
    return stacks_parts() ? kQueryRows / 2 : kQueryRows;
  }
  SOLITON_HOST_DEVICE constexpr int query_tiles() const {  // of a KV head
    return ceil_divide(shape.step_rows() * group, tile_queries());
  }
  SOLITON_HOST_DEVICE constexpr int query_tile_bytes() const {  // of all parts
    return query_tile().tile_bytes();
  }
  SOLITON_HOST_DEVICE constexpr int tail_bytes() const {  // of keys, or of values, of a KV head
    return tail_tokens(shape.step_rows()) / kTailTokens * kv.tile_bytes();
  }
  SOLITON_HOST_DEVICE constexpr int64_t query_offset(int kv_head, int query, int dim, int part) const {
    const int tile = kv_head * query_tiles() + query / tile_queries();
    const int row = query % tile_queries() + (stacks_parts() ? part * tile_queries() : 0);
    return static_cast<int64_t>(tile) * query_tile_bytes() +
           query_tile().key_offset(row, dim, stacks_parts() ? 0 : part);
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
    return {.head_dim = kv.head_dim, .parts = stacks_parts() ? 1 : shape.parts};
  }
};

}  // namespace soliton
