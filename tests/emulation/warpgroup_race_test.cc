// Multiplication by warpgroups beside warps that write what it reads: faults and races.
#include <gtest/gtest.h>

#include <string>

#include "warpgroup_testing.h"

namespace soliton {
namespace {

constexpr uint64_t kSeeds = 5;

// A ring of two b, which a warp of its own fills from global memory.
constexpr int kTurns = 6;

struct RingShared {
  alignas(16) unsigned char b[2][kOperandBytes<kColumns>];
  Barrier full[2];
  Barrier empty[2];
};
constexpr LaunchShape kRingShape = {1, kGroupThreads + kLanes, sizeof(RingShared)};
constexpr WaitSite kFullSite = {WaitKind::kInputFull, 0, 0, 0, 0, 0};
constexpr WaitSite kEmptySite = {WaitKind::kInputEmpty, 0, 0, 0, 0, 0};

/// How b gets into shared memory, and when its slot is given back.
struct RingVariant {
  bool copies = false;         // in bulk
  bool fences_reader = false;  // fence_async() after b was seen, not where it was stored
  bool gives_early = false;    // before the wait
};

template <RingVariant kVariant>
void fill_slots(const Small& product, RingShared& shared, const WaitBound& bound) {
  const int lane = thread_index() % kLanes;
  for (int turn = 0; turn < kTurns; ++turn) {
    const int slot = turn % 2;
    wait_barrier(&shared.empty[slot], (turn / 2 & 1) ^ 1, kEmptySite, bound);
    const auto* from = reinterpret_cast<const uint4*>(product.b);
    if (kVariant.copies) {
      if (lane != 0) continue;
      barrier_arrive_expect(&shared.full[slot], sizeof shared.b[slot]);
      copy_vector(shared.b[slot], from, sizeof shared.b[slot], &shared.full[slot]);
      continue;
    }
    store_shared(reinterpret_cast<uint4*>(shared.b[slot]) + lane, load_global(from + lane));
    if (!kVariant.fences_reader) fence_async();
    warp_arrive(&shared.full[slot]);
  }
}

/// results[0]: the sum over all turns, with one set in flight; [1]: the first one of them.
template <RingVariant kVariant>
void ring_kernel(LaunchParams params) {
  auto& product = *static_cast<Small*>(params.workspace);
  auto& shared = *reinterpret_cast<RingShared*>(shared_memory());
  const WaitBound bound = make_wait_bound(nullptr);
  if (thread_index() == 0) {
    for (int slot = 0; slot < 2; ++slot) {
      barrier_init_warps(&shared.full[slot], 1);
      barrier_init_warps(&shared.empty[slot], 4);
    }
    barrier_init_fence();
  }
  cta_sync();
  if (thread_index() >= kGroupThreads) return fill_slots<kVariant>(product, shared, bound);
  float c[kColumns / 2];
  load_c<float, kColumns>(c, product.before);
  for (int turn = 0; turn < kTurns; ++turn) {
    const int slot = turn % 2;
    wait_barrier(&shared.full[slot], turn / 2 & 1, kFullSite, bound);
    if (kVariant.fences_reader) fence_async();
    warpgroup_fence();
    warpgroup_mma_bf16<kColumns>(c, load_a(product, turn % kSteps), shared.b[slot]);
    warpgroup_commit();
    if (kVariant.gives_early) warp_arrive(&shared.empty[slot]);
    warpgroup_wait<1>();
    if (turn > 0 && !kVariant.gives_early) warp_arrive(&shared.empty[slot ^ 1]);
  }
  warpgroup_wait<0>();
  store_c<float, kColumns>(c, product.results[0]);
}

template <RingVariant kVariant>
int count_errors(const char* text, FaultKind fault = FaultKind::kNone) {
  int found = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Buffer<Small> product(1);
    fill_bf16(product[0]);
    EmulationOptions options = checked(seed);
    options.fault.kind = fault;
    const std::string error = run(ring_kernel<kVariant>, with_workspace(product.data()), kRingShape, options);
    const bool as_expected = contains(error, text);
    EXPECT_TRUE(as_expected || error.empty()) << error;
    found += as_expected && !error.empty() ? 1 : 0;
  }
  return found;
}

constexpr RingVariant kStored = {};
constexpr RingVariant kStoredReaderFences = {.fences_reader = true};
constexpr RingVariant kStoredEarly = {.gives_early = true};
constexpr RingVariant kCopied = {.copies = true};
constexpr RingVariant kCopiedEarly = {.copies = true, .gives_early = true};

TEST(WarpgroupRing, IsClean) {
  EXPECT_EQ(count_errors<kStored>(""), 0);
  EXPECT_EQ(count_errors<kStoredReaderFences>(""), 0);
  EXPECT_EQ(count_errors<kCopied>(""), 0);
}

TEST(WarpgroupRing, NeedsEveryWaitFenceAndCommit) {
  const int all = static_cast<int>(kSeeds);
  EXPECT_EQ(count_errors<kStored>("mma", FaultKind::kNoWarpgroupWait), all);
  EXPECT_EQ(count_errors<kCopied>("mma", FaultKind::kNoWarpgroupWait), all);
  EXPECT_EQ(count_errors<kCopied>("without a warpgroup_fence", FaultKind::kNoWarpgroupFence), all);
  EXPECT_EQ(count_errors<kCopied>("mma", FaultKind::kNoWarpgroupCommit), all);
  const char* unfenced = "mma read reads what no fence_async ordered after store";
  EXPECT_EQ(count_errors<kStored>(unfenced, FaultKind::kDropAsyncFence), all);
  EXPECT_EQ(count_errors<kStoredReaderFences>(unfenced, FaultKind::kDropAsyncFence), all);
}

TEST(WarpgroupRing, MayNotTakeASlotThatIsStillRead) {
  const int all = static_cast<int>(kSeeds);
  EXPECT_EQ(count_errors<kStoredEarly>("store is not ordered after mma read"), all);
  EXPECT_EQ(count_errors<kCopiedEarly>("copy write is not ordered after mma read"), all);
}

/// A warp stores b, and fences before it says so, or after. The warpgroup begins when both have happened, but a relaxed word
/// is all that it has seen of what came last.
void late_fence_kernel(LaunchParams params) {
  auto& shared = *reinterpret_cast<RingShared*>(shared_memory());
  auto* done = static_cast<float*>(params.workspace);
  const WaitBound bound = make_wait_bound(nullptr);
  if (thread_index() == 0) barrier_init_warps(&shared.full[0], 1);
  cta_sync();
  if (thread_index() >= kGroupThreads) {
    const bool late = params.num_steps == 1;
    store_shared(reinterpret_cast<uint4*>(shared.b[0]) + thread_index() % kLanes, {});
    if (!late) fence_async();
    warp_arrive(&shared.full[0]);
    if (late) fence_async();
    warp_sync();
    if (thread_index() == kGroupThreads) store_relaxed(done, 1.0f);
    return;
  }
  wait_barrier(&shared.full[0], 0, kFullSite, bound);
  Spin spin(bound);
  while (load_relaxed(done) == 0) spin.pause(kFullSite);
  float c[kColumns / 2] = {};
  warpgroup_fence();
  warpgroup_mma_bf16<kColumns>(c, {}, shared.b[0]);
  warpgroup_commit();
  warpgroup_wait<0>();
}

TEST(WarpgroupRing, NeedsTheFenceBeforeTheArrival) {
  for (const bool late : {false, true}) {
    Buffer<float> done(1, 0);
    LaunchParams params = with_workspace(done.data());
    params.num_steps = late ? 1 : 0;
    const std::string error = run(late_fence_kernel, params, kRingShape, checked());
    if (late) {
      EXPECT_TRUE(contains(error, "mma read reads what no fence_async ordered after store")) << error;
    } else {
      EXPECT_EQ(error, "");
    }
  }
}

/// Its own threads clear b between the multiplication and the wait.
void overwriting_kernel(LaunchParams params) {
  auto& product = *static_cast<Small*>(params.workspace);
  place_b(product);
  float c[kColumns / 2];
  load_c<float, kColumns>(c, product.before);
  warpgroup_fence();
  warpgroup_mma_bf16<kColumns>(c, load_a(product, 0), b_of(0));
  warpgroup_commit();
  if (thread_index() < kLanes) store_shared(reinterpret_cast<uint4*>(shared_memory()) + thread_index(), {});
  cta_sync();
  warpgroup_wait<0>();
  store_c<float, kColumns>(c, product.results[0]);
}

TEST(WarpgroupRing, ReadsBUntilTheWait) {
  Buffer<Small> product(1);
  fill_bf16(product[0]);
  const std::string error = run(overwriting_kernel, with_workspace(product.data()), kShape, checked());
  EXPECT_TRUE(contains(error, "store is not ordered after mma read")) << error;
  EXPECT_TRUE(contains(error, "warpgroup_mma of CTA 0 thread ")) << error;
  ASSERT_EQ(run(overwriting_kernel, with_workspace(product.data()), kShape, {}), "");
  EXPECT_TRUE(is_sum(product[0].results[0], product[0], 0));
}

}  // namespace
}  // namespace soliton
