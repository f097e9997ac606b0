// Asynchronous products of warpgroups: what they are, and what is found of those who do not wait for them.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "emulation/emulator_testing.h"

namespace soliton {
namespace {

constexpr int kRows = 64;
constexpr int kThreads = 128;
constexpr int kSums = kRows / 2;
constexpr int kOperandBytes = kRows * 32;

/// a of every thread, b, and the sums of every thread.
struct Data {
  uint4 a[kThreads];
  uint16_t b[kOperandBytes / 2];
  float sums[kThreads][kSums];
};

enum class Misuse {
  kNone,
  kNoAsyncFence,
  kNoFence,
  kNoCommit,
  kNoWait,
  kLooksTooEarly,
  kOverwrites,
  kReloads,
  kOneWarpLess
};
Misuse misuse = Misuse::kNone;

void product_kernel(LaunchParams params) {
  auto* data = static_cast<Data*>(params.workspace);
  auto* b = reinterpret_cast<uint16_t*>(shared_memory());
  const int thread = thread_index();
  for (int i = thread; i < kOperandBytes / 2; i += kThreads) store_shared(b + i, load_global(data->b + i));
  if (misuse != Misuse::kNoAsyncFence) fence_async_shared();
  cta_sync();
  float sums[kSums];
  for (float& sum : sums) sum = 1.0f;
  if (misuse == Misuse::kOneWarpLess && thread >= kThreads - 32) return;
  if (misuse != Misuse::kNoFence) warpgroup_fence();
  uint4 a = load_global(data->a + thread);
  warpgroup_multiply(sums, a, CoreMatrices(b));
  if (misuse != Misuse::kNoCommit) warpgroup_commit();
  if (misuse == Misuse::kReloads) a = make_uint4(0, 0, 0, 0);
  const float early = sums[0];
  if (misuse == Misuse::kOverwrites) {
    // As if it were free: another warp's threads may not have waited.
    store_shared(b + thread, uint16_t{0});
  }
  if (misuse != Misuse::kNoWait) warpgroup_wait(sums);
  if (misuse == Misuse::kLooksTooEarly) sums[0] = early;
  for (int i = 0; i < kSums; ++i) store_global(&data->sums[thread][i], sums[i]);
}

float bf16_at(const uint16_t* values, int index) {
  return bf16_to_float(values[index]);
}

void fill(Data& data) {
  for (int i = 0; i < kOperandBytes / 2; ++i) data.b[i] = float_to_bf16(static_cast<float>(i * 7 % 19 - 9));
  for (int thread = 0; thread < kThreads; ++thread) {
    const auto word = [&](int reg) {
      return pack_bf16(static_cast<float>((thread * 4 + reg) % 13 - 6),
                       static_cast<float>((thread + reg) % 7 - 3));
    };
    data.a[thread] = make_uint4(word(0), word(1), word(2), word(3));
  }
}

/// a of row `row` of the warpgroup's 64 and column k: as lanes hold the operand of mma.m16n8k16.
float a_at(const Data& data, int row, int k) {
  const int within = row % 16;
  const int thread = row / 16 * 32 + within % 8 * 4 + k % 8 / 2;
  const uint4& a = data.a[thread];
  const uint32_t regs[] = {a.x, a.y, a.z, a.w};
  const uint32_t reg = regs[within / 8 + k / 8 * 2];
  return bf16_to_float(static_cast<uint16_t>(k % 2 == 0 ? reg : reg >> 16));
}

std::string run_with(Misuse how, Buffer<Data>& data) {
  misuse = how;
  fill(data[0]);
  return run(product_kernel, with_workspace(data.data()), {1, kThreads, kOperandBytes}, checked());
}

TEST(Products, AreTheMatrixProduct) {
  Buffer<Data> data(1);
  ASSERT_EQ(run_with(Misuse::kNone, data), "");
  for (int row = 0; row < kThreads / 2; ++row) {
    for (int column = 0; column < kRows; ++column) {
      float expected = 1.0f;
      for (int k = 0; k < 16; ++k)
        expected += a_at(data[0], row, k) * bf16_at(data[0].b, (k / 8 * kRows + column) * 8 + k % 8);
      const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
      const float got = data[0].sums[thread][column / 8 * 4 + row % 16 / 8 * 2 + column % 2];
      ASSERT_EQ(got, expected) << row << " " << column;  // small integers: exact
    }
  }
}

TEST(Products, WantAFenceBeforeThem) {
  Buffer<Data> data(1);
  EXPECT_TRUE(contains(run_with(Misuse::kNoFence, data), "without a warpgroup_fence"));
}

TEST(Products, WantAFenceOfTheirOperand) {
  Buffer<Data> data(1);
  EXPECT_TRUE(
      contains(run_with(Misuse::kNoAsyncFence, data), "no fence_async_shared of its thread followed"));
}

TEST(Products, AreNotThereWithoutCommitOrWait) {
  for (const Misuse how : {Misuse::kNoCommit, Misuse::kNoWait, Misuse::kLooksTooEarly}) {
    Buffer<Data> data(1);
    ASSERT_EQ(run_with(how, data), "");
    EXPECT_TRUE(std::isnan(data[0].sums[5][0]));
  }
}

TEST(Products, ReadTheirOperandUntilTheWait) {
  Buffer<Data> data(1);
  EXPECT_TRUE(contains(run_with(Misuse::kOverwrites, data), "race"));
}

TEST(Products, ReadRegistersUntilTheWait) {
  Buffer<Data> data(1);
  EXPECT_TRUE(contains(run_with(Misuse::kReloads, data), "has changed before its product was made"));
}

TEST(Products, AreOfAllWarpsOfAWarpgroup) {
  Buffer<Data> data(1);
  EXPECT_TRUE(contains(run_with(Misuse::kOneWarpLess, data), "expected all warps of a warpgroup"));
}

enum class Overwritten { kNone, kFirst, kSecond };
Overwritten overwritten = Overwritten::kNone;

/// Two sets of products, of b and of what lies behind it.
void two_sets_kernel(LaunchParams params) {
  auto* data = static_cast<Data*>(params.workspace);
  auto* b = reinterpret_cast<uint16_t*>(shared_memory());
  const int thread = thread_index();
  for (int i = thread; i < kOperandBytes; i += kThreads)
    store_shared(b + i, load_global(data->b + i % (kOperandBytes / 2)));
  fence_async_shared();
  cta_sync();
  float sums[kSums] = {};
  const CoreMatrices first(b);
  for (int set = 0; set < 2; ++set) {
    warpgroup_fence();
    warpgroup_multiply(sums, load_global(data->a + thread), first.behind(set * kOperandBytes));
    warpgroup_commit();
  }
  warpgroup_wait_but_last();
  const float early = sums[0];
  cta_sync();
  if (overwritten == Overwritten::kFirst) store_shared(b + thread, uint16_t{0});
  if (overwritten == Overwritten::kSecond) store_shared(b + kOperandBytes / 2 + thread, uint16_t{0});
  warpgroup_wait(sums);
  store_global(&data->sums[thread][0], early);
  store_global(&data->sums[thread][1], sums[1]);
}

std::string run_two_sets(Overwritten which, Buffer<Data>& data) {
  overwritten = which;
  fill(data[0]);
  return run(two_sets_kernel, with_workspace(data.data()), {1, kThreads, 2 * kOperandBytes}, checked());
}

TEST(Products, OfAllSetsButTheLastAreWaitedFor) {
  Buffer<Data> data(1);
  ASSERT_EQ(run_with(Misuse::kNone, data), "");
  const float once = data[0].sums[5][1] - 1.0f;
  ASSERT_EQ(run_two_sets(Overwritten::kFirst, data), "");
  EXPECT_TRUE(std::isnan(data[0].sums[5][0]));
  EXPECT_EQ(data[0].sums[5][1], 2 * once);
  EXPECT_TRUE(contains(run_two_sets(Overwritten::kSecond, data), "race"));
}

void difference_kernel(LaunchParams params) {
  auto* data = static_cast<Data*>(params.workspace);
  auto* b = reinterpret_cast<uint16_t*>(shared_memory());
  const int thread = thread_index();
  for (int i = thread; i < kOperandBytes / 2; i += kThreads) store_shared(b + i, load_global(data->b + i));
  fence_async_shared();
  cta_sync();
  float sums[kSums];
  for (float& sum : sums) sum = 1.0f;
  warpgroup_fence();
  warpgroup_subtract(sums, load_global(data->a + thread), CoreMatrices(b));
  warpgroup_commit();
  warpgroup_wait(sums);
  for (int i = 0; i < kSums; ++i) store_global(&data->sums[thread][i], sums[i]);
}

TEST(Products, AreSubtracted) {
  Buffer<Data> sum(1);
  ASSERT_EQ(run_with(Misuse::kNone, sum), "");
  Buffer<Data> difference(1);
  fill(difference[0]);
  ASSERT_EQ(
      run(difference_kernel, with_workspace(difference.data()), {1, kThreads, kOperandBytes}, checked()), "");
  for (int thread = 0; thread < kThreads; ++thread) {
    for (int i = 0; i < kSums; ++i)
      ASSERT_EQ(difference[0].sums[thread][i] - 1.0f, 1.0f - sum[0].sums[thread][i]) << thread << " " << i;
  }
}

constexpr int kByteRows = 24;
constexpr int kByteSums = kByteRows / 2;

/// The same of bytes, 32 k.
struct ByteData {
  uint4 a[kThreads];
  alignas(16) int8_t b[kByteRows * 32];
  int32_t sums[2][kThreads][kByteSums];
  int32_t early[kThreads];
};

/// Two sets with sums of their own, of a without a sign and with one: the first's are there while the second's come about. Neither is
/// added to anything.
void bytes_kernel(LaunchParams params) {
  auto* data = static_cast<ByteData*>(params.workspace);
  auto* b = reinterpret_cast<uint32_t*>(shared_memory());
  const int thread = thread_index();
  for (int i = thread; i < kByteRows * 8; i += kThreads)
    store_shared(b + i, load_global(reinterpret_cast<const uint32_t*>(data->b) + i));
  fence_async_shared();
  cta_sync();
  int32_t sums[2][kByteSums];
  const auto issue = [&]<bool kSigned>() {
    auto& own = sums[kSigned ? 1 : 0];
    for (int32_t& sum : own) sum = 77;
    uint4 a[] = {load_global(data->a + thread)};
    warpgroup_fence(own, a);
    warpgroup_multiply_bytes<kSigned, false>(own, a[0], CoreMatrices(b));
    warpgroup_commit();
  };
  issue.operator()<false>();
  issue.operator()<true>();
  warpgroup_wait<false>(sums[0]);
  for (int i = 0; i < kByteSums; ++i) store_global(&data->sums[0][thread][i], sums[0][i]);
  store_global(&data->early[thread], sums[1][0]);
  warpgroup_wait(sums[1]);
  for (int i = 0; i < kByteSums; ++i) store_global(&data->sums[1][thread][i], sums[1][i]);
}

TEST(Products, OfBytesAreExactAndThereSetBySet) {
  Buffer<ByteData> data(1);
  auto* a = reinterpret_cast<uint8_t*>(data[0].a);
  for (int i = 0; i < kThreads * 16; ++i) a[i] = static_cast<uint8_t>(i * 37 % 256);
  for (int i = 0; i < kByteRows * 32; ++i) data[0].b[i] = static_cast<int8_t>(i * 29 % 256 - 128);
  ASSERT_EQ(run(bytes_kernel, with_workspace(data.data()), {1, kThreads, kByteRows * 32}, checked()), "");
  for (int row = 0; row < kThreads / 2; ++row) {
    for (int column = 0; column < kByteRows; ++column) {
      int32_t expected[2] = {};
      for (int k = 0; k < 32; ++k) {
        // As lanes hold the operand of mma.m16n8k32.
        const int lane = row / 16 * 32 + row % 8 * 4 + k % 16 / 4;
        const int reg = row % 16 / 8 + k / 16 * 2;
        const uint8_t own = a[lane * 16 + reg * 4 + k % 4];
        const int8_t other = data[0].b[(k / 16 * kByteRows + column) * 16 + k % 16];
        expected[0] += own * other;
        expected[1] += static_cast<int8_t>(own) * other;
      }
      const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
      const int place = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
      ASSERT_EQ(data[0].sums[0][thread][place], expected[0]) << row << " " << column;
      ASSERT_EQ(data[0].sums[1][thread][place], expected[1]) << row << " " << column;
      if (place > 0) continue;
      ASSERT_NE(data[0].early[thread], expected[1]) << "before its wait";
    }
  }
}

}  // namespace
}  // namespace soliton
