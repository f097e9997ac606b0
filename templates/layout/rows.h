// Which output a packed row of a matrix computes. Rows that the epilogue combines share a tile: the two
// halves of a rotation pair, and the gate and up rows of one ffn element.
#pragma once

#include "layout/page.h"

namespace soliton {

/// Order of the packed rows of a matrix.
enum class RowOrder : int {
  kPlain,   // packed row = source row
  kRotary,  // q, k: row r and r + 8 of a tile are dims d and d + head_dim / 2 of one head; v rows are plain
  kGateUp,  // rows 0..7 of tile t are gate rows 8t..8t+7, rows 8..15 the up rows of the same elements
};

/// Dim within its head that row `row` (0..15) of tile `tile_in_head` holds under kRotary.
SOLITON_HOST_DEVICE constexpr int rotary_dim(int tile_in_head, int row, int head_dim) {
  return row < 8 ? tile_in_head * 8 + row : head_dim / 2 + tile_in_head * 8 + row - 8;
}

/// Kernels rotate all dims of a head, each with that half a head away. Of a model that rotates the first `rope_dims` only (0:
/// all), the others are pairs that stay as they are: this is the model's dim in place `dim` of a head of q or k, for kernels.
SOLITON_HOST_DEVICE constexpr int model_dim(int dim, int head_dim, int rope_dims) {
  const int half = head_dim / 2;
  const int rotated = rope_dims > 0 ? rope_dims / 2 : half;  // pairs
  const int pair = dim % half;
  if (pair < rotated) return dim / half * rotated + pair;
  return 2 * rotated + dim / half * (half - rotated) + pair - rotated;
}

/// Row of the concatenated source matrix that packed row `packed` holds.
/// kRotary: the source is q | k | v, the first `rotary_rows` rows being q and k, of whose heads see model_dim().
/// kGateUp: the source is gate | up, `num_rows` rows in all.
SOLITON_HOST_DEVICE constexpr int source_row(RowOrder order, int packed, int num_rows, int rotary_rows,
                                             int head_dim, int rope_dims = 0) {
  if (order == RowOrder::kRotary && packed < rotary_rows) {
    const int head = packed / head_dim;
    const int within = packed % head_dim;
    const int dim = rotary_dim(within / kTileRows, within % kTileRows, head_dim);
    return head * head_dim + model_dim(dim, head_dim, rope_dims);
  }
  if (order == RowOrder::kGateUp) {
    const int tile = packed / kTileRows;
    const int row = packed % kTileRows;
    return row < 8 ? tile * 8 + row : num_rows / 2 + tile * 8 + row - 8;
  }
  return packed;
}

}  // namespace soliton
