// What the emulation says about the barriers of a launch: where each lies, what it was told to expect, and who
// arrived how often.
#include <gtest/gtest.h>

#include "emulator_testing.h"

namespace soliton {
namespace {

constexpr int kLanes = 32;
constexpr int kWarps = 3;
constexpr int kRounds = 5;

struct Barriers {
  uint64_t unused;
  Barrier all;    // every warp, once a round
  Barrier first;  // two lanes of the first warp, once
  Barrier short_of_one;
};

Barriers* barriers() {
  return reinterpret_cast<Barriers*>(shared_memory());
}

void barriers_kernel(LaunchParams) {
  const int lane = thread_index() % kLanes;
  const int warp = thread_index() / kLanes;
  if (thread_index() == 0) {
    barrier_init(&barriers()->short_of_one, 3);
    barrier_init(&barriers()->all, kWarps);
    barrier_init(&barriers()->first, 2);
    barrier_init_fence();
  }
  cta_sync();
  if (warp == 0 && lane < 2) barrier_arrive(&barriers()->first);
  if (warp > 0 && lane == 0) barrier_arrive(&barriers()->short_of_one);
  for (uint32_t round = 0; round < kRounds; ++round) {
    warp_arrive(&barriers()->all);
    wait_barrier(&barriers()->all, round & 1, {WaitKind::kPageFull, 0, 0, 0, 0, 0}, make_wait_bound(nullptr));
  }
}

TEST(BarrierCounts, AreThoseOfEveryBarrierOfEveryCta) {
  constexpr int kCtas = 2;
  for (const bool check : {false, true}) {
    EmulationControl control;
    control.options.check = check;
    ASSERT_EQ(emulation::run(barriers_kernel, {}, {kCtas, kWarps * kLanes, sizeof(Barriers)}, control), "");
    ASSERT_EQ(control.barriers.size(), 3u * kCtas);
    for (int cta = 0; cta < kCtas; ++cta) {
      const BarrierCount* of_cta = &control.barriers[3 * cta];
      for (int i = 0; i < 3; ++i) EXPECT_EQ(of_cta[i].cta, cta);
      const BarrierCount& all = of_cta[0];
      EXPECT_EQ(all.offset, static_cast<int64_t>(offsetof(Barriers, all)));
      EXPECT_EQ(all.expected, kWarps);
      EXPECT_EQ(all.phases, uint64_t{kRounds});
      EXPECT_EQ(all.arrivals, uint64_t{kRounds * kWarps});
      EXPECT_EQ(all.warps, 0b111u);
      const BarrierCount& first = of_cta[1];
      EXPECT_EQ(first.offset, static_cast<int64_t>(offsetof(Barriers, first)));
      EXPECT_EQ(first.expected, 2);
      EXPECT_EQ(first.phases, 1u);
      EXPECT_EQ(first.arrivals, 2u);
      EXPECT_EQ(first.warps, 0b001u);
      const BarrierCount& short_of_one = of_cta[2];
      EXPECT_EQ(short_of_one.expected, 3);
      EXPECT_EQ(short_of_one.phases, 0u);
      EXPECT_EQ(short_of_one.arrivals, 2u);
      EXPECT_EQ(short_of_one.warps, 0b110u);
    }
  }
}

void stuck_kernel(LaunchParams) {
  if (thread_index() == 0) {
    barrier_init(&barriers()->all, 2);
    barrier_init_fence();
    barrier_arrive(&barriers()->all);
  }
  cta_sync();
  wait_barrier(&barriers()->all, 0, {WaitKind::kPageFull, 0, 0, 0, 0, 0}, make_wait_bound(nullptr));
}

void idle_kernel(LaunchParams) {}

TEST(BarrierCounts, AreThereAfterADeadlockAndGoneAfterTheNextLaunch) {
  EmulationControl control;
  EXPECT_NE(emulation::run(stuck_kernel, {}, {1, kLanes, sizeof(Barriers)}, control), "");
  ASSERT_EQ(control.barriers.size(), 1u);
  EXPECT_EQ(control.barriers[0].phases, 0u);
  EXPECT_EQ(control.barriers[0].arrivals, 1u);
  EXPECT_EQ(emulation::run(idle_kernel, {}, {1, kLanes, sizeof(Barriers)}, control), "");
  EXPECT_TRUE(control.barriers.empty());
}

// A fault in the count is one in what the barrier expects, which is then told apart from what was asked for.
TEST(BarrierCounts, ShowTheFaultOfACount) {
  EmulationControl control;
  control.options.fault = {.kind = FaultKind::kBarrierCount, .ordinal = 0, .delta = -1};
  ASSERT_EQ(emulation::run(barriers_kernel, {}, {1, kWarps * kLanes, sizeof(Barriers)}, control), "");
  EXPECT_EQ(control.barriers[2].expected, 2);
  EXPECT_EQ(control.barriers[2].phases, 1u);
}

}  // namespace
}  // namespace soliton
