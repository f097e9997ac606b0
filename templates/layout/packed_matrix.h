// Where the tiles of a matrix lie in the packed weights.
#pragma once

#include <cstdint>

#include "layout/rows.h"
#include "layout/weight_format.h"

namespace soliton {

/// A layer. What stands once, behind the layers, is one more, of a kind of its own, which is the last.
struct Layer {
  int kind = 0;         // what its phases and matrices are
  int64_t weights = 0;  // where its matrices begin in the packed weights
  int first_norm = 0;   // its first row of LaunchParams::norms
  int window = 0;       // keys that a query sees, its own is the last; 0: all
};

/// One packed matrix. Tile t of layer l begins at layers[l].weights + offset + t * tile_bytes(format, padded_columns).
struct PackedMatrix {
  const char* name;    // as the graph of the model calls it
  int32_t layer_kind;  // of the layers that have one
  int64_t offset;      // bytes, in its layer
  int32_t rows;        // output rows, without the zero rows that fill the last tile
  int32_t columns;     // inputs, without padding
  int32_t padded_columns;
  WeightFormat format;
  int32_t num_tiles;
  RowOrder row_order;
};

}  // namespace soliton
