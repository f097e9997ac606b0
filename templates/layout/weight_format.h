// How the weights of a matrix stand in its pages: as bf16 (see page.h), as E2M1, as E4M3, or as integers of 4, 5, 6 or 8 bits with a
// scale, and perhaps a zero or a minimum, for each row and group of columns:
//
//   weight = scale * (value - zero), or scale * value - minimum
//
// A page of integers holds 16 rows and 2048 (of 8 bits 1024) columns, or half or a quarter of that, 512 at least: 8
// units of neighbouring columns, each of 2 strips of neighbouring columns, each of 4, 2 or 1 steps of 32 columns. Of one step
// of both strips of a unit lane l = 4 g + j of a warp reads its A operands of `mma.m16n8k32`. The bytes of word w of a strip
// are columns 8 j + 4 w + 0, 2, 1 and 3 of the step, so that neighbouring columns are 16 bits apart, as pairs of bf16 are.
//
//   4 bits: one load of 16 bytes: word 0 of both strips, then word 1 of both. The lower four bits are those of row g (registers
//           0 and 2 of the mma), the upper four those of row g + 8 (registers 1 and 3).
//   8 bits: a load for each strip, 512 bytes apart: the four registers as they stand. Values are signed.
//   5 and 6 bits: the upper four bits of the values as if there were no others, the first of them flipped: as signed integers.
//           Behind these words of the step its lower bits: of register r of a strip two bits of each byte, 2 r up, in a word
//           of the lane's for each strip; or one bit, r up of the first strip and 4 + r up of the second, in one word.
//
// Then come the scales: of each group of columns, of each row pair g, that of row g and of row g + 8, as f16, each followed by
// its zero, an integer of 16 bits, or its minimum, an f16, if there are such.
//
// Formats with blocks (K-quants of GGUF) have signed integers of 8 bits for scales, and minima, of groups, and of each block of
// columns an f16 that its scales are multiplied by, and one for its minima. Block after block, these f16 of all row pairs come
// first, then what its groups have.
//
// E4M3 (fp8): as integers of 8 bits, but that a scale is a float. The two bytes of a half word are one pair of codes, see
// formats/e4m3_pairs.cuh.
//
// E2M1 (MXFP4): blocks of 32 columns, as those of bf16, of 272 bytes each. A lane's 8 bytes are two words, of what its operand
// A of one mma and of the next are; then come the exponents of the rows' scales, a byte of row g and one of row g + 8 for
// each g. A word holds the four registers of an operand, two codes each, one in either half: sign, exponent and mantissa of
// register 0 at bits {15, 8, 7, 6}, where bf16 has them, of registers 1 and 2 at {12, 5, 4, 3} and {9, 2, 1, 0}; of register 3
// the sign at 11, and at bits 10, 14 and 13 of the other half exponent and mantissa, see spread_e2m1().
//
// The same in groups of 16 (NVFP4): blocks of 288 bytes, which have a scale of each row and group behind the codes, those of
// the first 16 columns first, again a byte of row g and one of row g + 8 for each g. It is the file's E4M3 in another form, 5
// bits of exponent and 3 of mantissa, without sign or subnormal values: see nvfp4_scale(). And each linear layer has a float by
// which all of its sums are multiplied, see RowFactors.
#pragma once

#include <cstdint>

#include "layout/page.h"

