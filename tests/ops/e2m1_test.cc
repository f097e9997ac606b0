// Blocks of E2M1, as the runtime packs them, through what kernels make of them: one row's product against a sum in double, and
// the operands of several rows value by value.
#include "formats/e2m1.cuh"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "emulator_testing.h"
#include "layout/e4m3.h"
#include "layout/random.h"
#include "runtime/weights/packing.h"

namespace soliton {
namespace {

constexpr WeightFormat kMxfp4 = {WeightType::kE2m1};
constexpr WeightFormat kNvfp4 = {WeightType::kE2m1, kNvfp4Group};
constexpr int kCodeColumns = 128;
constexpr int kCodeBlocks = kCodeColumns / kColumnBlock;

struct CodeParts {
  float* x;
  unsigned char* page;
  float* out;
  explicit CodeParts(const LaunchParams& params)
      : x(static_cast<float*>(params.workspace)),
        page(reinterpret_cast<unsigned char*>(x + kCodeColumns)),
        out(reinterpret_cast<float*>(page + kPageBytes)) {}
};

template <WeightFormat kFormat>
void copy_page(const CodeParts& parts, unsigned char* page, int lane) {
  for (int i = lane; i < weight_bytes(kFormat, kCodeColumns) / 4; i += kWarpLanes)
    store_shared(reinterpret_cast<uint32_t*>(page) + i,
                 load_global(reinterpret_cast<uint32_t*>(parts.page) + i));
}

/// out[16]: the products of one row of x and the page, or of its first `kFirst` columns and of the rest.
template <WeightFormat kFormat, int kFirst>
void multiply_codes(LaunchParams params) {
  using Format = Gemv<kFormat>;
  const CodeParts parts(params);
  const int lane = thread_index() % kWarpLanes;
  unsigned char* x = shared_memory();
  unsigned char* zeros = x + kCodeColumns * kXColumnBytes;
  unsigned char* page = zeros + kCodeColumns * kXColumnBytes;
  for (int i = lane; i < kCodeColumns; i += kWarpLanes)
    store_shared(reinterpret_cast<uint32_t*>(zeros) + i, 0u);
  for (int group = lane; group < kCodeColumns / 4; group += kWarpLanes) {
    const float4 v = load_global(reinterpret_cast<const float4*>(parts.x) + group);
    Format::template store<1, kCodeColumns>(x, group, group, v);
  }
  copy_page<kFormat>(parts, page, lane);
  warp_sync();
  typename Format::Sums sums;
  const GemvPage all = {
      .x = x, .page = page, .input_sums = nullptr, .warp = 0, .lane = lane, .up = 1, .zeros = zeros};
  Format::template multiply<1, kFirst>(all, sums);
  if constexpr (kFirst < kCodeColumns) {
    GemvPage rest = all;
    rest.x += kFirst * kXColumnBytes;
    rest.page += kFirst / kColumnBlock * kFormat.block_bytes();
    Format::template multiply<1, kCodeColumns - kFirst>(rest, sums);
  }
  const float2 rows = sums.rows();
  if (lane % 4 > 0) return;
  store_global(parts.out + lane / 4, rows.x);
  store_global(parts.out + lane / 4 + 8, rows.y);
}

/// out[row][column]: each weight.
template <WeightFormat kFormat>
void spread_codes(LaunchParams params) {
  const CodeParts parts(params);
  const int lane = thread_index() % kWarpLanes;
  unsigned char* page = shared_memory();
  copy_page<kFormat>(parts, page, lane);
  warp_sync();
  for (int block = 0; block < kCodeBlocks; ++block) {
    const BlockOperands operands = Gemv<kFormat>::load(page + block * kFormat.block_bytes(), lane);
    for (int mma = 0; mma < 2; ++mma) {
      const uint4 own = mma == 0 ? operands.first : operands.second;
      const uint32_t registers[] = {own.x, own.y, own.z, own.w};
      for (int i = 0; i < 8; ++i) {
        const int row = lane / 4 + i / 2 % 2 * 8;
        const int column = block * kColumnBlock + lane % 4 * 8 + mma * 4 + i / 4 * 2 + i % 2;
        store_global(parts.out + row * kCodeColumns + column,
                     bf16_to_float(static_cast<uint16_t>(registers[i / 2] >> i % 2 * 16)));
      }
    }
  }
}

double code_weight(const E2m1Tile& rows, int row, int column) {
  constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const int code = rows.codes[static_cast<size_t>(row) * rows.columns + column];
  const int scale = rows.scales[static_cast<size_t>(row) * rows.num_groups + column / rows.group];
  const double value = code >= 8 ? -kMagnitudes[code - 8] : kMagnitudes[code];
  if (rows.group == 32) return std::ldexp(value, scale - 127);
  return value * std::ldexp(8 + scale % 8, scale / 8 - 9 - 3) / kNvfp4Unit;
}

class E2m1Test : public testing::TestWithParam<int> {};

// The first columns of a tile, and fewer than whole blocks. Scales of 2^-20 to 2, the largest that there may be.
INSTANTIATE_TEST_SUITE_P(Columns, E2m1Test, testing::Values(128, 96, 80, 1));

/// Of a tile of random codes.
template <WeightFormat kFormat>
void expect_products_and_operands(const E2m1Tile& rows) {
  Buffer<float> buffer(kCodeColumns + kPageBytes / 4 + kTileRows * kCodeColumns);
  LaunchParams params = with_workspace(buffer.data());
  const CodeParts parts(params);
  for (int i = 0; i < rows.columns; ++i)
    parts.x[i] = random_unit(static_cast<uint64_t>(i), 3) * (i % 9 == 0 ? 300.0f : 1.0f);
  pack_tile(rows, kCodeColumns, reinterpret_cast<std::byte*>(parts.page));

  LaunchShape shape;
  shape.shared_bytes = 2 * kCodeColumns * kXColumnBytes + weight_bytes(kFormat, kCodeColumns);
  for (const auto kernel :
       {multiply_codes<kFormat, kCodeColumns>, multiply_codes<kFormat, kCodeColumns - kColumnBlock>}) {
    ASSERT_EQ(run(kernel, params, shape, checked()), "");
    for (int row = 0; row < kTileRows; ++row) {
      double sum = 0;
      double magnitude = 0;
      for (int column = 0; column < rows.columns; ++column) {
        const double product = parts.x[column] * code_weight(rows, row, column);
        sum += product;
        magnitude += std::abs(product);
      }
      EXPECT_NEAR(parts.out[row], sum, magnitude * 0x1p-16) << "row " << row;  // 16 bits of x
    }
  }

  ASSERT_EQ(run(spread_codes<kFormat>, params, shape, checked()), "");
  for (int row = 0; row < kTileRows; ++row) {
    for (int column = 0; column < kCodeColumns; ++column) {
      const double expected = column < rows.columns ? code_weight(rows, row, column) : 0;
      ASSERT_EQ(parts.out[row * kCodeColumns + column], static_cast<float>(expected))
          << row << ", " << column;
    }
  }
}

E2m1Tile random_codes(int columns, int group) {
  E2m1Tile rows(columns, group);
  for (size_t i = 0; i < rows.codes.size(); ++i) rows.codes[i] = random_bits(i, 1) % 16;
  return rows;
}

TEST_P(E2m1Test, ProductsAndOperandsAreThoseOfTheWeights) {
  E2m1Tile rows = random_codes(GetParam(), 32);
  for (size_t i = 0; i < rows.scales.size(); ++i)
    rows.scales[i] = static_cast<uint8_t>(i == 3 ? kMostE2m1Exponent : 107 + random_bits(i, 2) % 21);
  expect_products_and_operands<kMxfp4>(rows);
}

// Scales are all E4M3 that there are above 0.
TEST_P(E2m1Test, ProductsAndOperandsInGroupsOf16AreThoseOfTheWeights) {
  E2m1Tile rows = random_codes(GetParam(), kNvfp4Group);
  for (size_t i = 0; i < rows.scales.size(); ++i)
    rows.scales[i] = nvfp4_scale(static_cast<uint8_t>(1 + (i * 5 + static_cast<size_t>(GetParam())) % 126));
  expect_products_and_operands<kNvfp4>(rows);
}

TEST(Nvfp4Scale, StandsForItsE4m3) {
  for (int code = 1; code < 127; ++code) {
    const int scale = nvfp4_scale(static_cast<uint8_t>(code));
    EXPECT_EQ(std::ldexp(8 + scale % 8, scale / 8 - 9 - 3), e4m3_to_float(static_cast<uint32_t>(code)))
        << code;
  }
}

}  // namespace
}  // namespace soliton
