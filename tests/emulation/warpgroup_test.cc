// Multiplication by warpgroups: what comes out, when it is there, and what is said of kernels that do it wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "warpgroup_testing.h"

namespace soliton {
namespace {

template <int kColumns>
void multiply(float (&c)[kColumns / 2], uint4 a, const unsigned char* b) {
  warpgroup_mma_bf16<kColumns>(c, a, b);
}
template <int kColumns>
void multiply(int32_t (&c)[kColumns / 2], uint4 a, const unsigned char* b) {
  warpgroup_mma_u8_s8<kColumns>(c, a, b);
}
void multiply_by_warp(float (&c)[4], uint4 a, uint2 b) {
  mma_bf16(c, a, b);
}
void multiply_by_warp(int32_t (&c)[4], uint4 a, uint2 b) {
  mma_u8_s8(c, a, b);
}

// ---- Results.

/// results[0]: by the warpgroup, in one set; [1]: by mma_bf16 or mma_u8_s8.
template <class Sum, int kColumns, int kSteps>
void product_kernel(LaunchParams params) {
  auto& product = *static_cast<Product<kColumns, kSteps>*>(params.workspace);
  place_b(product);
  Sum c[kColumns / 2];
  load_c<Sum, kColumns>(c, product.before);
  warpgroup_fence();
  for (int step = 0; step < kSteps; ++step)
    multiply<kColumns>(c, load_a(product, step), shared_memory() + step * kOperandBytes<kColumns>);
  warpgroup_commit();
  warpgroup_wait<0>();
  store_c<Sum, kColumns>(c, product.results[0]);

  load_c<Sum, kColumns>(c, product.before);
  for (int step = 0; step < kSteps; ++step) {
    const uint4 a = load_a(product, step);
    for (int column = 0; column < kColumns; column += 8) {
      const uint32_t* b =
          &product.b[column + thread_index() % kLanes / 4][step * kStepWords + thread_index() % 4];
      auto& part = *reinterpret_cast<Sum(*)[4]>(&c[column / 2]);
      multiply_by_warp(part, a, {load_global(b), load_global(b + 4)});
    }
  }
  store_c<Sum, kColumns>(c, product.results[1]);
}

template <int kColumns, int kSteps>
void fill_bytes(Product<kColumns, kSteps>& product) {
  std::mt19937 random(kColumns);
  for (auto& row : product.a) {
    for (uint32_t& word : row) word = static_cast<uint32_t>(random());
  }
  for (auto& row : product.b) {
    for (uint32_t& word : row) word = static_cast<uint32_t>(random());
  }
  for (auto& row : product.before) {
    for (uint32_t& value : row) value = static_cast<uint32_t>(random() % 2000) - 1000;
  }
}

int byte_at(const uint32_t* words, int k) {
  return static_cast<int>(words[k / 4] >> k % 4 * 8 & 0xff);
}

template <int kColumns>
void expect_bf16_product() {
  constexpr int kSteps = 3;
  constexpr int kDepth = kSteps * 16;
  Buffer<Product<kColumns, kSteps>> product(1);
  fill_bf16(product[0]);
  const LaunchShape shape = {1, kGroupThreads, kSharedBytes<kColumns, kSteps>};
  ASSERT_EQ(run(product_kernel<float, kColumns, kSteps>, with_workspace(product.data()), shape, checked()),
            "");
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      const uint32_t result = product[0].results[0][row][column];
      EXPECT_EQ(result, product[0].results[1][row][column]) << row << ", " << column;
      double sum = float_from_bits(product[0].before[row][column]);
      double magnitude = std::abs(sum);
      for (int k = 0; k < kDepth; ++k) {
        const double term = bf16_at(product[0].a[row], k) * bf16_at(product[0].b[column], k);
        sum += term;
        magnitude += std::abs(term);
      }
      EXPECT_NEAR(float_from_bits(result), sum, magnitude * kDepth * 0x1p-24) << row << ", " << column;
    }
  }
}

template <int kColumns>
void expect_product_of_bytes() {
  constexpr int kSteps = 3;
  Buffer<Product<kColumns, kSteps>> product(1);
  fill_bytes(product[0]);
  const LaunchShape shape = {1, kGroupThreads, kSharedBytes<kColumns, kSteps>};
  ASSERT_EQ(run(product_kernel<int32_t, kColumns, kSteps>, with_workspace(product.data()), shape, checked()),
            "");
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      auto sum = static_cast<int32_t>(product[0].before[row][column]);
      for (int k = 0; k < kSteps * 32; ++k)
        sum += byte_at(product[0].a[row], k) * static_cast<int8_t>(byte_at(product[0].b[column], k));
      for (int i = 0; i < 2; ++i)
        EXPECT_EQ(static_cast<int32_t>(product[0].results[i][row][column]), sum) << row << ", " << column;
    }
  }
}

TEST(Warpgroups, MultiplyBf16AsWarpsDo) {
  expect_bf16_product<8>();
  expect_bf16_product<16>();
  expect_bf16_product<24>();
  expect_bf16_product<32>();
  expect_bf16_product<48>();
  expect_bf16_product<64>();
  expect_bf16_product<96>();
  expect_bf16_product<128>();
}

