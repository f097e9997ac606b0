// What pack_tile() writes, read back through the formulas of layout/weight_format.h; and how tensors are rounded
// to bf16.
#include "runtime/weights/packing.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "layout/f16.h"
#include "layout/random.h"
#include "runtime/weights/matrix_source.h"
#include "runtime/weights/quantization/nibbles.h"
#include "tests/layout/integer_place.h"

namespace soliton {
namespace {

constexpr int kLargestZero = 16;  // GPTQ's first version stores 15 for it

/// A tile of random integers, scales and zeros. Each present row has some of each value.
IntegerTile random_tile(int columns, int num_groups, int num_rows, int bits = 4) {
  IntegerTile tile(columns, num_groups);
  for (int row = 0; row < num_rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      tile.row_values(row)[column] = random_bits(row * columns + column, 1) % (1u << bits);
    }
    for (int group = 0; group < num_groups; ++group) {
      const uint32_t bits = random_bits(row * num_groups + group, 2);
      tile.row_scales(row)[group] = std::ldexp(1.0f + static_cast<float>(bits % 1024) / 1024, -10);
      tile.row_zeros(row)[group] = static_cast<uint8_t>(bits / 1024 % (kLargestZero + 1));
    }
  }
  return tile;
}

/// What stands for one weight in a packed tile.
struct PackedWeight {
  int value = 0;
  float scale = 0;
  int zero = 0;

