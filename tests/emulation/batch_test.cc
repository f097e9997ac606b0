// What lanes of a warp do without waiting for one another: products that are put off, and arrivals of a warp.
#include <gtest/gtest.h>

#include "emulation/emulator_testing.h"
#include "primitives/emulation/fibers.h"

namespace soliton {
namespace {

using emulation::kLanes;

constexpr int kMost = emulation::BatchedProducts::kMost;
constexpr int kProducts = 2 * kMost + 11;  // more than a batch holds, and then some

uint4 operand_a(int lane, int product) {
  return make_uint4(float_to_bf16(0.5f * static_cast<float>(lane - product)), 0,
                    float_to_bf16(static_cast<float>(product)), 0);
}

/// Sums of every lane: made one by one, in a batch, and what a lane saw before the batch had ended.
struct Sums {
  float single[2][4];
  float batched[2][4];
  float seen;
};

void batch_kernel(LaunchParams params) {
  const int lane = thread_index();
  const uint2 b = make_uint2(float_to_bf16(static_cast<float>(lane % 7)), 0);
  float single[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  float batched[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  for (int i = 0; i < kProducts; ++i) mma_bf16(single[i % 2], operand_a(lane, i), b);
  MmaBatch batch;
  mma_bf16(batched[0], operand_a(lane, 0), b);
  const float seen = batched[0][0];
  for (int i = 1; i < kProducts; ++i) mma_bf16(batched[i % 2], operand_a(lane, i), b);
  batch.end();
  Sums& sums = static_cast<Sums*>(params.workspace)[lane];
  for (int i = 0; i < 8; ++i) {
    store_global(&sums.single[i / 4][i % 4], single[i / 4][i % 4]);
    store_global(&sums.batched[i / 4][i % 4], batched[i / 4][i % 4]);
  }
  store_global(&sums.seen, seen);
}

TEST(Batches, HaveTheSumsOfSingleProducts) {
  for (const EmulationOptions& options : {EmulationOptions{}, checked()}) {
    Buffer<Sums> sums(kLanes);
    ASSERT_EQ(run(batch_kernel, with_workspace(sums.data()), {1, kLanes, 0}, options), "");
    for (int lane = 0; lane < kLanes; ++lane) {
      EXPECT_EQ(sums[lane].seen, 1.0f);
      for (int i = 0; i < 8; ++i)
        EXPECT_EQ(sums[lane].batched[i / 4][i % 4], sums[lane].single[i / 4][i % 4]) << lane << " " << i;
    }
    EXPECT_NE(sums[0].single[0][0], 1.0f);
  }
}

TEST(Batches, MeetOnceForAllTheirProducts) {
  Buffer<Sums> sums(kLanes);
  EmulationControl control;
  ASSERT_EQ(emulation::run(batch_kernel, with_workspace(sums.data()), {1, kLanes, 0}, control), "");
  EXPECT_EQ(control.stats.collectives, kProducts + (kProducts + kMost - 1) / kMost);
}

enum class Misuse { kFewer, kOther, kNested };
Misuse misuse = Misuse::kFewer;

void misused_kernel(LaunchParams) {
  float floats[4] = {};
  int32_t integers[4] = {};
  const MmaBatch batch;
  const uint4 a = make_uint4(0, 0, 0, 0);
  if (misuse == Misuse::kNested) {
    const MmaBatch inner;
  }
  if (thread_index() != 3) {
    mma_bf16(floats, a, make_uint2(0, 0));
  } else if (misuse == Misuse::kOther) {
    mma_u8_s8(integers, a, make_uint2(0, 0));
  }
  mma_bf16(floats, a, make_uint2(0, 0));
}

TEST(Batches, AreAnErrorIfLanesDiffer) {
  const auto error = [](Misuse now) {
    misuse = now;
    return run(misused_kernel, {}, {1, kLanes, 0}, {});
  };
  EXPECT_TRUE(contains(error(Misuse::kFewer), "different numbers of products")) << error(Misuse::kFewer);
  EXPECT_TRUE(contains(error(Misuse::kOther), "different operations")) << error(Misuse::kOther);
  EXPECT_TRUE(contains(error(Misuse::kNested), "a batch of products within another"))
      << error(Misuse::kNested);
}

/// The first lane goes on without the others, which wait for it; nobody takes its arrival for that of the warp.
void ahead_kernel(LaunchParams params) {
  auto* const words = static_cast<uint32_t*>(params.workspace);
  auto* const barrier = reinterpret_cast<Barrier*>(shared_memory());
  const int lane = thread_index();
  if (lane == 0) barrier_init(barrier, 1);
  cta_sync();
  Spin spin({});
  while (lane > 0 && load_relaxed(words) == 0) spin.pause({});
  warp_release(barrier);
  if (lane == 0) {
    store_relaxed(words + 1, barrier_test(barrier, 0) ? 1u : 2u);
    store_relaxed(words, 1u);
  }
  wait_barrier(barrier, 0, {}, {});
}

TEST(Releases, OfAWarpAreThoseOfItsLastLane) {
  Buffer<uint32_t> words(2);
  ASSERT_EQ(run(ahead_kernel, with_workspace(words.data()), {1, kLanes, sizeof(Barrier)}, {}), "");
  EXPECT_EQ(words[1], 2u) << "the barrier's phase had completed before all lanes had come";
}

void different_barriers_kernel(LaunchParams) {
  auto* const barriers = reinterpret_cast<Barrier*>(shared_memory());
  const int lane = thread_index();
  for (int i = 0; i < 2 && lane == 0; ++i) barrier_init(barriers + i, 1);
  cta_sync();
  warp_release(barriers + (lane == 3 ? 1 : 0));
}

TEST(Releases, OfDifferentBarriersByOneWarpAreAnError) {
  const std::string error = run(different_barriers_kernel, {}, {1, kLanes, 2 * sizeof(Barrier)}, {});
  EXPECT_TRUE(contains(error, "lanes of one warp release different barriers")) << error;
}

}  // namespace
}  // namespace soliton