TEST(Warpgroups, MultiplyBytesAsWarpsDo) {
  expect_product_of_bytes<8>();
  expect_product_of_bytes<16>();
  expect_product_of_bytes<24>();
  expect_product_of_bytes<32>();
  expect_product_of_bytes<48>();
  expect_product_of_bytes<64>();
}

// ---- Time.

/// results[0]: c before the wait; [1]: after it.
template <class Sum>
void early_kernel(LaunchParams params) {
  auto& product = *static_cast<Small*>(params.workspace);
  place_b(product);
  Sum c[kColumns / 2];
  load_c<Sum, kColumns>(c, product.before);
  warpgroup_fence();
  multiply<kColumns>(c, load_a(product, 0), b_of(0));
  warpgroup_commit();
  store_c<Sum, kColumns>(c, product.results[0]);
  warpgroup_wait<0>();
  store_c<Sum, kColumns>(c, product.results[1]);
}

/// Two sums, of step 0 and of both steps. results[0], [1]: the one and the other when one set may be in flight; [2]: the
/// other one when none may be.
void sets_kernel(LaunchParams params) {
  auto& product = *static_cast<Small*>(params.workspace);
  place_b(product);
  float first[kColumns / 2], both[kColumns / 2];
  load_c<float, kColumns>(first, product.before);
  load_c<float, kColumns>(both, product.before);
  warpgroup_fence();
  warpgroup_mma_bf16<kColumns>(first, load_a(product, 0), b_of(0));
  warpgroup_mma_bf16<kColumns>(both, load_a(product, 0), b_of(0));
  warpgroup_commit();
  warpgroup_mma_bf16<kColumns>(both, load_a(product, 1), b_of(1));
  warpgroup_commit();
  warpgroup_wait<1>();
  store_c<float, kColumns>(first, product.results[0]);
  store_c<float, kColumns>(both, product.results[1]);
  warpgroup_wait<0>();
  store_c<float, kColumns>(both, product.results[2]);
}

TEST(Warpgroups, HaveNoSumsBeforeTheWait) {
  Buffer<Small> product(1);
  fill_bf16(product[0]);
  ASSERT_EQ(run(early_kernel<float>, with_workspace(product.data()), kShape, checked()), "");
  EXPECT_TRUE(all_nan(product[0].results[0]));
  EXPECT_TRUE(is_sum(product[0].results[1], product[0], 1));
  fill_bytes(product[0]);
  ASSERT_EQ(run(early_kernel<int32_t>, with_workspace(product.data()), kShape, checked()), "");
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      const uint32_t early = product[0].results[0][row][column];
      EXPECT_NE(early, product[0].before[row][column]);
      EXPECT_NE(early, product[0].results[1][row][column]);
    }
  }
}

TEST(Warpgroups, WaitForAllSetsButTheLast) {
  for (const bool check : {false, true}) {
    Buffer<Small> product(1);
    fill_bf16(product[0]);
    EmulationOptions options = checked();
    options.check = check;
    ASSERT_EQ(run(sets_kernel, with_workspace(product.data()), kShape, options), "");
    EXPECT_TRUE(is_sum(product[0].results[0], product[0], 1));
    EXPECT_TRUE(all_nan(product[0].results[1]));
    EXPECT_TRUE(is_sum(product[0].results[2], product[0], 2));
  }
}

// ---- Mistakes.

enum Mistake : int32_t {
  kNone,
  kNoFence,
  kNoFenceAfterWait,
  kChangesC,
  kChangesCBeforeNext,
  kOtherShape,
  kNoWait,
  kNoCommit,
  kOutOfBounds,
  kMisaligned,
  kLanesDiffer,
  kWarpsDiffer,
  kWarpReturns,
};

/// Makes one mistake, which params.num_steps says. results[0]: the sum of both steps.
void mistaken_kernel(LaunchParams params) {
  auto& product = *static_cast<Small*>(params.workspace);
  const auto makes = [mistake = params.num_steps](Mistake one) { return mistake == one; };
  const int warp = thread_index() / kLanes;
  place_b(product);
  if (makes(kWarpReturns) && warp == 3) return;
  float c[kColumns / 2];
  load_c<float, kColumns>(c, product.before);
  if (!makes(kNoFence)) warpgroup_fence();
  const unsigned char* b = b_of(0);
  if (makes(kOutOfBounds)) b = b_of(kSteps) - 16;
  if (makes(kMisaligned)) b += 8;
  if (makes(kLanesDiffer) && thread_index() % kLanes == 5) b = b_of(1);
  warpgroup_mma_bf16<kColumns>(c, load_a(product, 0), b);
  if (makes(kChangesCBeforeNext) && thread_index() == 77) c[3] = 1;
  if (makes(kOtherShape)) {
    warpgroup_mma_bf16<8>(*reinterpret_cast<float(*)[4]>(&c[4]), load_a(product, 1), b_of(1));
  } else {
    warpgroup_mma_bf16<kColumns>(c, load_a(product, 1), b_of(1));
  }
  if (makes(kWarpsDiffer) && warp == 2) warpgroup_fence();
  if (!makes(kNoCommit)) warpgroup_commit();
  if (makes(kChangesC) && thread_index() == 77) c[3] = 1;
  if (makes(kNoWait)) return;
  warpgroup_wait<0>();
  if (makes(kNoFenceAfterWait)) warpgroup_mma_bf16<kColumns>(c, load_a(product, 1), b_of(1));
  store_c<float, kColumns>(c, product.results[0]);
}

