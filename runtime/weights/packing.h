// Tiles of weights in the order in which the kernel reads them, see layout/page.h and layout/weight_format.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "layout/page.h"
#include "layout/weight_format.h"

namespace soliton {

/// Packs one tile (16 rows) of bf16 weights: rows[r] points to row r, or is null for a row of zeros. `tile` takes
/// tile_bytes() of bf16.
void pack_tile(const std::byte* const (&rows)[kTileRows], int columns, int padded, std::byte* tile);

/// 16 rows of integers, or of codes in E4M3, which have scales alone. Rows that are not there have zeros for everything.
struct IntegerTile {
  explicit IntegerTile(int columns, int num_groups)
      : columns(columns),
        num_groups(num_groups),
        values(static_cast<size_t>(kTileRows) * columns),
        scales(static_cast<size_t>(kTileRows) * num_groups),
        zeros(static_cast<size_t>(kTileRows) * num_groups),
        minima(static_cast<size_t>(kTileRows) * num_groups),
        block_scales(static_cast<size_t>(kTileRows) * num_blocks()),
        block_minima(static_cast<size_t>(kTileRows) * num_blocks()) {}

  int num_blocks() const { return (columns + kBlockColumns - 1) / kBlockColumns; }

  uint8_t* row_values(int row) { return values.data() + static_cast<size_t>(row) * columns; }
  float* row_scales(int row) { return scales.data() + static_cast<size_t>(row) * num_groups; }
  uint8_t* row_zeros(int row) { return zeros.data() + static_cast<size_t>(row) * num_groups; }

  static constexpr int kBlockColumns = 256;  // of formats with blocks

  int columns;
  int num_groups;               // of columns, all as wide but for the last
  std::vector<uint8_t> values;  // [kTileRows][columns], each below 2^bits
  std::vector<float>
      scales;  // [kTileRows][num_groups], of the values of an f16, but of E4M3; in blocks integers of 8 bits
  std::vector<uint8_t> zeros;       // [kTileRows][num_groups]
  std::vector<float> minima;        // [kTileRows][num_groups], likewise, those of blocks not negative
  std::vector<float> block_scales;  // [kTileRows][num_blocks()], of the values of an f16
  std::vector<float> block_minima;  // the same
};

/// Packs one tile. `group`: columns of a group of the source; format.group, or more where one scale is repeated.
/// `tile` takes tile_bytes(format, padded) bytes.
void pack_tile(const IntegerTile& rows, int group, WeightFormat format, int padded, std::byte* tile);

/// Packs one tile of an expert whose columns stand beside those of others: as a part of full pages, whole units, and the
/// scales of all behind them. `tile` takes tile_bytes(format, rows.columns) bytes.
void pack_part(const IntegerTile& rows, int group, WeightFormat format, std::byte* tile);

/// 16 rows of E2M1 with scales. Rows that are not there have zeros for everything.
struct E2m1Tile {
  /// `group`: columns that share a scale, 32, or 16 of NVFP4.
  explicit E2m1Tile(int columns, int group = 32)
      : columns(columns),
        group(group),
        num_groups((columns + group - 1) / group),
        codes(static_cast<size_t>(kTileRows) * columns),
        scales(static_cast<size_t>(kTileRows) * num_groups) {}

  uint8_t* row_codes(int row) { return codes.data() + static_cast<size_t>(row) * columns; }
  uint8_t* row_scales(int row) { return scales.data() + static_cast<size_t>(row) * num_groups; }

  int columns;
  int group;
  int num_groups;
  std::vector<uint8_t> codes;  // [kTileRows][columns]: sign, two bits of exponent, one of mantissa
  /// [kTileRows][num_groups]: exponents of scales 2^(exponent - 127), kMostE2m1Exponent at most; of NVFP4 nvfp4_scale().
  std::vector<uint8_t> scales;
};

/// Packs one tile. `tile` takes tile_bytes() bytes of that format.
void pack_tile(const E2m1Tile& rows, int padded, std::byte* tile);

/// Bits of the f16 nearest to a value in its range.
uint16_t f16_bits(float value);

}  // namespace soliton