namespace soliton {

constexpr int kUnits = 8;                                            // of a page of integers
constexpr int kStrips = 2;                                           // of a unit
constexpr int kStepColumns = 32;                                     // of a strip: the k of the mma
constexpr int kMinIntegerColumns = kUnits * kStrips * kStepColumns;  // of a page, and what padding is to

enum class WeightType : int32_t {
  kBf16 = 0,
  kInt4 = 1,
  kInt5 = 2,
  kInt6 = 3,
  kInt8 = 4,
  kE2m1 = 5,
  kE4m3 = 6
};
constexpr WeightType kLastWeightType = WeightType::kE4m3;

constexpr int kE4m3Group = 128;        // columns that share a scale
constexpr float kMostE4m3Scale = 128;  // bf16 holds 2^120 times as much

/// What E2M1 is padded to at least: columns of a slot, where warpgroups multiply.
constexpr int kE2m1PaddedColumns = 256;
constexpr int kE2m1CodeBytes = 256;  // of a block of 32 columns, before its exponents or scales
constexpr int kMostE2m1Exponent =
    128;                         // of a scale, which is 2^(exponent - 127): bf16 holds 2^126 times as much
constexpr int kNvfp4Group = 16;  // columns that share a scale
constexpr float kNvfp4Unit = 0x1p7f;  // times what kernels have for a weight is code times scale

/// The byte of a scale, code < 127 of an E4M3 without sign: exponent from 2^-9 on, and mantissa. Of 0 it is 0, which stands for
/// 2^-9: the codes have to be 0 then.
constexpr uint8_t nvfp4_scale(uint8_t code) {
  const int exponent = code >> 3;
  const int mantissa = code & 7;
  if (exponent > 0) return static_cast<uint8_t>((exponent + 2) << 3 | mantissa);
  const int doublings = mantissa >= 4 ? 2 : mantissa >= 2 ? 1 : 0;  // of 2^-9
  return static_cast<uint8_t>(doublings << 3 | (mantissa << (3 - doublings) & 7));
}

/// What a type of weights is, for all who must not know which it is.
struct FormatTraits {
  const char* name;   // its enumerator
  int bits;           // of a weight in a page
  bool has_scales;    // does a group of columns of a row share a scale?
  bool takes_digits;  // may the input become digits, so that products of weights as they stand are exact?
  int least_columns =
      0;  // of a page, as lanes have several steps of it; 0: any block of 32, of every consumer warp
};

/// The list of types. A further one is a line here, and a file in formats/ with what a lane does with it.
SOLITON_HOST_DEVICE constexpr FormatTraits traits_of(WeightType type) {
  switch (type) {
    case WeightType::kInt4:
      return {"kInt4", 4, true, true, kMinIntegerColumns};
    case WeightType::kInt5:
      return {"kInt5", 5, true, true, kMinIntegerColumns};
    case WeightType::kInt6:
      return {"kInt6", 6, true, true, kMinIntegerColumns};
    case WeightType::kInt8:
      return {"kInt8", 8, true, true, kMinIntegerColumns};
    case WeightType::kE2m1:
      return {"kE2m1", 4, false, false};
    case WeightType::kE4m3:
      return {"kE4m3", 8, true, false, kMinIntegerColumns};
    case WeightType::kBf16:
      break;
  }
  return {"kBf16", 16, false, false};
}

/// The type that configurations call by its bits: one of integers, or bf16.
constexpr WeightType type_of_bits(int bits) {
  for (int i = static_cast<int>(kLastWeightType); i > 0; --i) {
    const FormatTraits traits = traits_of(static_cast<WeightType>(i));
    if (traits.takes_digits && traits.bits == bits) return static_cast<WeightType>(i);
  }
  return WeightType::kBf16;
}

struct WeightFormat {
  WeightType type = WeightType::kBf16;
  int32_t group = 0;  // columns that share a scale: 16, 32, 64 or 128; of E2M1 16, or 0, which stands for 32
  bool has_zeros = false;   // of their own; else every zero is symmetric_zero()
  bool has_minima = false;  // and no zeros
  int32_t block = 0;        // columns of a block, or 0: scales are f16, of E4M3 floats