struct MistakeCase {
  Mistake mistake;
  const char* error;
};

TEST(Warpgroups, SayWhatIsWrong) {
  const MistakeCase cases[] = {
      {kNoFence, "warpgroup_mma without a warpgroup_fence since the last wait, by CTA 0 thread "},
      {kNoFenceAfterWait, "warpgroup_mma without a warpgroup_fence since the last wait, by CTA 0 thread "},
      {kChangesC, "c of a pending warpgroup_mma has been changed, by CTA 0 thread 64"},
      {kChangesCBeforeNext, "c of a pending warpgroup_mma has been changed, by CTA 0 thread 64"},
      {kOtherShape, "c of warpgroup_mma overlaps that of a pending one of another shape"},
      {kNoWait, "warp 0 of CTA 0 has returned with 2 warpgroup_mma pending, 0 of them not committed"},
      {kNoCommit, "warp 0 of CTA 0 has returned with 2 warpgroup_mma pending, 2 of them not committed"},
      {kOutOfBounds, "out of bounds: b of warpgroup_mma at shared+1008, 512 bytes of 1024"},
      {kMisaligned, "b of warpgroup_mma is not aligned to 16 bytes: shared+8"},
      {kLanesDiffer, "lanes of one warp hand over different b to warpgroup_mma"},
      {kWarpsDiffer, "warps of a warpgroup make different calls: call 3 of warp "},
      {kWarpReturns,
       "make different calls: warp 3 of CTA 0 has returned after 0, of another warp the next is "
       "warpgroup_fence"},
  };
  for (const bool check : {false, true}) {
    EmulationOptions options = checked();
    options.check = check;
    Buffer<Small> product(1);
    fill_bf16(product[0]);
    LaunchParams params = with_workspace(product.data());
    params.num_steps = kNone;
    EXPECT_EQ(run(mistaken_kernel, params, kShape, options), "");
    EXPECT_TRUE(is_sum(product[0].results[0], product[0], 2));
    for (const MistakeCase& one : cases) {
      params.num_steps = one.mistake;
      const std::string error = run(mistaken_kernel, params, kShape, options);
      EXPECT_TRUE(contains(error, one.error)) << one.mistake << ": " << error;
    }
  }
}

/// Four warps multiply that are no warpgroup: params.num_steps says which is the first.
void unaligned_kernel(LaunchParams params) {
  const int warp = thread_index() / kLanes - params.num_steps;
  if (warp < 0 || warp >= 4) return;
  float c[kColumns / 2] = {};
  warpgroup_fence();
  warpgroup_mma_bf16<kColumns>(c, {}, b_of(0));
  warpgroup_commit();
  warpgroup_wait<0>();
}

TEST(Warpgroups, BeginWithAWarpDivisibleByFour) {
  LaunchParams params = {};
  LaunchShape shape = {1, 8 * kLanes, kOperandBytes<kColumns>};
  for (const int first : {0, 4}) {
    params.num_steps = first;
    EXPECT_EQ(run(unaligned_kernel, params, shape, checked()), "");
  }
  params.num_steps = 2;
  std::string error = run(unaligned_kernel, params, shape, checked());
  EXPECT_TRUE(contains(error, "make different calls: warp 0 of CTA 0 has returned after 0")) << error;
  shape.threads_per_cta = 6 * kLanes;
  error = run(unaligned_kernel, params, shape, checked());
  EXPECT_TRUE(
      contains(error, "in a warp of no warpgroup, which is four warps from a multiple of 4 on: warp "))
      << error;
}

/// One warpgroup gives registers, the other takes them; but for one warp, if params.num_steps is 1.
void registers_kernel(LaunchParams params) {
  if (params.num_steps == 1 && thread_index() / kLanes == 6) return warpgroup_take_registers<232>();
  if (thread_index() < kGroupThreads) return warpgroup_give_registers<40>();
  warpgroup_take_registers<240>();
}

TEST(Warpgroups, ShareRegistersAlike) {
  LaunchParams params = {};
  const LaunchShape shape = {1, 2 * kGroupThreads, 0};
  EXPECT_EQ(run(registers_kernel, params, shape, checked()), "");
  params.num_steps = 1;
  const std::string error = run(registers_kernel, params, shape, checked());
  EXPECT_TRUE(contains(error, "make different calls: call 0 of warp ")) << error;
  EXPECT_TRUE(contains(error, "a call for 232 registers")) << error;
}

}  // namespace
}  // namespace soliton
