#include "runtime/weights/packing.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "layout/f16.h"

namespace soliton {
namespace {

constexpr int kLaneColumns = 8;  // of a row that one lane has next to each other

/// The eight integers of a row from `column` on, a byte each; 0 where there are no columns.
uint64_t eight_integers(const uint8_t* row, int columns, int column) {
  uint64_t bytes = 0;
  if (column + kLaneColumns <= columns) {
    std::memcpy(&bytes, row + column, sizeof bytes);
  } else if (column < columns) {
    std::memcpy(&bytes, row + column, static_cast<size_t>(columns - column));
  }
  return bytes;
}

/// Both words with their two middle bytes changed about: as integers of four columns stand in a word.
constexpr uint64_t swap_middles(uint64_t words) {
  return (words & 0xff0000ffff0000ff) | (words & 0x0000ff000000ff00) << 8 | (words & 0x00ff000000ff0000) >> 8;
}

/// What a lane has of a step of a strip: eight columns of rows g and g + 8.
class StripWords {
 public:
  StripWords(uint64_t lower, uint64_t upper) : of_row_{swap_middles(lower), swap_middles(upper)} {}

  /// Of 4 bits: half of the bits of each byte are row g's.
  uint32_t nibbles(int half) const { return bytes(2 * half) | bytes(2 * half + 1) << 4; }
  /// Register `reg` of operand A.
  uint32_t bytes(int reg) const { return static_cast<uint32_t>(of_row_[reg % 2] >> (reg / 2 * 32)); }

