#include "runtime/packing.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace soliton {
namespace {

/// The four integers of a row from `column` on as the lower halves of bytes, in their order in a word; 0 where there
/// are no columns.
uint32_t four_integers(const uint8_t* row, int columns, int column) {
  uint8_t numbers[4] = {};
  if (column < columns) std::memcpy(numbers, row + column, std::min<size_t>(4, columns - column));
  return uint32_t{numbers[0]} | uint32_t{numbers[2]} << 8 | uint32_t{numbers[1]} << 16 |
         uint32_t{numbers[3]} << 24;
}

void pack_integers(const IntegerTile& rows, int begin, int columns, std::byte* page) {
  const int steps = columns / kMinIntegerColumns;
  auto* words = reinterpret_cast<uint32_t*>(page);
  for (int unit = 0; unit < kUnits; ++unit) {
    for (int step = 0; step < steps; ++step) {
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        const uint8_t* lower = rows.values.data() + static_cast<size_t>(lane / 4) * rows.columns;
        const uint8_t* upper = lower + static_cast<size_t>(8) * rows.columns;
        for (int strip = 0; strip < kStrips; ++strip) {
          const int first = begin + ((unit * kStrips + strip) * steps + step) * kStepColumns + lane % 4 * 8;
          for (int column = first; column < first + 8; column += 4) {
            *words++ = four_integers(lower, rows.columns, column) | four_integers(upper, rows.columns, column)
                                                                        << 4;
          }
        }
      }
    }
  }
}

void pack_scales(const IntegerTile& rows, int begin, int columns, int group, WeightFormat format,
                 std::byte* page) {
  for (int g = 0; g < columns / format.group; ++g) {
    const int column = begin + g * format.group;
    for (int row = 0; row < kTileRows; ++row) {
      uint16_t words[2] = {};
      if (column < rows.columns) {
        const size_t source = static_cast<size_t>(row) * rows.num_groups + column / group;
        words[0] = f16_bits(rows.scales[source]);
        words[1] = rows.zeros[source];
      }
      std::memcpy(page + scale_offset(format, columns, row, g), words,
                  sizeof(uint16_t) * format.group_words());
    }
  }
}

}  // namespace

uint16_t f16_bits(float value) {
  return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}

void pack_tile(const IntegerTile& rows, int group, WeightFormat format, int padded, std::byte* tile) {
  int columns = 0;
  for (int begin = 0; begin < padded; begin += columns) {
    columns = page_columns(format, padded - begin);
    std::byte* page = tile + weight_bytes(format, begin);
    pack_integers(rows, begin, columns, page);
    pack_scales(rows, begin, columns, group, format, page);
  }
}

void pack_tile(const std::byte* const (&rows)[kTileRows], int columns, int padded, std::byte* tile) {
  constexpr int kBlockBytes = kTileRows * kColumnBlock * 2;
  for (int r = 0; r < kTileRows; ++r) {
    for (int pair = 0; pair < kColumnBlock / 2; ++pair) {
      const int offset = weight_offset(r, pair * 2);
      for (int block = 0; block < padded / kColumnBlock; ++block) {
        const int column = block * kColumnBlock + pair * 2;
        std::byte* word = tile + block * kBlockBytes + offset;
        if (rows[r] != nullptr && column < columns) {
          std::memcpy(word, rows[r] + column * 2, 4);
        } else {
          std::memset(word, 0, 4);
        }
      }
    }
  }
}

}  // namespace soliton
