// Pages of every format of integers, and of E4M3, as the runtime packs them, through what kernels make of them: the product of one row
// against a sum in double of the values that went in, and the operands of several rows value by value.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "emulator_testing.h"
#include "formats/e4m3.cuh"
#include "layout/e4m3.h"
#include "layout/random.h"
#include "runtime/weights/packing.h"
#include "runtime/weights/quantization/nibbles.h"

namespace soliton {
namespace {

/// Numbers that f16 holds.
float coarse(uint32_t bits, float unit) {
  return unit * static_cast<float>(bits % 1024 + 1024) / 1024;
}

/// 16 rows that use all that a format has.
IntegerTile random_rows(WeightFormat format, int columns) {
  IntegerTile rows(columns, columns / format.group);
  for (size_t i = 0; i < rows.values.size(); ++i)
    rows.values[i] = static_cast<uint8_t>(random_bits(i, 1) % (1u << format.bits()));
  if (format.has_float_scales()) {
    for (uint8_t& code : rows.values) code -= (code & kE4m3Nan) == kE4m3Nan ? 1 : 0;
    for (size_t i = 0; i < rows.scales.size(); ++i) rows.scales[i] = 0x1p-9f * (2 + random_unit(i, 2));
    return rows;
  }
  for (size_t i = 0; i < rows.scales.size(); ++i) {
    const uint32_t bits = random_bits(i, 2);
    if (format.block > 0) {
      rows.scales[i] =
          format.has_minima ? static_cast<float>(bits % 64) : static_cast<float>(bits % 256) - 128;
      rows.minima[i] = static_cast<float>(bits / 256 % 64);
    } else {
      rows.scales[i] = coarse(bits, 0x1p-6f);
      rows.minima[i] = coarse(bits / 1024, bits % 2 == 0 ? 0x1p-4f : -0x1p-4f);
    }
    rows.zeros[i] = static_cast<uint8_t>(format.has_zeros ? bits % 17 : 1u << (format.bits() - 1));
  }
  for (size_t i = 0; i < rows.block_scales.size(); ++i) {
    rows.block_scales[i] = coarse(random_bits(i, 3), 0x1p-10f);
    rows.block_minima[i] = coarse(random_bits(i, 4), 0x1p-8f);
  }
  return rows;
}

double weight(const IntegerTile& rows, WeightFormat format, int row, int column) {
  const size_t group = static_cast<size_t>(row * rows.num_groups + column / format.group);
  const size_t block = static_cast<size_t>(row * rows.num_blocks() + column / IntegerTile::kBlockColumns);
  double scale = rows.scales[group];
  double minimum = rows.minima[group];
  if (format.block > 0) {
    scale *= rows.block_scales[block];
    minimum *= rows.block_minima[block];
  }
  const uint8_t value = rows.values[static_cast<size_t>(row) * rows.columns + column];
  if (format.has_float_scales()) return scale * e4m3_to_float(value);
  if (format.has_minima) return scale * value - minimum;
  return scale * (value - rows.zeros[group]);
}

/// What the kernels of these tests have: x, a page, and room for what they put out.
template <int kColumns>
struct Parts {
  float* x;
  unsigned char* page;
  float* out;
  explicit Parts(const LaunchParams& params)
      : x(static_cast<float*>(params.workspace)),
        page(reinterpret_cast<unsigned char*>(x + kColumns)),
        out(reinterpret_cast<float*>(page + 2 * kPageBytes)) {}
};

constexpr int kTiles = 2;  // that are multiplied by one x

/// The products of one row of x and the page, by one warp: out[tile][16].
template <WeightFormat kFormat, int kColumns>
void multiply(LaunchParams params) {
  using Format = Gemv<kFormat>;
  constexpr int kGroups = kColumns / 4 / kWarpLanes;  // of a lane
  const Parts<kColumns> parts(params);
  const int lane = thread_index() % kWarpLanes;
  unsigned char* x = shared_memory();
  float4 values[kGroups];
  for (int i = 0; i < kGroups; ++i) {
    const int column = Format::template column<1, kColumns>(0, 0, i * kWarpLanes + lane);
    values[i] = load_global(reinterpret_cast<const float4*>(parts.x + column));
  }
  const InputScale scale = InputScale::of_warp<DigitNumbers<3>::kExponent>(values);
  int32_t* sums = reinterpret_cast<int32_t*>(x + kColumns * kDigits);
  if constexpr (kFormat.takes_digits()) {
    typename Format::InputSum own[kGroups];
    for (int i = 0; i < kGroups; ++i) {
      const int group = i * kWarpLanes + lane;
      own[i] = Format::template store<1, kColumns>(x, group, group, values[i], scale.down, true);
    }
    constexpr bool kWhole = Format::template kSharingLanes<kColumns> == kWarpLanes;
    Format::template put_sums<kWhole>(sums, own, lane, [](int) { return true; });
  } else {
    for (int i = 0; i < kGroups; ++i) {
      const int group = i * kWarpLanes + lane;
      Format::template store<1, kColumns>(x, group, group, values[i]);
    }
  }
  unsigned char* page = x + integer_input_bytes(kColumns);
  for (int i = lane; i < weight_bytes(kFormat, kColumns) / 4; i += kWarpLanes)
    store_shared(reinterpret_cast<uint32_t*>(page) + i,
                 load_global(reinterpret_cast<uint32_t*>(parts.page) + i));
  warp_sync();
  for (int tile = 0; tile < kTiles; ++tile) {
    typename Format::Sums products;
    Format::template multiply<1, kColumns>(
        {.x = x, .page = page, .input_sums = sums, .warp = 0, .lane = lane, .up = scale.up}, products);
    warp_sync();
    const float2 rows = products.rows();
    if (lane % 4 > 0) continue;
    store_global(parts.out + tile * kTileRows + lane / 4, rows.x);
    store_global(parts.out + tile * kTileRows + lane / 4 + 8, rows.y);
  }
}

/// Every weight times a scale, out[row][column], as kernels of several rows have it: the operand, and what is subtracted.
template <WeightFormat kFormat, int kColumns>
void spread(LaunchParams params) {
  constexpr int kSteps = kColumns / kMinIntegerColumns;
  const Parts<kColumns> parts(params);
  const int lane = thread_index() % kWarpLanes;
  unsigned char* page = shared_memory();
  for (int i = lane; i < weight_bytes(kFormat, kColumns) / 4; i += kWarpLanes)
    store_shared(reinterpret_cast<uint32_t*>(page) + i,
                 load_global(reinterpret_cast<uint32_t*>(parts.page) + i));
  warp_sync();
  for (int index = 0; index < kUnits * kSteps; ++index) {
    const auto words = StepWords<kFormat>::load(page + index * kFormat.step_bytes(), lane);
    for (int strip = 0; strip < kStrips; ++strip) {
      const int step = ((index / kSteps * kStrips + strip) * kSteps + index % kSteps) * kStepColumns;
      const BlockScales<kFormat> block(page, kColumns, lane, step);
      const int first = step + lane % 4 * 8;  // this lane's columns
      const RowScales scales = block.of(first / kFormat.group);
      for (int half = 0; half < 2; ++half) {
        const uint4 operand = words.to_bf16(strip, half, scales.zero);
        const uint32_t registers[] = {operand.x, operand.y, operand.z, operand.w};
        for (int i = 0; i < 8; ++i) {
          const int row = lane / 4 + i / 2 % 2 * 8;
          const int column = first + 4 * half + i / 4 * 2 + i % 2;
          const float value = bf16_to_float(static_cast<uint16_t>(registers[i / 2] >> i % 2 * 16));
          const float bias = kFormat.has_minima ? static_cast<float>(kFormat.bias() * kFormat.unit()) : 0.0f;
          const float minimum = kFormat.has_minima ? scales.minimum[row / 8] : 0.0f;
          store_global(parts.out + row * kColumns + column, scales.scale[row / 8] * (value + bias) - minimum);
        }
      }
    }
  }
}

template <WeightFormat kFormat, int kColumns>
void expect_products() {
  const IntegerTile rows = random_rows(kFormat, kColumns);
  std::vector<std::byte> page(static_cast<size_t>(weight_bytes(kFormat, kColumns)));
  pack_tile(rows, kFormat.group, kFormat, kColumns, page.data());
  ASSERT_LE(page.size(), 2 * kPageBytes);
  Buffer<float> buffer(kColumns + 2 * kPageBytes / 4 + kTileRows * kColumns);
  LaunchParams params = with_workspace(buffer.data());
  const Parts<kColumns> parts(params);
  for (int i = 0; i < kColumns; ++i)
    parts.x[i] = random_unit(static_cast<uint64_t>(i), 5) * (i % 7 == 0 ? 8.0f : 0.5f);
  std::memcpy(parts.page, page.data(), page.size());

  LaunchShape shape;
  shape.shared_bytes = integer_input_bytes(kColumns) + static_cast<int>(page.size());
  ASSERT_EQ(run(multiply<kFormat, kColumns>, params, shape, checked()), "");
  for (int row = 0; row < kTileRows; ++row) {
    double sum = 0;
    double magnitude = 0;
    for (int column = 0; column < kColumns; ++column) {
      const double product = parts.x[column] * weight(rows, kFormat, row, column);
      sum += product;
      magnitude += std::abs(product);
    }
    // 23 bits of x, relative to its greatest magnitude, or 16; and a few roundings to float.
    const double part = kFormat.takes_digits() ? 0x1p-18 : 0x1p-16;
    for (int tile = 0; tile < kTiles; ++tile)
      EXPECT_NEAR(parts.out[tile * kTileRows + row], sum, magnitude * part)
          << "row " << row << ", tile " << tile;
  }

  ASSERT_EQ(run(spread<kFormat, kColumns>, params, shape, checked()), "");
  for (int row = 0; row < kTileRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      const double expected = weight(rows, kFormat, row, column);
      ASSERT_NEAR(parts.out[row * kColumns + column], expected, 0x1p-18 * (1 + std::abs(expected)))
          << "row " << row << ", column " << column;
    }
  }
}

TEST(IntegerFormats, FourBits) {
  expect_products<WeightFormat{WeightType::kInt4, 32}, 2048>();
  expect_products<WeightFormat{WeightType::kInt4, 128, true}, 1024>();
  expect_products<WeightFormat{WeightType::kInt4, 32, false, true}, 512>();
}

TEST(IntegerFormats, FourBitsInBlocks) {
  expect_products<WeightFormat{WeightType::kInt4, 32, false, true, 256}, 2048>();
  expect_products<WeightFormat{WeightType::kInt4, 32, false, true, 256}, 512>();
  expect_products<WeightFormat{WeightType::kInt4, 16, false, true, 256}, 1024>();
  expect_products<WeightFormat{WeightType::kInt4, 16, false, false, 256}, 2048>();
}

TEST(IntegerFormats, FiveBits) {
  expect_products<WeightFormat{WeightType::kInt5, 32}, 2048>();
  expect_products<WeightFormat{WeightType::kInt5, 32, false, true}, 1024>();
  expect_products<WeightFormat{WeightType::kInt5, 32, false, true, 256}, 2048>();
  expect_products<WeightFormat{WeightType::kInt5, 32, false, true, 256}, 512>();
}

TEST(IntegerFormats, SixBits) {
  expect_products<WeightFormat{WeightType::kInt6, 16, false, false, 256}, 2048>();
  expect_products<WeightFormat{WeightType::kInt6, 16, false, false, 256}, 1024>();
  expect_products<WeightFormat{WeightType::kInt6, 16, false, false, 256}, 512>();
  expect_products<WeightFormat{WeightType::kInt6, 64}, 2048>();
}

TEST(IntegerFormats, EightBits) {
  expect_products<WeightFormat{WeightType::kInt8, 32}, 1024>();
  expect_products<WeightFormat{WeightType::kInt8, 128}, 512>();
  expect_products<WeightFormat{WeightType::kInt8, 16, false, false, 256}, 1024>();
}

// Every code, in either part of a pair.
TEST(IntegerFormats, E4m3) {
  expect_products<WeightFormat{WeightType::kE4m3, kE4m3Group}, 1024>();
  expect_products<WeightFormat{WeightType::kE4m3, kE4m3Group}, 512>();
}

}  // namespace
}  // namespace soliton