 private:
  uint64_t of_row_[2];
};

constexpr int kLaneBytes = 16;
constexpr uint32_t kOfEachByte = 0x01010101;

/// Of 4 bits: the word of columns 4 `half` .. + 3 of a strip, among a lane's.
void put_nibbles(uint32_t word, int strip, int half, std::byte* of_lane) {
  std::memcpy(of_lane + (half * kStrips + strip) * sizeof word, &word, sizeof word);
}

/// Of 8 bits: signed, so that 128 counts 0.
void put_bytes(const StripWords& words, int strip, int lane, std::byte* step) {
  std::byte* to = step + (strip * kWarpLanes + lane) * kLaneBytes;
  for (int reg = 0; reg < 4; ++reg) {
    const uint32_t bytes = words.bytes(reg) ^ 0x80 * kOfEachByte;
    std::memcpy(to + reg * sizeof bytes, &bytes, sizeof bytes);
  }
}

/// Of E4M3: the two bytes of a half word as the pair that kernels take apart.
void put_codes(const StripWords& words, int strip, int lane, std::byte* step) {
  std::byte* to = step + (strip * kWarpLanes + lane) * kLaneBytes;
  for (int reg = 0; reg < 4; ++reg) {
    const uint32_t bytes = words.bytes(reg);
    const uint32_t first = bytes & 0x00ff00ff;
    const uint32_t second = bytes >> 8 & 0x00ff00ff;
    const uint32_t pairs = (first & 0x00800080) << 8 | (first & 0x007f007f) << 4 |
                           (second & 0x00800080) << 4 | (second & 0x00700070) << 8 | (second & 0x000f000f);
    std::memcpy(to + reg * sizeof pairs, &pairs, sizeof pairs);
  }
}

/// Of 5 and 6 bits: the upper four, the first of them flipped, as nibbles; the others behind those of all lanes.
void put_divided(const StripWords& words, int bits, int strip, int lane, std::byte* step) {
  const int low_bits = bits - 4;
  const auto upper_of = [&](int reg) {
    return (words.bytes(reg) >> low_bits & 0x0f * kOfEachByte) ^ 0x08 * kOfEachByte;
  };
  for (int half = 0; half < 2; ++half)
    put_nibbles(upper_of(2 * half) | upper_of(2 * half + 1) << 4, strip, half, step + lane * kLaneBytes);
  uint32_t low = 0;
  std::byte* behind =
      step + kWarpLanes * kLaneBytes + (lane * low_bits + (low_bits == 2 ? strip : 0)) * sizeof low;
  if (low_bits == 1 && strip > 0) std::memcpy(&low, behind, sizeof low);
  for (int reg = 0; reg < 4; ++reg) {
    const int place = low_bits == 1 ? strip * 4 + reg : reg * 2;
    low |= (words.bytes(reg) & ((1u << low_bits) - 1) * kOfEachByte) << place;
  }
  std::memcpy(behind, &low, sizeof low);
}

/// `steps`: of a strip.
void pack_integers(const IntegerTile& rows, int begin, int columns, int steps, WeightFormat format,
                   std::byte* page) {
  const int units = columns / (kStrips * steps * kStepColumns);
  for (int i = 0; i < units * steps; ++i, page += format.step_bytes()) {
    const int unit = i / steps;
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const uint8_t* lower = rows.values.data() + static_cast<size_t>(lane / 4) * rows.columns;
      const uint8_t* upper = lower + static_cast<size_t>(8) * rows.columns;
      for (int strip = 0; strip < kStrips; ++strip) {
        const int column =
            begin + ((unit * kStrips + strip) * steps + i % steps) * kStepColumns + lane % 4 * kLaneColumns;
        const StripWords words(eight_integers(lower, rows.columns, column),
                               eight_integers(upper, rows.columns, column));
        if (format.type == WeightType::kE4m3) {
          put_codes(words, strip, lane, page);
        } else if (format.bits() == 8) {
          put_bytes(words, strip, lane, page);
        } else if (format.bits() > 4) {
          put_divided(words, format.bits(), strip, lane, page);
        } else {
          for (int half = 0; half < 2; ++half)
            put_nibbles(words.nibbles(half), strip, half, page + lane * kLaneBytes);
        }
      }
    }
  }
}

/// Scales as floats.
void pack_float_scales(const IntegerTile& rows, int begin, int columns, int group, WeightFormat format,
                       std::byte* page) {
  for (int g = 0; g < columns / format.group; ++g) {
    const int column = begin + g * format.group;
    for (int row = 0; row < kTileRows; ++row) {
      const size_t source = static_cast<size_t>(row) * rows.num_groups + column / group;
      const float scale = column < rows.columns ? rows.scales[source] : 0;
      std::memcpy(page + scale_offset(format, columns, row, g), &scale, sizeof scale);
    }
  }
}

/// Scales as f16, each with its zero or minimum.
void pack_scales(const IntegerTile& rows, int begin, int columns, int group, WeightFormat format,
                 std::byte* page) {
  for (int g = 0; g < columns / format.group; ++g) {
    const int column = begin + g * format.group;
    for (int row = 0; row < kTileRows; ++row) {
      uint16_t words[2] = {};
      if (column < rows.columns) {
        const size_t source = static_cast<size_t>(row) * rows.num_groups + column / group;
        words[0] = f16_bits(rows.scales[source]);
        words[1] = format.has_minima ? f16_bits(rows.minima[source]) : rows.zeros[source];
      }
      std::memcpy(page + scale_offset(format, columns, row, g), words,
                  sizeof(uint16_t) * format.group_words());
    }
  }
}

/// Scales of blocks as f16, and those of groups as integers.
void pack_blocks(const IntegerTile& rows, int begin, int columns, WeightFormat format, std::byte* page) {
  const int words = format.group_words();
  for (int row = 0; row < kTileRows; ++row) {
    for (int b = 0; b < columns / format.block; ++b) {
      const int block = begin / format.block + b;
      uint16_t head[2] = {};
      if (block < rows.num_blocks()) {
        const size_t source = static_cast<size_t>(row) * rows.num_blocks() + block;
        head[0] = f16_bits(rows.block_scales[source]);
        head[1] = f16_bits(rows.block_minima[source]);
      }
      std::memcpy(page + block_offset(format, columns, row, b), head, sizeof(uint16_t) * words);
    }
    for (int g = 0; g < columns / format.group; ++g) {
      const int group = begin / format.group + g;
      int8_t of_group[2] = {};
      if (group < rows.num_groups) {
        const size_t source = static_cast<size_t>(row) * rows.num_groups + group;
        of_group[0] = static_cast<int8_t>(static_cast<int>(rows.scales[source]));
        of_group[1] = static_cast<int8_t>(static_cast<int>(rows.minima[source]));
      }
      std::memcpy(page + scale_offset(format, columns, row, g), of_group, static_cast<size_t>(words));
    }
  }
}

/// What goes with the groups of a page, or of a part of one.
void pack_groups(const IntegerTile& rows, int begin, int columns, int group, WeightFormat format,
                 std::byte* page) {
  if (format.has_float_scales()) {
    pack_float_scales(rows, begin, columns, group, format, page);
  } else if (format.block > 0) {
    pack_blocks(rows, begin, columns, format, page);
  } else {
    pack_scales(rows, begin, columns, group, format, page);
  }
}

constexpr int kBf16Bytes = 2;
constexpr int kBlockRowBytes = kColumnBlock * kBf16Bytes;
constexpr int kBlockBytes = kTileRows * kBlockRowBytes;

// What interleave() relies on: 8 columns of a row are two words of one lane in each of two mma, and between them
// stand those of the row 8 further down.
static_assert(weight_offset(8, 0) == weight_offset(0, 0) + 4 &&
              weight_offset(0, 2) == weight_offset(0, 0) + 8);
static_assert(weight_offset(0, 4) == weight_offset(0, 0) + kFragmentBytes);

/// Packs 8 columns of two rows. In whole words of a lane, which the compiler makes wide loads and stores: loading a
/// model is this loop.
void interleave(const std::byte* upper_row, const std::byte* lower_row, std::byte* lane) {
  uint32_t upper[4];
  uint32_t lower[4];
  std::memcpy(upper, upper_row, sizeof upper);
  std::memcpy(lower, lower_row, sizeof lower);
  const uint32_t first[4] = {upper[0], lower[0], upper[1], lower[1]};
  const uint32_t second[4] = {upper[2], lower[2], upper[3], lower[3]};
  std::memcpy(lane, first, sizeof first);
  std::memcpy(lane + kFragmentBytes, second, sizeof second);
}

/// Packs 32 columns of 16 rows.
void pack_block(const std::byte* const (&rows)[kTileRows], std::byte* block) {
  constexpr int kHalf = kTileRows / 2;
  for (int row = 0; row < kHalf; ++row) {
    for (int column = 0; column < kColumnBlock; column += kLaneColumns) {
      interleave(rows[row] + column * kBf16Bytes, rows[row + kHalf] + column * kBf16Bytes,
                 block + weight_offset(row, column));
    }
  }
}

/// Where in half a word the bits of a register's code are, the mantissa's first; those below the sign may be in the other half.
struct CodePlace {
  int bits[4];
  bool is_divided;
};
constexpr CodePlace kCodePlaces[] = {
    {{6, 7, 8, 15}, false}, {{3, 4, 5, 12}, false}, {{0, 1, 2, 9}, false}, {{13, 14, 10, 11}, true}};

/// `code`, of register `reg`, in its half of the word.
uint32_t place_code(uint32_t code, int reg, int half) {
  constexpr int kSign = 3;
  const CodePlace& place = kCodePlaces[reg];
  uint32_t word = 0;
  for (int bit = 0; bit <= kSign; ++bit) {
    const int at = place.is_divided && bit < kSign ? 1 - half : half;
    word |= (code >> bit & 1) << (place.bits[bit] + 16 * at);
  }
  return word;
}

/// The word of `lane` of operand `mma` of 32 columns from `begin` on.
uint32_t e2m1_word(const E2m1Tile& rows, int begin, int mma, int lane) {
  uint32_t word = 0;
  for (int i = 0; i < 8; ++i) {
    const int reg = i / 2;
    const int row = lane / 4 + reg % 2 * 8;
    const int column = begin + lane % 4 * 8 + mma * 4 + reg / 2 * 2 + i % 2;
    if (column >= rows.columns) continue;
    word |= place_code(rows.codes[static_cast<size_t>(row) * rows.columns + column], reg, i % 2);
  }
  return word;
}

}  // namespace

