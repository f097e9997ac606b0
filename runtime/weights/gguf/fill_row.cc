// Tiles have values from 0 on. Where a type's are signed and the format has none but minima, its least value becomes 0, and a
// minimum of as many scales makes up for it.
#include "runtime/weights/gguf/fill_row.h"

#include <algorithm>

#include "runtime/weights/gguf/blocks.h"

namespace soliton {
namespace {

/// A group's numbers, in each of the groups that the format makes of it.
void repeat(int times, float scale, float minimum, float*& scales, float*& minima) {
  for (int i = 0; i < times; ++i) {
    *scales++ = scale;
    *minima++ = minimum;
  }
}

}  // namespace

void fill_row(GgufType type, const std::byte* data, int64_t first, int64_t count, const WeightFormat& format,
              IntegerTile& rows, int to) {
  const BlockFormat own = block_format(type);
  const GgufTypeFacts& facts = gguf_type(type);
  const int times = own.group / format.group;
  const bool lifts = format.has_minima && !own.has_offsets;
  const int zero = format.has_minima ? own.least_code : -(1 << (format.bits() - 1));  // of the tile's values
  float* scales = rows.row_scales(to);
  float* minima = rows.minima.data() + static_cast<size_t>(to) * rows.num_groups;
  uint8_t* values = rows.row_values(to);
  const std::byte* block = data + first / facts.block_columns * facts.block_bytes;
  for (int64_t done = 0; done < count; done += facts.block_columns, block += facts.block_bytes) {
    int8_t codes[kMostBlockColumns];
    if (format.block == 0) {
      float scale = 0;
      float offset = 0;
      unpack_blocks(type, block, 0, facts.block_columns, codes, &scale, &offset);
      repeat(times, scale, lifts ? static_cast<float>(-own.least_code) * scale : -offset, scales, minima);
    } else {
      TwoLevels levels;
      unpack_block(type, block, levels);
      std::copy_n(levels.codes, facts.block_columns, codes);
      const size_t place =
          static_cast<size_t>(to) * rows.num_blocks() + static_cast<size_t>(done / format.block);
      rows.block_scales[place] = levels.scale;
      rows.block_minima[place] = lifts ? static_cast<float>(-own.least_code) * levels.scale : levels.offset;
      for (int group = 0; group < facts.block_columns / own.group; ++group) {
        const float scale = levels.group_scales[group];
        repeat(times, scale, lifts ? scale : levels.group_offsets[group], scales, minima);
      }
    }
    for (int i = 0; i < facts.block_columns; ++i) *values++ = static_cast<uint8_t>(codes[i] - zero);
  }
}

}  // namespace soliton
