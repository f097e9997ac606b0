// How the weights of a matrix stand in its pages: as bf16 (see page.h), or as integers of 4 or 8 bits with a scale, and
// perhaps a zero, for each row and group of columns: weight = scale * (value - zero). Integers of 8 bits are signed.
//
// A page of integers holds 16 rows and 2048 (of 8 bits 1024) columns, or half or a quarter of that, 512 at least: 8 units of
// neighbouring columns, each of 2 strips of neighbouring columns, each of 4, 2 or 1 steps of 32 columns. Of one step of both
// strips of a unit lane l = 4 g + j of a warp reads its A operands of `mma.m16n8k32`. The bytes of word w of a strip are
// columns 8 j + 4 w + 0, 2, 1 and 3 of the step, so that neighbouring columns are 16 bits apart, as pairs of bf16 are.
//
//   4 bits: one load of 16 bytes, two words of each strip. The lower four bits are those of row g (registers 0 and 2 of the
//           mma), the upper four those of row g + 8 (registers 1 and 3).
//   8 bits: a load for each strip, 512 bytes apart: word 0 of row g and of row g + 8, then word 1 of both, which are the
//           registers as they stand.
//
// Then come the scales as f16: of each group of columns, of each row pair g, that of row g and of row g + 8,
// each followed by its zero, an integer of 16 bits, if there are zeros.
#pragma once

#include <cstdint>

#include "layout/page.h"

namespace soliton {

constexpr int kUnits = 8;                                            // of a page of integers
constexpr int kStrips = 2;                                           // of a unit
constexpr int kStepColumns = 32;                                     // of a strip: the k of the mma
constexpr int kMinIntegerColumns = kUnits * kStrips * kStepColumns;  // of a page, and what padding is to

enum class WeightType : int32_t { kBf16 = 0, kInt4 = 1, kInt8 = 2 };
constexpr WeightType kLastWeightType = WeightType::kInt8;

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
    case WeightType::kInt8:
      return {"kInt8", 8, true, true, kMinIntegerColumns};
    case WeightType::kBf16:
      break;
  }
  return {"kBf16", 16, false, false};
}

/// The type that configurations call by its bits.
constexpr WeightType type_of_bits(int bits) {
  for (int i = static_cast<int>(kLastWeightType); i > 0; --i) {
    if (traits_of(static_cast<WeightType>(i)).bits == bits) return static_cast<WeightType>(i);
  }
  return WeightType::kBf16;
}

struct WeightFormat {
  WeightType type = WeightType::kBf16;
  int32_t group = 0;       // columns that share a scale: 32, 64 or 128; where there are scales
  bool has_zeros = false;  // of their own; else every zero is symmetric_zero()

  constexpr bool operator==(const WeightFormat&) const = default;
  SOLITON_HOST_DEVICE constexpr int bits() const { return traits_of(type).bits; }
  SOLITON_HOST_DEVICE constexpr bool has_scales() const { return traits_of(type).has_scales; }
  SOLITON_HOST_DEVICE constexpr bool takes_digits() const { return traits_of(type).takes_digits; }
  /// The zero of integers of which as many are negative as are not; those of 8 bits are signed.
  SOLITON_HOST_DEVICE constexpr int symmetric_zero() const { return bits() == 4 ? 8 : 0; }
  /// Bytes of one step of both strips of a unit, of all lanes.
  SOLITON_HOST_DEVICE constexpr int step_bytes() const { return value_bytes(kStrips * kStepColumns); }
  /// Columns of a page that is as wide as it may be, and of one that is as narrow.
  SOLITON_HOST_DEVICE constexpr int page_columns() const { return kPageBytes * 8 / (kTileRows * bits()); }
  SOLITON_HOST_DEVICE constexpr int least_columns() const { return traits_of(type).least_columns; }
  /// Bytes of the weights of so many columns of a tile, without scales.
  SOLITON_HOST_DEVICE constexpr int value_bytes(int columns) const {
    return columns * kTileRows / 8 * bits();
  }
  /// 2-byte words of one row and group: a scale, and its zero.
  SOLITON_HOST_DEVICE constexpr int group_words() const { return has_zeros ? 2 : 1; }
  /// Bytes of the scales, and zeros, of so many columns of a tile, whole groups.
  SOLITON_HOST_DEVICE constexpr int scale_bytes(int columns) const {
    return has_scales() ? columns / group * kTileRows * group_words() * 2 : 0;
  }
  /// Bytes of a matrix' block of 32 columns of a tile, with their share of the scales behind them.
  SOLITON_HOST_DEVICE constexpr int block_bytes() const {
    return value_bytes(kColumnBlock) +
           (has_scales() ? kColumnBlock * kTileRows * group_words() * 2 / group : 0);
  }
};

/// Columns of a matrix with padding: zeros, so that every consumer warp owns whole blocks, or units, of every page.
SOLITON_HOST_DEVICE constexpr int padded_columns(WeightFormat format, int columns, int consumer_warps) {
  const int unit = format.least_columns() > 0 ? format.least_columns() : kColumnBlock * consumer_warps;
  return round_up(columns, unit);
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
/// its digits; then of every step of every unit, and both strips, what lanes know of the sum of x.
constexpr int kDigits = 4;
SOLITON_HOST_DEVICE constexpr int integer_input_bytes(int columns) {
  return columns * kDigits + columns / (kStrips * kStepColumns) * 16;
}

/// Byte offset in a page of `columns` columns of the scale of `row` and group `group`; its zero follows.
SOLITON_HOST_DEVICE constexpr int scale_offset(WeightFormat format, int columns, int row, int group) {
  return format.value_bytes(columns) + ((group * 8 + row % 8) * 2 + row / 8) * format.group_words() * 2;
}

}  // namespace soliton