uint16_t f16_bits(float value) {
  return std::bit_cast<uint16_t>(static_cast<F16>(value));
}

void pack_tile(const IntegerTile& rows, int group, WeightFormat format, int padded, std::byte* tile) {
  int columns = 0;
  for (int begin = 0; begin < padded; begin += columns) {
    columns = page_columns(format, padded - begin);
    std::byte* page = tile + weight_bytes(format, begin);
    pack_integers(rows, begin, columns, columns / kMinIntegerColumns, format, page);
    pack_groups(rows, begin, columns, group, format, page);
  }
}

void pack_part(const IntegerTile& rows, int group, WeightFormat format, std::byte* tile) {
  pack_integers(rows, 0, rows.columns, format.page_columns() / kMinIntegerColumns, format, tile);
  pack_groups(rows, 0, rows.columns, group, format, tile);
}

void pack_tile(const E2m1Tile& rows, int padded, std::byte* tile) {
  constexpr int kLaneWords = 2;
  const int block_groups = kColumnBlock / rows.group;
  for (int begin = 0; begin < padded;
       begin += kColumnBlock, tile += kE2m1CodeBytes + kTileRows * block_groups) {
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      for (int mma = 0; mma < kLaneWords; ++mma) {
        const uint32_t word = e2m1_word(rows, begin, mma, lane);
        std::memcpy(tile + (lane * kLaneWords + mma) * sizeof word, &word, sizeof word);
      }
    }
    for (int i = 0; i < block_groups; ++i) {
      const int group = begin / rows.group + i;
      for (int row = 0; row < kTileRows; ++row) {
        const uint8_t scale =
            group < rows.num_groups ? rows.scales[static_cast<size_t>(row) * rows.num_groups + group] : 0;
        std::memcpy(tile + kE2m1CodeBytes + i * kTileRows + row % 8 * 2 + row / 8, &scale, 1);
      }
    }
  }
}

void pack_tile(const std::byte* const (&rows)[kTileRows], int columns, int padded, std::byte* tile) {
  const bool has_all_rows = std::find(rows, rows + kTileRows, nullptr) == rows + kTileRows;
  for (int begin = 0; begin < padded; begin += kColumnBlock, tile += kBlockBytes) {
    const std::byte* at[kTileRows];
    std::byte copy[kTileRows][kBlockRowBytes];
    const int present = std::clamp(columns - begin, 0, kColumnBlock);
    const bool is_whole = has_all_rows && present == kColumnBlock;
    for (int row = 0; row < kTileRows; ++row) {
      if (is_whole) {
        at[row] = rows[row] + begin * kBf16Bytes;
        continue;
      }
      at[row] = copy[row];
      std::memset(copy[row], 0, kBlockRowBytes);
      if (rows[row] != nullptr)
        std::memcpy(copy[row], rows[row] + begin * kBf16Bytes, static_cast<size_t>(present * kBf16Bytes));
    }
    pack_block(at, tile);
  }
}

}  // namespace soliton
