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
  int chunk = 0;        // positions that see one another alone, from a multiple of so many on; 0: all
  int rope = 0;  // the table of rotations that its heads are rotated by; -1: none, they stay as they are
};

/// How the experts that a token goes through stand in the matrix that it is multiplied with.
enum class ExpertAxis : int {
  kNone,     // it is no matrix of experts
  kRows,     // one below the other
  kColumns,  // side by side
};

/// Of the `count` equal parts of a matrix that lie in memory, one behind the other, a token is multiplied with `chosen`, those
/// that are shared by all tokens among them.
struct ExpertParts {
  ExpertAxis axis = ExpertAxis::kNone;
  int32_t count = 1;
  int32_t chosen = 1;

  constexpr bool operator==(const ExpertParts&) const = default;
  /// Of one part, of so many rows or columns of all that are chosen.
  SOLITON_HOST_DEVICE constexpr int rows(int of_chosen) const {
    return axis == ExpertAxis::kRows ? of_chosen / chosen : of_chosen;
  }
  SOLITON_HOST_DEVICE constexpr int columns(int of_chosen) const {
    return axis == ExpertAxis::kColumns ? of_chosen / chosen : of_chosen;
  }
};

/// One packed matrix. Tile t of layer l begins at layers[l].weights + offset + t * stored_tile_bytes(). Rows, columns and
/// tiles are those that a token is multiplied with.
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
  ExpertParts experts = {};

  SOLITON_HOST_DEVICE constexpr bool has_full_pages() const {
    return padded_columns % format.page_columns() == 0;
  }
  /// In memory: tiles of all experts, each with the columns of one.
  SOLITON_HOST_DEVICE constexpr int expert_tiles() const { return experts.rows(num_tiles); }
  SOLITON_HOST_DEVICE constexpr int stored_tiles() const { return experts.count * expert_tiles(); }
  /// Columns that a tile has in memory: what fills pages behind the last of several experts is none of theirs.
  SOLITON_HOST_DEVICE constexpr int stored_columns() const {
    return experts.axis == ExpertAxis::kColumns ? experts.columns(columns) : padded_columns;
  }
  SOLITON_HOST_DEVICE constexpr int stored_tile_bytes() const { return tile_bytes(format, stored_columns()); }
  /// From one expert to the next.
  SOLITON_HOST_DEVICE constexpr int64_t expert_bytes() const {
    return static_cast<int64_t>(expert_tiles()) * stored_tile_bytes();
  }
};

}  // namespace soliton
