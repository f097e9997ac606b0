// Where the tiles of a matrix lie in the packed weights.
#pragma once

#include <cstdint>

#include "layout/rows.h"
#include "layout/weight_format.h"

namespace soliton {

/// One packed matrix. Tile t of layer l begins at offset + l * layer_stride + t * tile_bytes(format, padded_columns).
struct PackedMatrix {
  const char* name;      // as the graph of the model calls it
  int64_t offset;        // bytes, of layer 0
  int64_t layer_stride;  // bytes; 0 for what stands once
  int32_t rows;          // output rows, without the zero rows that fill the last tile
  int32_t columns;       // inputs, without padding
  int32_t padded_columns;
  WeightFormat format;
  int32_t num_tiles;
  RowOrder row_order;
};

}  // namespace soliton
