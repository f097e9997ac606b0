// The primitives as the emulator performs them, and what it says about kernels that wait or touch what they
// must not.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <string>
#include <thread>

#include "emulator_testing.h"
#include "layout/f16.h"

namespace soliton {
namespace {

constexpr int kLanes = 32;
constexpr int kShuffled = 7;  // results of a lane

void shuffle_kernel(LaunchParams params) {
  const int lane = thread_index() % kLanes;
  auto* out = static_cast<int*>(params.workspace) + lane * kShuffled;
  store_global(out + 0, shuffle(lane * 10, 7));
  store_global(out + 1, shuffle_xor(lane, 5));
  store_global(out + 2, shuffle_down(lane, 4));
  store_global(out + 3, warp_any(lane == 31) ? 1 : 0);
  store_global(out + 4, warp_any(lane == 32) ? 1 : 0);
  store_global(out + 5, static_cast<int>(warp_max(lane == 9 ? 0x7fffffffu : static_cast<uint32_t>(lane))));
  store_global(out + 6, warp_sum(lane % 2 == 0 ? lane : -3 * lane));
}

TEST(Collectives, ShufflesAndVotesGiveHandResults) {
  Buffer<int> out(kLanes * kShuffled, -1);
  ASSERT_EQ(run(shuffle_kernel, with_workspace(out.data()), {1, kLanes, 0}, checked()), "");
  for (int lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(out[lane * kShuffled + 0], 70);
    EXPECT_EQ(out[lane * kShuffled + 1], lane ^ 5);
    EXPECT_EQ(out[lane * kShuffled + 2], lane < 28 ? lane + 4 : lane);
    EXPECT_EQ(out[lane * kShuffled + 3], 1);
    EXPECT_EQ(out[lane * kShuffled + 4], 0);
    EXPECT_EQ(out[lane * kShuffled + 5], 0x7fffffff);
    EXPECT_EQ(out[lane * kShuffled + 6], 240 - 3 * 256);
  }
}

struct MmaBuffers {
  uint16_t a[16][16];  // [row][k]
  uint16_t b[16][8];   // [k][column]
  float c[16][8];
};

void mma_kernel(LaunchParams params) {
  auto* buffers = static_cast<MmaBuffers*>(params.workspace);
  const int lane = thread_index();
  const int g = lane / 4;
  const int j = lane % 4;
  const auto a = [&](int row, int pair) {
    return load_global(reinterpret_cast<const uint32_t*>(&buffers->a[row][pair * 2]));
  };
  const auto b = [&](int pair) {
    const uint32_t low = load_global(&buffers->b[pair * 2][g]);
    return low | static_cast<uint32_t>(load_global(&buffers->b[pair * 2 + 1][g])) << 16;
  };
  float c[4];
  for (int i = 0; i < 4; ++i) c[i] = load_global(&buffers->c[g + i / 2 * 8][2 * j + i % 2]);
  mma_bf16(c, make_uint4(a(g, j), a(g + 8, j), a(g, j + 4), a(g + 8, j + 4)), make_uint2(b(j), b(j + 4)));
  for (int i = 0; i < 4; ++i) store_global(&buffers->c[g + i / 2 * 8][2 * j + i % 2], c[i]);
}

TEST(Collectives, MmaIsTheMatrixProduct) {
  Buffer<MmaBuffers> buffers(1);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (auto& row : buffers[0].a) {
    for (uint16_t& value : row) value = float_to_bf16(uniform(random));
  }
  for (auto& row : buffers[0].b) {
    for (uint16_t& value : row) value = float_to_bf16(uniform(random));
  }
  float expected[16][8];
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = 0;
      for (int k = 0; k < 16; ++k) {
        sum += bf16_to_float(buffers[0].a[row][k]) * bf16_to_float(buffers[0].b[k][column]);
      }
      buffers[0].c[row][column] = uniform(random);
      expected[row][column] = buffers[0].c[row][column] + sum;
    }
  }
  ASSERT_EQ(run(mma_kernel, with_workspace(buffers.data()), {1, kLanes, 0}, checked()), "");
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) EXPECT_EQ(buffers[0].c[row][column], expected[row][column]);
  }
}

void transpose_kernel(LaunchParams params) {
  const int lane = thread_index();
  const auto element = [](int row, int column) { return static_cast<uint32_t>(row * 8 + column); };
  const uint32_t mine = element(lane / 4, lane % 4 * 2) | element(lane / 4, lane % 4 * 2 + 1) << 16;
  store_global(static_cast<uint32_t*>(params.workspace) + lane, transpose_8x8(mine));
}

