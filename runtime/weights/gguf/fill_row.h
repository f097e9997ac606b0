// Rows of quantised tensors of a GGUF file as rows of tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout/weight_format.h"
#include "models/gguf_types.h"
#include "runtime/weights/packing.h"

namespace soliton {

/// Fills row `to` of a tile with `count` elements of a tensor from `first` on, whole blocks, in a format that holds its type.
/// Thread-safe.
void fill_row(GgufType type, const std::byte* data, int64_t first, int64_t count, const WeightFormat& format,
              IntegerTile& rows, int to);

}  // namespace soliton