  constexpr bool operator==(const WeightFormat&) const = default;
  SOLITON_HOST_DEVICE constexpr int bits() const { return traits_of(type).bits; }
  SOLITON_HOST_DEVICE constexpr bool has_scales() const { return traits_of(type).has_scales; }
  SOLITON_HOST_DEVICE constexpr bool takes_digits() const { return traits_of(type).takes_digits; }
  SOLITON_HOST_DEVICE constexpr bool has_float_scales() const { return type == WeightType::kE4m3; }
  /// Have linear layers a factor beside the scales of groups (NVFP4)?
  SOLITON_HOST_DEVICE constexpr bool has_factors() const { return type == WeightType::kE2m1 && group > 0; }
  /// Of E2M1: bytes of a block of 32 columns.
  SOLITON_HOST_DEVICE constexpr int e2m1_block_bytes() const {
    return kE2m1CodeBytes + kTileRows * (has_factors() ? kColumnBlock / kNvfp4Group : 1);
  }
  /// Values of more than 4 bits are signed. Kernels have them `unit()` times as large: the first bits of a byte.
  SOLITON_HOST_DEVICE constexpr bool is_signed() const { return bits() > 4; }
  SOLITON_HOST_DEVICE constexpr int unit() const { return is_signed() ? 1 << (8 - bits()) : 1; }
  /// The zero of values as they stand, if there are no others and no minima.
  SOLITON_HOST_DEVICE constexpr int symmetric_zero() const { return is_signed() || has_minima ? 0 : 8; }
  /// What a checkpoint's values, which begin with 0, have more than signed ones.
  SOLITON_HOST_DEVICE constexpr int bias() const { return is_signed() ? 1 << (bits() - 1) : 0; }
  /// Bytes of one step of both strips of a unit, of all lanes.
  SOLITON_HOST_DEVICE constexpr int step_bytes() const { return value_bytes(kStrips * kStepColumns); }
  /// Columns of a page that is as wide as it may be, and of one that is as narrow.
  SOLITON_HOST_DEVICE constexpr int page_columns() const {
    int columns = kPageColumns;
    constexpr int kMostBits =
        kPageBytes * 12;  // of 5 and 6 bits one and a half pages: smaller ones cost too many waits
    while (columns * 2 * kTileRows * bits() <= kMostBits) columns *= 2;
    return columns;
  }
  SOLITON_HOST_DEVICE constexpr int least_columns() const { return traits_of(type).least_columns; }
  /// Bytes of the weights of so many columns of a tile, without scales but those that stand between them.
  SOLITON_HOST_DEVICE constexpr int value_bytes(int columns) const {
    if (type == WeightType::kE2m1) return columns / kColumnBlock * e2m1_block_bytes();
    return columns * kTileRows / 8 * bits();
  }
  /// Numbers of 16 bits, or of 8 in blocks, of one row and group, or of a block: a scale, and its zero or minimum.
  SOLITON_HOST_DEVICE constexpr int group_words() const {
    return has_zeros || has_minima || has_float_scales() ? 2 : 1;
  }
  /// Bytes of what 16 rows have of a group, and of a block.
  SOLITON_HOST_DEVICE constexpr int group_bytes() const {
    return kTileRows * group_words() * (block == 0 ? 2 : 1);
  }
  SOLITON_HOST_DEVICE constexpr int block_head_bytes() const {
    return block == 0 ? 0 : kTileRows * group_words() * 2;
  }
  SOLITON_HOST_DEVICE constexpr int block_scale_bytes() const {
    return block_head_bytes() + block / group * group_bytes();
  }
  /// Bytes of the scales, and all that goes with them, of so many columns of a tile: whole groups and blocks.
  SOLITON_HOST_DEVICE constexpr int scale_bytes(int columns) const {
    if (!has_scales()) return 0;
    return block == 0 ? columns / group * group_bytes() : columns / block * block_scale_bytes();
  }
  /// Bytes of a matrix' block of 32 columns of a tile, with their share of the scales behind them.
  SOLITON_HOST_DEVICE constexpr int block_bytes() const {
    constexpr int kWhole = 256;  // columns of whole groups and blocks
    return value_bytes(kColumnBlock) + scale_bytes(kWhole) / (kWhole / kColumnBlock);
  }
};

/// Consumer warps that padding is for at least: as many share the columns of several rows.
constexpr int kLeastPaddingWarps = 4;

/// Columns of a matrix with padding: zeros, so that every consumer warp owns whole blocks, or units, of every page.
SOLITON_HOST_DEVICE constexpr int padded_columns(WeightFormat format, int columns, int consumer_warps) {
  if (format.least_columns() > 0) return round_up(columns, format.least_columns());
  const int least = format.type == WeightType::kE2m1 ? kE2m1PaddedColumns : kColumnBlock * kLeastPaddingWarps;
  const int own = kColumnBlock * consumer_warps;
  return round_up(columns, own < least ? least : own);
}

/// Columns of the page that begins where `rest` columns of a tile are left. Strips must not straddle groups,
/// so short pages of those that have them are powers of two.
SOLITON_HOST_DEVICE constexpr int page_columns(WeightFormat format, int rest) {
  int columns = format.page_columns();
  if (format.least_columns() == 0) return rest < columns ? rest : columns;
  while (columns > rest) columns /= 2;
  return columns;
}

/// The page that holds a column of a tile of `padded` columns.
struct PageSpan {
  int first_column = 0;
  int columns = 0;
};
SOLITON_HOST_DEVICE constexpr PageSpan page_of(WeightFormat format, int padded, int column) {
  const int full = format.page_columns();
  PageSpan page = {column / full * full, 0};
  for (;;) {
    page.columns = page_columns(format, padded - page.first_column);
    if (column < page.first_column + page.columns) return page;
    page.first_column += page.columns;
  }
}

/// Bytes of `columns` columns of a tile, from the first of a page on to the last of one.
SOLITON_HOST_DEVICE constexpr int weight_bytes(WeightFormat format, int columns) {
  return columns / kColumnBlock * format.block_bytes();
}

/// Bytes of one tile: its pages lie one after another without gaps.
SOLITON_HOST_DEVICE constexpr int tile_bytes(WeightFormat format, int padded) {
  return weight_bytes(format, padded);
}

/// Bytes that a slice of `columns` columns of x takes in shared memory where it meets integers: of every column
/// its digits, and room for one more; then of every step of every unit, and both strips, what lanes know of the sum of x.
constexpr int kDigits = 4;
SOLITON_HOST_DEVICE constexpr int integer_input_bytes(int columns) {
  return columns * kDigits + columns / (kStrips * kStepColumns) * 16;
}

/// Byte offset in a page of `columns` columns of the scale of `row` and group `group`; its zero or minimum follows.
SOLITON_HOST_DEVICE constexpr int scale_offset(WeightFormat format, int columns, int row, int group) {
  const int pair = row % 8 * 2 + row / 8;
  const int words = format.value_bytes(columns);
  if (format.block == 0) return words + group * format.group_bytes() + pair * format.group_words() * 2;
  const int groups = format.block / format.group;
  return words + group / groups * format.block_scale_bytes() + format.block_head_bytes() +
         group % groups * format.group_bytes() + pair * format.group_words();
}

/// The same of the f16 of block `block`.
SOLITON_HOST_DEVICE constexpr int block_offset(WeightFormat format, int columns, int row, int block) {
  return format.value_bytes(columns) + block * format.block_scale_bytes() +
         (row % 8 * 2 + row / 8) * format.group_words() * 2;
}

}  // namespace soliton