TEST(Collectives, TransposeSwapsRowsAndColumns) {
  Buffer<uint32_t> out(kLanes);
  ASSERT_EQ(run(transpose_kernel, with_workspace(out.data()), {1, kLanes, 0}, checked()), "");
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 8; ++column) {
      EXPECT_EQ(out[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff,
                static_cast<uint32_t>(column * 8 + row));
    }
  }
}

void mixed_collectives_kernel(LaunchParams) {
  if (thread_index() == 3) {
    warp_any(true);
  } else {
    warp_sync();
  }
}

TEST(Collectives, DifferentOperationsInOneWarpAreAnError) {
  const std::string error = run(mixed_collectives_kernel, {}, {1, kLanes, 0}, checked());
  EXPECT_TRUE(contains(error, "different operations")) << error;
}

void left_collective_kernel(LaunchParams) {
  if (thread_index() != 3) warp_sync();
}

TEST(Collectives, AMissingLaneIsADeadlock) {
  const std::string error = run(left_collective_kernel, {}, {1, kLanes, 0}, checked());
  EXPECT_TRUE(contains(error, "31 threads of CTA 0 wait for the other lanes of its warp in warp_sync"))
      << error;
  EXPECT_TRUE(contains(error, "1 threads have returned")) << error;
}

TEST(Demands, EndTheLaunchThatDoesNotMeetThem) {
  const auto demand_thread_below = [](LaunchParams params) {
    demand(thread_index() < *static_cast<const int*>(params.workspace), "threads are few");
  };
  Buffer<int> most(1, kLanes);
  EXPECT_EQ(run(demand_thread_below, with_workspace(most.data()), {1, kLanes, 0}, {}), "");
  most[0] = kLanes - 1;
  EXPECT_EQ(run(demand_thread_below, with_workspace(most.data()), {1, kLanes, 0}, {}),
            "CTA 0 thread 31: not so: threads are few");
}