  bool operator==(const PackedWeight&) const = default;
};

std::ostream& operator<<(std::ostream& out, const PackedWeight& weight) {
  return out << weight.scale << " * (" << weight.value << " - " << weight.zero << ")";
}

PackedWeight read_packed(const std::vector<std::byte>& tile, WeightFormat format, int padded, int row,
                         int column) {
  int begin = 0;
  int columns = page_columns(format, padded);
  while (column >= begin + columns) {
    begin += columns;
    columns = page_columns(format, padded - begin);
  }
  const std::byte* page = tile.data() + weight_bytes(format, begin);
  const IntegerPlace place = integer_place(format.bits(), columns, row, column - begin);
  uint32_t word = 0;
  std::memcpy(&word, page + place.offset, sizeof word);
  uint16_t words[2] = {0, static_cast<uint16_t>(format.symmetric_zero())};
  std::memcpy(words, page + scale_offset(format, columns, row, (column - begin) / format.group),
              sizeof(uint16_t) * format.group_words());
  const uint32_t bits = word >> place.shift;
  return {.value = format.bits() == 4 ? static_cast<int>(bits & 15) : static_cast<int8_t>(bits),
          .scale = f16_bits_to_float(words[0]),
          .zero = words[1]};
}

/// Packs, reads every weight back, padding too.
void expect_packed(IntegerTile& rows, int group, WeightFormat format) {
  const int first_value = format.bits() == 4 ? 0 : -128;  // 0 of the source
  const int padded = padded_columns(format, rows.columns, kUnits);
  std::vector<std::byte> tile(static_cast<size_t>(tile_bytes(format, padded)), std::byte{0xee});
  pack_tile(rows, group, format, padded, tile.data());
  for (int row = 0; row < kTileRows; ++row) {
    for (int column = 0; column < padded; ++column) {
      const PackedWeight got = read_packed(tile, format, padded, row, column);
      if (column >= rows.columns) {
        ASSERT_EQ(got.value, first_value) << "row " << row << ", padding at column " << column;
        // A group that begins behind the last column has no scale.
        if (column / format.group * format.group >= rows.columns) {
          ASSERT_EQ(got.scale, 0.0f);
        }
        continue;
      }
      const int source = column / group;
      const PackedWeight expected = {
          .value = first_value + rows.row_values(row)[column],
          .scale = rows.row_scales(row)[source],
          .zero = format.has_zeros ? rows.row_zeros(row)[source] : format.symmetric_zero()};
      ASSERT_EQ(got, expected) << "row " << row << ", column " << column << " of " << rows.columns;
    }
  }
}

TEST(Packing, IntegersReadBackAreTheirSource) {
  for (const int group : {32, 64, 128}) {
    for (const bool has_zeros : {false, true}) {
      const WeightFormat format = {WeightType::kInt4, group, has_zeros};
      for (const int columns : {128, 384, 512, 640, 1024, 1536, 2048, 2560, 3584}) {
        IntegerTile tile = random_tile(columns, columns / group, kTileRows);
        expect_packed(tile, group, format);
      }
    }
  }
}

TEST(Packing, BytesReadBackAreTheirSource) {
  for (const int group : {32, 64, 128}) {
    const WeightFormat format = {WeightType::kInt8, group, false};
    for (const int columns : {128, 511, 512, 640, 1024, 1536, 2048, 2560}) {
      IntegerTile tile = random_tile(columns, ceil_divide(columns, group), kTileRows, 8);
      expect_packed(tile, group, format);
    }
  }
}

// A group less one, a page less one, a page and one: nothing is read behind the end of a row.
TEST(Packing, RaggedColumnsArePaddedWithZeros) {
  for (const int columns : {1, 31, 33, 511, 513, 1023, 1025, 2047, 2049, 1344}) {
    const WeightFormat format = {WeightType::kInt4, 32, true};
    IntegerTile tile = random_tile(columns, ceil_divide(columns, 32), kTileRows);
    expect_packed(tile, 32, format);
  }
}

TEST(Packing, RowsThatAreMissingAreZero) {
  const WeightFormat format = {WeightType::kInt4, 64, true};
  for (const int num_rows : {0, 1, 7, 8, 9, 15}) {
    IntegerTile tile = random_tile(576, 9, num_rows);
    expect_packed(tile, 64, format);
  }
}

TEST(Packing, OneScaleForAllColumnsIsRepeated) {
  for (const bool has_zeros : {false, true}) {
    const WeightFormat format = {WeightType::kInt4, 128, has_zeros};
    for (const int columns : {72, 128, 1000, 2432}) {
      IntegerTile tile = random_tile(columns, 1, kTileRows);
      expect_packed(tile, columns, format);
    }
  }
}

TEST(Packing, ZerosReachSixteen) {
  const WeightFormat format = {WeightType::kInt4, 32, true};
  IntegerTile tile = random_tile(512, 16, kTileRows);
  for (int row = 0; row < kTileRows; ++row) {
    for (int group = 0; group < 16; ++group) tile.row_zeros(row)[group] = static_cast<uint8_t>(row + 1);
  }
  expect_packed(tile, 32, format);
}

/// The weight of a row and column, never 0.
uint16_t weight_bits(int row, int column) {
  return static_cast<uint16_t>(random_bits(row * 10000 + column, 3) | 1);
}

// Multiples of a block, a column more and less, padding of several blocks; with and without rows that are missing.
TEST(Packing, Bf16WeightsReadBackAreTheirSource) {
  for (const int columns : {32, 64, 96, 511, 512, 513, 2048, 2112}) {
    for (const int num_rows : {0, 1, 8, 9, 15, 16}) {
      const int padded = padded_columns(WeightFormat{}, columns, 4);
      std::vector<std::vector<uint16_t>> source(static_cast<size_t>(num_rows));
      const std::byte* rows[kTileRows] = {};
      for (int row = 0; row < num_rows; ++row) {
        for (int column = 0; column < columns; ++column) source[row].push_back(weight_bits(row, column));
        rows[row] = reinterpret_cast<const std::byte*>(source[row].data());
      }
      std::vector<std::byte> tile(static_cast<size_t>(tile_bytes(WeightFormat{}, padded)), std::byte{0xee});
      pack_tile(rows, columns, padded, tile.data());
      for (int row = 0; row < kTileRows; ++row) {
        for (int column = 0; column < padded; ++column) {
          uint16_t packed = 0;
          std::memcpy(&packed, tile.data() + weight_offset(row, column), sizeof packed);
          const bool is_there = row < num_rows && column < columns;
          ASSERT_EQ(packed, is_there ? weight_bits(row, column) : 0)
              << "row " << row << " of " << num_rows << ", column " << column << " of " << columns;
        }
      }
    }
  }
}

TEST(Packing, F16BitsAreTheNearest) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_bits_to_float(static_cast<uint16_t>(bits));
    if (value != value) continue;
    ASSERT_EQ(f16_bits(value), bits);
  }
  EXPECT_EQ(f16_bits(1.0f + 0x1p-11f), 0x3c00) << "a tie goes to even";
  EXPECT_EQ(f16_bits(1.0f + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(f16_bits(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);
}

template <class T>
std::vector<uint16_t> rounded(DType dtype, const std::vector<T>& values, int64_t first = 0) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = {static_cast<int64_t>(values.size())};
  tensor.data = bytes;
  std::vector<uint16_t> result(values.size() - static_cast<size_t>(first));
  read_bf16(tensor, first, static_cast<int64_t>(result.size()), result.data());
  return result;
}

std::vector<uint16_t> rounded_f32(const std::vector<float>& values) {
  return rounded(DType::kF32, values);
}

TEST(ReadBf16, CopiesBf16BitForBit) {
  const std::vector<uint16_t> bits = {0x3f80, 0x8000, 0x7f80, 0xffc1, 0x0001};
  EXPECT_EQ(rounded(DType::kBF16, bits), bits);
  EXPECT_EQ(rounded(DType::kBF16, bits, 3), (std::vector<uint16_t>{0xffc1, 0x0001}));
}

// bf16 keeps 7 bits behind the point: 2^-8 is half a unit at 1.
TEST(ReadBf16, RoundsF32ToNearestTiesToEven) {
  EXPECT_EQ(rounded_f32({1.0f, -2.5f, 0.0f, -0.0f}), (std::vector<uint16_t>{0x3f80, 0xc020, 0, 0x8000}));
  EXPECT_EQ(rounded_f32({1.0f + 0x1p-8f, 1.0f + 3 * 0x1p-8f}), (std::vector<uint16_t>{0x3f80, 0x3f82}));
  EXPECT_EQ(rounded_f32({1.0f + 0x1p-8f + 0x1p-23f, 1.0f + 3 * 0x1p-8f - 0x1p-22f}),
            (std::vector<uint16_t>{0x3f81, 0x3f81}));
  EXPECT_EQ(rounded_f32({-1.0f - 0x1p-8f, 2.0f - 0x1p-23f}), (std::vector<uint16_t>{0xbf80, 0x4000}))
      << "a carry reaches the exponent";
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(rounded_f32({std::numeric_limits<float>::max(), kInfinity, -kInfinity}),
            (std::vector<uint16_t>{0x7f80, 0x7f80, 0xff80}));
  // Of these the rounding would carry into the sign, or leave an infinity.
  for (const uint32_t nan : {0x7fffffffu, 0xffffffffu, 0x7f800001u}) {
    const uint16_t bits = rounded_f32({std::bit_cast<float>(nan)})[0];
    EXPECT_NE(bf16_bits_to_float(bits), bf16_bits_to_float(bits)) << std::hex << nan;
  }
}

TEST(ReadBf16, RoundsEveryF16AsItsF32) {
  std::vector<uint16_t> bits;
  std::vector<float> values;
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto value = static_cast<float>(std::bit_cast<F16>(static_cast<uint16_t>(i)));
    if (value != value) continue;
    bits.push_back(static_cast<uint16_t>(i));
    values.push_back(value);
  }
  EXPECT_EQ(rounded(DType::kF16, bits), rounded_f32(values));
  EXPECT_EQ(rounded(DType::kF16, std::vector<uint16_t>{0x3c00, 0x3c04, 0x3c0c, 0x0001}),
            (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x3380}))
      << "ties, and the smallest subnormal number";
}

}  // namespace
}  // namespace soliton