TEST(Arithmetic, Bf16RoundsToNearestEven) {
  const auto bits = [](float value) { return static_cast<int>(float_to_bf16(value)); };
  EXPECT_EQ(bits(1.0f), 0x3f80);
  EXPECT_EQ(bits(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // a tie, down to even
  EXPECT_EQ(bits(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // a tie, up to even
  EXPECT_EQ(bits(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(bits(-INFINITY), 0xff80);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_EQ(pack_bf16(1.0f, -2.0f), 0xc0003f80u);
}

TEST(Arithmetic, EveryF16IsTheFloatThatTheCompilerMakesOfIt) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto expected = static_cast<float>(std::bit_cast<F16>(static_cast<uint16_t>(bits)));
    const float value = f16_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else {
      EXPECT_EQ(float_bits(value), float_bits(expected)) << bits;
    }
  }
}

// ---- Barriers and copies.

struct alignas(16) Page {
  uint32_t words[kLanes];
};

struct OnePage {
  Page page;
  Barrier barrier;
};

OnePage* one_page() {
  return reinterpret_cast<OnePage*>(shared_memory());
}

void init_one(int arrivals) {
  if (thread_index() == 0) {
    barrier_init(&one_page()->barrier, arrivals);
    barrier_init_fence();
  }
  cta_sync();
}

void copy_kernel(LaunchParams params) {
  init_one(1);
  OnePage* shared = one_page();
  auto* pages = static_cast<Page*>(params.workspace);
  if (thread_index() == 0) {
    barrier_arrive_expect(&shared->barrier, sizeof(Page));
    copy_page(&shared->page, pages, sizeof(Page), &shared->barrier);
  }
  wait_barrier(&shared->barrier, 0, {WaitKind::kPageFull, 0, 0, 0, 0, 0}, make_wait_bound(nullptr));
  store_global(&pages[1].words[thread_index()], load_shared(&shared->page.words[thread_index()]) + 1);
}

TEST(Copies, LandBeforeTheirBarrierCompletes) {
  for (const CopyPolicy policy : {CopyPolicy::kEager, CopyPolicy::kLate, CopyPolicy::kRandom}) {
    Buffer<Page> pages(2);
    for (uint32_t i = 0; i < kLanes; ++i) pages[0].words[i] = i * i;
    ASSERT_EQ(
        run(copy_kernel, with_workspace(pages.data()), {1, kLanes, sizeof(OnePage)}, checked(1, policy)), "");
    for (uint32_t i = 0; i < kLanes; ++i) EXPECT_EQ(pages[1].words[i], i * i + 1);
  }
}

void abandoned_copy_kernel(LaunchParams params) {
  init_one(1);
  if (thread_index() != 0) return;
  barrier_arrive_expect(&one_page()->barrier, sizeof(Page));
  copy_page(&one_page()->page, params.workspace, sizeof(Page), &one_page()->barrier);
}

TEST(Copies, InFlightAtTheEndOfTheCtaAreAnError) {
  Buffer<Page> pages(1);
  const std::string error = run(abandoned_copy_kernel, with_workspace(pages.data()),
                                {1, kLanes, sizeof(OnePage)}, checked(1, CopyPolicy::kLate));
  EXPECT_TRUE(contains(error, "CTA 0 returned with a copy in flight: shared+0, 128 bytes, barrier 0"))
      << error;
}

void unexpected_copy_kernel(LaunchParams params) {
  init_one(1);
  if (thread_index() != 0) return;
  copy_page(&one_page()->page, params.workspace, sizeof(Page), &one_page()->barrier);
}

TEST(Copies, MoreBytesThanExpectedAreAnError) {
  Buffer<Page> pages(1);
  const std::string error = run(unexpected_copy_kernel, with_workspace(pages.data()),
                                {1, kLanes, sizeof(OnePage)}, checked(1, CopyPolicy::kEager));
  EXPECT_TRUE(contains(error, "a copy of 128 bytes landed of which 128 were not expected")) << error;
}

/// Thread 1 stores to the source of the copy, after its landing or just so.
void overwritten_source_kernel(LaunchParams params) {
  init_one(1);
  OnePage* shared = one_page();
  auto* page = static_cast<Page*>(params.workspace);
  if (thread_index() == 0) {
    barrier_arrive_expect(&shared->barrier, sizeof(Page));
    copy_page(&shared->page, page, sizeof(Page), &shared->barrier);
  }
  warp_sync();
  const bool waits = thread_index() == 0 || params.num_steps == 1;
  if (waits) {
    wait_barrier(&shared->barrier, 0, {WaitKind::kPageFull, 0, 0, 0, 0, 0}, make_wait_bound(nullptr));
  }
  if (thread_index() == 1) store_global(&page->words[3], 1u);
}

TEST(Copies, ReadTheirSourceUntilTheyLand) {
  for (const CopyPolicy policy : {CopyPolicy::kEager, CopyPolicy::kLate, CopyPolicy::kRandom}) {
    Buffer<Page> page(1);
    LaunchParams params = with_workspace(page.data());
    params.num_steps = 1;
    const LaunchShape shape = {1, kLanes, sizeof(OnePage)};
    EXPECT_EQ(run(overwritten_source_kernel, params, shape, checked(1, policy)), "");
    params.num_steps = 0;
    const std::string error = run(overwritten_source_kernel, params, shape, checked(1, policy));
    EXPECT_TRUE(contains(error, "+12: store is not ordered after copy read")) << error;
  }
}

void misaligned_copy_kernel(LaunchParams params) {
  init_one(1);
  if (thread_index() != 0) return;
  barrier_arrive_expect(&one_page()->barrier, 16);
  copy_page(&one_page()->page, static_cast<uint32_t*>(params.workspace) + 1, 16, &one_page()->barrier);
}

TEST(Copies, WantMultiplesOf16) {
  Buffer<Page> pages(1);
  const std::string error =
      run(misaligned_copy_kernel, with_workspace(pages.data()), {1, kLanes, sizeof(OnePage)}, checked());
  EXPECT_TRUE(contains(error, "multiples of 16")) << error;
}

void unfenced_barrier_kernel(LaunchParams params) {
  if (thread_index() != 0) return;
  barrier_init(&one_page()->barrier, 1);
  barrier_arrive_expect(&one_page()->barrier, sizeof(Page));
  copy_page(&one_page()->page, params.workspace, sizeof(Page), &one_page()->barrier);
}

TEST(Copies, WantABarrierWhoseInitialisationWasFenced) {
  Buffer<Page> pages(1);
  const std::string error =
      run(unfenced_barrier_kernel, with_workspace(pages.data()), {1, kLanes, sizeof(OnePage)}, checked());
  EXPECT_TRUE(contains(error, "without barrier_init_fence")) << error;
}

void many_arrivals_kernel(LaunchParams) {
  init_one(1);
  if (thread_index() > 1) return;
  barrier_arrive_expect(&one_page()->barrier, thread_index() == 0 ? 16 : 0);
}

TEST(Barriers, AnArrivalTooManyIsAnError) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string error = run(many_arrivals_kernel, {}, {1, kLanes, sizeof(OnePage)}, checked(seed));
    if (error.empty()) continue;  // The other thread came first, and its phase had completed.
    EXPECT_TRUE(contains(error, "one arrival too many on barrier 0 of CTA 0 (phase 0, 1 arrivals)")) << error;
    ++found;
  }
  EXPECT_GT(found, 0);
}

void no_barrier_kernel(LaunchParams) {
  barrier_arrive(&one_page()->barrier);
}

TEST(Barriers, WantInitialisation) {
  const std::string error = run(no_barrier_kernel, {}, {1, kLanes, sizeof(OnePage)}, checked());
  EXPECT_TRUE(contains(error, "on what is no barrier: shared+128")) << error;
}

void unsynchronised_init_kernel(LaunchParams) {
  if (thread_index() == 0) barrier_init(&one_page()->barrier, kLanes);
  if (thread_index() == 1) barrier_arrive(&one_page()->barrier);
}

TEST(Barriers, WantInitialisationToBeOrderedBefore) {
  int races = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string error =
        run(unsynchronised_init_kernel, {}, {1, kLanes, sizeof(OnePage)}, checked(seed));
    EXPECT_NE(error, "");
    races += contains(error, "race at shared of CTA 0+128: use of the barrier is not ordered after store");
  }
  EXPECT_GT(races, 0);
}

/// Thread 1 completes num_steps phases; only then thread 0 waits for the first.
void late_waiter_kernel(LaunchParams params) {
  init_one(1);
  if (thread_index() == 1) {
    for (int i = 0; i < params.num_steps; ++i) barrier_arrive(&one_page()->barrier);
  }
  warp_sync();
  if (thread_index() == 0) {
    wait_barrier(&one_page()->barrier, 0, {WaitKind::kPageFull, 4, 2, 9, 0, 0}, make_wait_bound(nullptr));
  }
}

TEST(Barriers, FoolAWaiterThatIsTwoPhasesBehind) {
  LaunchParams params = {};
  params.num_steps = 1;
  EXPECT_EQ(run(late_waiter_kernel, params, {1, kLanes, sizeof(OnePage)}, checked()), "");
  params.num_steps = 2;
  const std::string error = run(late_waiter_kernel, params, {1, kLanes, sizeof(OnePage)}, checked());
  EXPECT_TRUE(contains(error, "deadlock: 1 thread of CTA 0 waits for page_full (step 4, phase 2, index 9"))
      << error;
}

// ---- Schedules.

constexpr uint32_t kCounts = 200;

/// Each of two warps counts, and then says how far the other has come.
void counting_kernel(LaunchParams params) {
  if (thread_index() % kLanes != 0) return;
  const int warp = thread_index() / kLanes;
  uint32_t* counts = static_cast<uint32_t*>(params.workspace) + cta_index() * 4;
  for (uint32_t i = 1; i <= kCounts; ++i) store_relaxed(counts + warp, i);
  store_relaxed(counts + 2 + warp, load_relaxed(counts + 1 - warp));
}

TEST(Schedules, MayHoldBackAWarpOfEveryCta) {
  constexpr int kCtas = 8;
  Buffer<uint32_t> counts(kCtas * 4, 0);
  EmulationOptions options = checked();
  options.delays_warps = true;
  ASSERT_EQ(run(counting_kernel, with_workspace(counts.data()), {kCtas, 2 * kLanes, 16}, options), "");
  int slow_first = 0;
  for (int cta = 0; cta < kCtas; ++cta) {
    const uint32_t* seen = counts.data() + cta * 4 + 2;
    EXPECT_LT(std::min(seen[0], seen[1]), kCounts / 4) << "CTA " << cta;
    slow_first += seen[1] < seen[0] ? 0 : 1;
  }
  EXPECT_GT(slow_first, 0);
  EXPECT_LT(slow_first, kCtas);
}

// ---- Waits that do not end.

void stuck_kernel(LaunchParams params) {
  init_one(1);
  const WaitBound bound = make_wait_bound(nullptr);
  if (thread_index() < kLanes) {
    Spin spin(bound);
    while (load_relaxed(static_cast<uint32_t*>(params.workspace)) != 7) {
      spin.pause({WaitKind::kVector, 2, 7, 31, 7, 3});
    }
  } else {
    wait_barrier(&one_page()->barrier, 0, {WaitKind::kPageFull, 2, 8, 5, 0, 0}, bound);
  }
}

TEST(Deadlock, NamesEveryKindOfWaitWithAnExample) {
  for (const bool check : {false, true}) {
    Buffer<uint32_t> word(1, 3);
    StallReport stall = {};
    LaunchParams params = with_workspace(word.data());
    params.stall = &stall;
    EmulationOptions options = checked();
    options.check = check;
    const std::string error = run(stuck_kernel, params, {4, 2 * kLanes, sizeof(OnePage)}, options);
    EXPECT_EQ(error.rfind("deadlock: 128 threads of CTA 0..3 wait for ", 0), 0u) << error;
    EXPECT_TRUE(contains(error, "vector (step 2, phase 7, index 31, expected 7, seen 3), e.g. CTA "))
        << error;
    EXPECT_TRUE(contains(error, "page_full (step 2, phase 8, index 5, expected 0, seen 0), e.g. CTA "))
        << error;
    EXPECT_EQ(stall.valid, 1u);
    EXPECT_EQ(stall.site.step, 2u);
    EXPECT_EQ(stall.site.kind == WaitKind::kVector, stall.thread < 32);
  }
}

void host_wait_kernel(LaunchParams params) {
  Spin spin(make_wait_bound(nullptr));
  while (load_system(params.stop_request) == 0) spin.pause({WaitKind::kCounter, 0, 0, 0, 1, 0});
}

TEST(Deadlock, WaitingForTheHostIsNone) {
  Buffer<uint32_t> stop(1, 0);
  LaunchParams params = {};
  params.stop_request = stop.data();
  std::thread host([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic_ref(stop[0]).store(1);
  });
  EXPECT_EQ(run(host_wait_kernel, params, {2, kLanes, 0}, checked()), "");
  host.join();
}

TEST(Deadlock, WaitingForTheHostIsBounded) {
  Buffer<uint32_t> stop(1, 0);
  LaunchParams params = {};
  params.stop_request = stop.data();
  params.timeout_ns = 5'000'000;
  const std::string error = run(host_wait_kernel, params, {2, kLanes, 0}, checked());
  EXPECT_TRUE(contains(error, "timeout: 64 threads of CTA 0..1 wait for grid counter")) << error;
}

// ---- Bounds.

void shared_bounds_kernel(LaunchParams params) {
  store_shared(reinterpret_cast<uint32_t*>(shared_memory() + params.num_steps) + thread_index(), 1u);
}

TEST(Bounds, OfSharedMemory) {
  LaunchParams params = {};
  EXPECT_EQ(run(shared_bounds_kernel, params, {2, kLanes, 128}, checked()), "");
  params.num_steps = 4;
  const std::string error = run(shared_bounds_kernel, params, {2, kLanes, 128}, checked());
  EXPECT_TRUE(contains(error, "out of bounds: shared+128 of CTA ")) << error;
  params.num_steps = -4;
  EXPECT_TRUE(
      contains(run(shared_bounds_kernel, params, {2, kLanes, 128}, checked()), "out of bounds: shared-4"));
  params.num_steps = 2;
  EXPECT_TRUE(contains(run(shared_bounds_kernel, params, {2, kLanes, 192}, checked()), "misaligned"));
}

void global_bounds_kernel(LaunchParams params) {
  load_global(static_cast<uint32_t*>(params.workspace) + thread_index());
}

TEST(Bounds, OfGlobalMemory) {
  Buffer<uint32_t> exact(kLanes);
  EXPECT_EQ(run(global_bounds_kernel, with_workspace(exact.data()), {1, kLanes, 0}, checked()), "");
  Buffer<uint32_t> tight(kLanes - 1);
  std::string error = run(global_bounds_kernel, with_workspace(tight.data()), {1, kLanes, 0}, checked());
  EXPECT_TRUE(contains(error, "out of bounds: ")) << error;
  uint32_t local[kLanes] = {};
  error = run(global_bounds_kernel, with_workspace(local), {1, kLanes, 0}, checked());
  EXPECT_TRUE(contains(error, "lies in no allocation")) << error;
}

}  // namespace
}  // namespace soliton
