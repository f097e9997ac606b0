// Races: a small kernel with all that the generated ones are made of is clean under every schedule, and stops
// being so with any one of its waits or fences gone; and the memory model, rule by rule.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "emulator_testing.h"

namespace soliton {
namespace {

constexpr int kLanes = 32;

// ---- A ring of pages, and a vector that all CTAs exchange: the two things that kernels are made of.
// Warp 0 is the producer; warps 1 and 2 each add up half of every page and hand the sum to warp 3, the
// epilogue, which stores the CTA's element of the step's vector. Every consumer takes the whole vector in
// before the next page.

constexpr int kNumCtas = 3;
constexpr int kThreads = 4 * kLanes;
constexpr int kConsumers = 2 * kLanes;
constexpr int kSlots = 2;
constexpr int kWords = 64;  // of a page
constexpr int kSteps = 7;
constexpr int kBuffers = 3;              // of the vector: one is read, one written, one cleared
constexpr int kAppendStep = kSteps - 2;  // in which every CTA writes a word of its neighbour's last page
constexpr uint32_t kEmpty = ~0u;
constexpr uint32_t kAppended = 12345;
constexpr uint32_t kModulus = 65521;

struct RingShared {
  alignas(16) uint32_t pages[kSlots][kWords];
  Barrier full[kSlots];
  Barrier empty[kSlots];
  Barrier sums_full;
  Barrier sums_empty;
  Barrier gate;  // completes once, when the last page may be read: the ring alone does not wait long enough
  uint32_t sums[2];
};

struct RingGlobal {
  alignas(16) uint32_t pages[kNumCtas][kSteps][kWords];
  uint32_t vector[kBuffers][kNumCtas];
  uint32_t result[kNumCtas];
};

/// Parts change hands at every step.
int owned_part(int step) {
  return (cta_index() + step) % num_ctas();
}

uint32_t add_lanes(uint32_t value) {
  for (int mask = 16; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

/// The sum of the vector of `step`, once all of it has arrived.
uint32_t take_vector(RingGlobal* global, int step, const WaitBound& bound) {
  const int lane = thread_index() % kLanes;
  WaitSite site = {WaitKind::kVector, static_cast<uint32_t>(step), 1, 0, 0, kEmpty};
  Spin spin(bound);
  for (;;) {
    const uint32_t mine = lane < num_ctas() ? load_relaxed(&global->vector[step % kBuffers][lane]) : 0u;
    if (!warp_any(mine == kEmpty)) return add_lanes(mine);
    site.index = lane;
    spin.pause(site);
  }
}

void ring_producer(RingShared* shared, RingGlobal* global, const WaitBound& bound) {
  for (int step = 0; step < kSteps; ++step) {
    const int slot = step % kSlots;
    const uint32_t turn = step / kSlots;
    const WaitSite site = {
        WaitKind::kPageEmpty, static_cast<uint32_t>(step), 0, static_cast<uint32_t>(slot), 0, 0};
    wait_barrier(&shared->empty[slot], (turn & 1) ^ 1, site, bound);
    if (step == kSteps - 1) {
      wait_barrier(&shared->gate, 0, {WaitKind::kStepRead, 0, 0, 0, 0, 0}, bound);
      fence_async_global();
    }
    barrier_arrive_expect(&shared->full[slot], sizeof shared->pages[slot]);
    copy_page(shared->pages[slot], global->pages[cta_index()][step], sizeof shared->pages[slot],
              &shared->full[slot]);
  }
}

void ring_consumer(RingShared* shared, RingGlobal* global, const WaitBound& bound) {
  const int half = thread_index() / kLanes - 1;
  const int lane = thread_index() % kLanes;
  for (int step = 0; step < kSteps; ++step) {
    const int slot = step % kSlots;
    const auto place = static_cast<uint32_t>(step);
    const uint32_t before = step == 0 ? 1 : take_vector(global, step - 1, bound);
    if (step == kAppendStep + 1 && half == 0 && lane == 0) barrier_arrive(&shared->gate);
    wait_barrier(&shared->full[slot], step / kSlots & 1, {WaitKind::kPageFull, place, 0, 0, 0, 0}, bound);
    const uint32_t sum = add_lanes(load_shared(&shared->pages[slot][half * kLanes + lane]));
    barrier_arrive(&shared->empty[slot]);
    if (lane != 0) continue;
    wait_barrier(&shared->sums_empty, (step & 1) ^ 1, {WaitKind::kTileEmpty, place, 0, 0, 0, 0}, bound);
    store_shared(&shared->sums[half], sum * (half + 1) + before);
    barrier_arrive(&shared->sums_full);
  }
}

/// One thread. At step s it clears what it wrote at step s - 2. Every CTA's part of vector s - 1, which has
/// arrived, came after that CTA took in vector s - 2: nobody reads it any more. Another CTA writes the same
/// place at step s + 1, after it took in vector s: the fence puts the clearing before this CTA's part of
/// that.
void ring_epilogue(RingShared* shared, RingGlobal* global, const WaitBound& bound) {
  const int ctas = num_ctas();
  for (int step = 0; step < kSteps; ++step) {
    const auto place = static_cast<uint32_t>(step);
    wait_barrier(&shared->sums_full, step & 1, {WaitKind::kTileFull, place, 0, 0, 0, 0}, bound);
    const uint32_t sum = load_shared(&shared->sums[0]) + load_shared(&shared->sums[1]);
    barrier_arrive(&shared->sums_empty);
    if (step >= 2) store_relaxed(&global->vector[(step - 2) % kBuffers][owned_part(step - 2)], kEmpty);
    if (step == kAppendStep) store_global(&global->pages[(cta_index() + 1) % ctas][kSteps - 1][5], kAppended);
    fence_device();
    store_relaxed(&global->vector[step % kBuffers][owned_part(step)], sum % kModulus);
  }
}

void ring_kernel(LaunchParams params) {
  auto* shared = reinterpret_cast<RingShared*>(shared_memory());
  auto* global = static_cast<RingGlobal*>(params.workspace);
  const WaitBound bound = make_wait_bound(nullptr);
  if (thread_index() == 0) {
    for (int slot = 0; slot < kSlots; ++slot) {
      barrier_init(&shared->full[slot], 1);
      barrier_init(&shared->empty[slot], kConsumers);
    }
    barrier_init(&shared->sums_full, 2);
    barrier_init(&shared->sums_empty, 1);
    barrier_init(&shared->gate, 1);
    barrier_init_fence();
  }
  cta_sync();
  const int warp = thread_index() / kLanes;
  if (thread_index() == 0) ring_producer(shared, global, bound);
  if (warp == 1 || warp == 2) ring_consumer(shared, global, bound);
  if (thread_index() == 3 * kLanes) ring_epilogue(shared, global, bound);
  if (warp == 1) {
    const uint32_t sum = take_vector(global, kSteps - 1, bound);
    if (thread_index() % kLanes == 0) store_global(&global->result[cta_index()], sum);
  }
}

void fill_ring(RingGlobal& global) {
  for (int cta = 0; cta < kNumCtas; ++cta) {
    for (int step = 0; step < kSteps; ++step) {
      for (int i = 0; i < kWords; ++i) global.pages[cta][step][i] = (cta * 31 + step * 17 + i * i) % 251;
    }
  }
  std::memset(global.vector, 0xff, sizeof global.vector);
}

uint32_t expected_result(const RingGlobal& global) {
  uint32_t before = 1;
  for (int step = 0; step < kSteps; ++step) {
    uint32_t vector = 0;
    for (int cta = 0; cta < kNumCtas; ++cta) {
      uint32_t sums[2] = {};
      for (int i = 0; i < kWords; ++i) {
        sums[i / kLanes] += step == kSteps - 1 && i == 5 ? kAppended : global.pages[cta][step][i];
      }
      vector += (sums[0] + before + 2 * sums[1] + before) % kModulus;
    }
    before = vector;
  }
  return before;
}

/// Empty if the kernel ended and computed what it should.
std::string run_ring(const EmulationOptions& options) {
  Buffer<RingGlobal> global(1);
  fill_ring(global[0]);
  const uint32_t expected = expected_result(global[0]);
  const std::string error =
      run(ring_kernel, with_workspace(global.data()), {kNumCtas, kThreads, sizeof(RingShared)}, options);
  if (!error.empty()) return error;
  for (const uint32_t result : global[0].result) {
    if (result != expected) return "wrong result";
  }
  return "";
}

constexpr CopyPolicy kPolicies[] = {CopyPolicy::kEager, CopyPolicy::kLate, CopyPolicy::kRandom};

TEST(Ring, IsCleanUnderEveryScheduleAndCopyPolicy) {
  for (const CopyPolicy policy : kPolicies) {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      EmulationOptions options = checked(seed, policy);
      ASSERT_EQ(run_ring(options), "") << "seed " << seed;
      options.check = false;
      ASSERT_EQ(run_ring(options), "") << "seed " << seed;
    }
  }
}

TEST(Ring, RunsTheSameForTheSameSeed) {
  const auto count_switches = [](uint64_t seed) {
    Buffer<RingGlobal> global(1);
    fill_ring(global[0]);
    EmulationControl control;
    control.options = checked(seed);
    EXPECT_EQ(emulation::run(ring_kernel, with_workspace(global.data()),
                             {kNumCtas, kThreads, sizeof(RingShared)}, control),
              "");
    return control.stats.switches;
  };
  EXPECT_EQ(count_switches(5), count_switches(5));
  EXPECT_NE(count_switches(5), count_switches(6));
}

/// Runs the ring with a fault under `num_seeds` schedules; returns in how many there is an error that
/// contains `text`.
int count_errors(const Fault& fault, const std::string& text, int num_seeds, CopyPolicy policy) {
  int count = 0;
  for (int seed = 1; seed <= num_seeds; ++seed) {
    EmulationOptions options = checked(seed, policy);
    options.fault = fault;
    const std::string error = run_ring(options);
    if (!error.empty() && contains(error, text)) {
      ++count;
    } else {
      ADD_FAILURE() << "seed " << seed << ": expected " << text << ", got: " << error;
    }
  }
  return count;
}

constexpr int kSeeds = 20;

TEST(RingFaults, ASkippedWaitIsFound) {
  const struct {
    WaitKind kind;
    const char* text;
  } cases[] = {
      {WaitKind::kPageFull, "race at "},
      {WaitKind::kStepRead, "race at global #"},
      {WaitKind::kPageEmpty, ""},  // a race, or a second arrival before the page of the first has landed
      {WaitKind::kTileFull, ""},   // a race, or slots that are given back too often, and then a deadlock
  };
  for (const auto& [kind, text] : cases) {
    for (const CopyPolicy policy : kPolicies) {
      SCOPED_TRACE(wait_name(kind));
      EXPECT_EQ(count_errors({FaultKind::kSkipWait, kind}, text, kSeeds, policy), kSeeds);
    }
  }
}

/// The consumers have taken the vector of this step in, of which their own CTA's part came after its
/// epilogue's loads.
TEST(RingFaults, AWaitThatOthersImplyMayBeSkipped) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    EmulationOptions options = checked(seed);
    options.fault = {FaultKind::kSkipWait, WaitKind::kTileEmpty};
    EXPECT_EQ(run_ring(options), "") << "seed " << seed;
  }
}

TEST(RingFaults, ADroppedFenceIsARace) {
  for (const CopyPolicy policy : kPolicies) {
    EXPECT_EQ(count_errors({FaultKind::kDropDeviceFence}, "race at global #", kSeeds, policy), kSeeds);
    EXPECT_EQ(count_errors({FaultKind::kDropAsyncFence}, "copy read reads what no fence_async_global", kSeeds,
                           policy),
              kSeeds);
  }
}

TEST(RingFaults, AWrongBarrierCountIsFound) {
  constexpr int kFull = 0;
  constexpr int kEmptySlot = 1;
  constexpr int kSums = 4;
  for (const CopyPolicy policy : kPolicies) {
    for (const int ordinal : {kFull, kEmptySlot, kSums}) {
      EXPECT_EQ(
          count_errors({FaultKind::kBarrierCount, WaitKind::kNone, ordinal, 1}, "deadlock: ", kSeeds, policy),
          kSeeds);
    }
    // A whole warp too few: one lane would not matter, its warp's sum comes after its load.
    EXPECT_EQ(
        count_errors({FaultKind::kBarrierCount, WaitKind::kNone, kEmptySlot, -kLanes}, "", kSeeds, policy),
        kSeeds);
    EXPECT_EQ(count_errors({FaultKind::kBarrierCount, WaitKind::kNone, kSums, -1}, "", kSeeds, policy),
              kSeeds);
  }
}

TEST(RingFaults, ARaceNamesBothSidesAndTheirWaits) {
  int found = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EmulationOptions options = checked(seed, CopyPolicy::kLate);
    options.fault = {FaultKind::kSkipWait, WaitKind::kPageFull};
    const std::string error = run_ring(options);
    EXPECT_EQ(error.rfind("race at shared of CTA ", 0), 0u) << error;
    if (!contains(error, "load is not ordered after copy write")) continue;  // The load came first.
    ++found;
    EXPECT_TRUE(contains(error, "\n  load by CTA ")) << error;
    EXPECT_TRUE(contains(error, "last wait: page_full (step 0, phase 0")) << error;
    EXPECT_TRUE(contains(error, "\n  copy write by the copy engine of CTA ")) << error;
  }
  EXPECT_GT(found, 0);
}

// ---- The memory model, rule by rule: CTA 0 stores a word, tells CTA 1 by a flag, and CTA 1 uses the word.

struct Handover {
  uint32_t word;
  uint32_t flag;
  uint32_t answer;
  uint64_t sum;
};

enum Rule : int {
  kFenceThenRelaxed,
  kRelaxedAlone,
  kRelease,
  kReadThenRelaxed,  // CTA 0 reads the word, CTA 1 then writes it: no fence needed
  kStoresOfBoth,     // no flag at all
  kRelaxedStoreOrdinaryLoad,
  kRelaxedStoresOfBoth,
  kRelaxedOverObserved,  // CTA 1 overwrites the value that it has read: coherence orders that
  kAddsOfBoth,
  kRelaxedAddsOfBoth,
  kRelaxedAddsThenRelease,    // the sum is read by who has seen both arrivals,
  kRelaxedAddsThenOneSeen,    // or by one of the two, who knows of its own addition only
  kClearedForOneOfTwoAdders,  // CTA 1 adds to what CTA 0 clears before it adds
  kWrittenConstant,
};

void handover_kernel(LaunchParams params) {
  if (thread_index() != 0) return;
  auto* data = static_cast<Handover*>(params.workspace);
  const int rule = params.num_steps;
  const bool first = cta_index() == 0;
  const auto wait_for_flag = [&] {
    Spin spin(make_wait_bound(nullptr));
    while ((rule == kRelease ? load_acquire(&data->flag) : load_relaxed(&data->flag)) == 0) {
      spin.pause({WaitKind::kCounter, 0, 0, 0, 1, 0});
    }
  };
  if (rule == kFenceThenRelaxed || rule == kRelaxedAlone || rule == kRelease || rule == kWrittenConstant) {
    if (first) {
      store_global(&data->word, 5u);
      if (rule == kFenceThenRelaxed || rule == kWrittenConstant) fence_device();
      rule == kRelease ? add_release(&data->flag, 1u) : store_relaxed(&data->flag, 1u);
    } else {
      wait_for_flag();
      store_global(&data->answer,
                   rule == kWrittenConstant ? load_constant(&data->word) : load_global(&data->word));
    }
  } else if (rule == kReadThenRelaxed) {
    if (first) {
      store_global(&data->answer, load_global(&data->word));
      store_relaxed(&data->flag, 1u);
    } else {
      wait_for_flag();
      store_global(&data->word, 9u);
    }
  } else if (rule == kStoresOfBoth) {
    store_global(&data->word, 1u);
  } else if (rule == kRelaxedStoreOrdinaryLoad) {
    if (first) store_relaxed(&data->word, 5u);
    if (!first) load_global(&data->word);
  } else if (rule == kRelaxedStoresOfBoth) {
    store_relaxed(&data->word, 1u);
  } else if (rule == kRelaxedOverObserved) {
    if (first) store_relaxed(&data->flag, 1u);
    if (!first) wait_for_flag();
    if (!first) store_relaxed(&data->flag, 2u);
  } else if (rule == kAddsOfBoth) {
    add_release(&data->flag, 1u);
  } else if (rule >= kRelaxedAddsOfBoth && rule <= kClearedForOneOfTwoAdders) {
    if (rule == kClearedForOneOfTwoAdders && first) store_global(&data->sum, uint64_t{0});
    add_relaxed(&data->sum, 1u);
    if (rule == kRelaxedAddsThenOneSeen && !first) load_global(&data->sum);
    if (rule != kRelaxedAddsThenRelease) return;
    add_release(&data->flag, 1u);
    Spin spin(make_wait_bound(nullptr));
    while (load_acquire(&data->flag) < 2) spin.pause({WaitKind::kCounter, 0, 0, 0, 2, 0});
    if (first) store_global(&data->answer, static_cast<uint32_t>(load_global(&data->sum)));
  }
}

TEST(MemoryModel, AllowsAndForbidsByItsRules) {
  const struct {
    Rule rule;
    const char* expected;  // part of the error; empty: clean
  } cases[] = {
      {kFenceThenRelaxed, ""},
      {kRelaxedAlone, "+0: load is not ordered after store"},
      {kRelease, ""},
      {kReadThenRelaxed, ""},
      {kStoresOfBoth, "+0: store is not ordered after store"},
      {kRelaxedStoreOrdinaryLoad, "+0: "},
      {kRelaxedStoresOfBoth, "+0: store_relaxed is not ordered after store_relaxed"},
      {kRelaxedOverObserved, ""},
      {kAddsOfBoth, ""},
      {kRelaxedAddsOfBoth, ""},
      {kRelaxedAddsThenRelease, ""},
      {kRelaxedAddsThenOneSeen, "add"},
      {kClearedForOneOfTwoAdders, "is not ordered after"},
      {kWrittenConstant, "+0: load_constant promises memory"},
  };
  for (const auto& [rule, expected] : cases) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Buffer<Handover> data(1);
      LaunchParams params = with_workspace(data.data());
      params.num_steps = rule;
      const std::string error = run(handover_kernel, params, {2, kLanes, 0}, checked(seed));
      EXPECT_EQ(error.empty(), *expected == 0) << "rule " << rule << ": " << error;
      EXPECT_TRUE(contains(error, expected)) << "rule " << rule << ": " << error;
    }
  }
}

/// CTA 1 tells CTA 2 that it has read what CTA 0 stored; CTA 2 overwrites that, while CTA 1 reads it again.
void read_again_kernel(LaunchParams params) {
  if (thread_index() != 0) return;
  auto* data = static_cast<Handover*>(params.workspace);
  const auto wait_for = [](const uint32_t* word) {
    Spin spin(make_wait_bound(nullptr));
    while (load_relaxed(word) == 0) spin.pause({WaitKind::kCounter, 0, 0, 0, 1, 0});
  };
  if (cta_index() == 0) store_relaxed(&data->word, 1u);
  if (cta_index() == 1) {
    wait_for(&data->word);
    store_relaxed(&data->flag, 1u);
    for (int i = 0; i < 8; ++i) load_relaxed(&data->word);
  }
  if (cta_index() == 2) {
    wait_for(&data->flag);
    store_relaxed(&data->word, 2u);
  }
}

TEST(MemoryModel, RemembersWhoWasTheFirstToObserve) {
  for (uint64_t seed = 1; seed <= 4 * kSeeds; ++seed) {
    Buffer<Handover> data(1);
    EXPECT_EQ(run(read_again_kernel, with_workspace(data.data()), {3, kLanes, 0}, checked(seed)), "");
    EXPECT_EQ(data.data()->word, 2u);
  }
}

constexpr int kBeforeTheRead = 1;  // words that are flags
constexpr int kBehindTheRead = 2;
constexpr int kOfAnotherLane = 3;

/// Of CTA 0 a lane may store a flag, then reads word 0 and stores another flag, and its neighbour stores one of its own; CTA 1
/// overwrites the word once it has the flag that params.num_steps says.
void flags_kernel(LaunchParams params) {
  auto* words = static_cast<uint32_t*>(params.workspace);
  if (cta_index() == 0 && thread_index() == 0) {
    if (params.num_steps == kBeforeTheRead) store_relaxed(words + kBeforeTheRead, 1u);
    store_relaxed(words + kBehindTheRead, load_global(words) + 1);
  }
  if (cta_index() == 0 && thread_index() == 1) store_relaxed(words + kOfAnotherLane, 1u);
  if (cta_index() == 1 && thread_index() == 0) {
    Spin spin(make_wait_bound(nullptr));
    while (load_relaxed(words + params.num_steps) == 0) spin.pause({WaitKind::kCounter, 0, 0, 0, 1, 0});
    store_global(words, 2u);
  }
}

// Lanes have their clocks in common as long as they acquire nothing, but for what each has done itself.
TEST(MemoryModel, AFlagTellsWhatItsOwnLaneHasReadBefore) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const int flag : {kBeforeTheRead, kBehindTheRead, kOfAnotherLane}) {
      Buffer<uint32_t> words(4);
      LaunchParams params = with_workspace(words.data());
      params.num_steps = flag;
      const std::string error = run(flags_kernel, params, {2, kLanes, 0}, checked(seed));
      EXPECT_EQ(contains(error, "race at global #"), flag != kBehindTheRead)
          << "flag " << flag << ": " << error;
    }
  }
}

/// CTA 0 stores two words, a fence between them or not; CTA 1 looks at the first once it has the second.
void two_stores_kernel(LaunchParams params) {
  if (thread_index() != 0) return;
  auto* data = static_cast<Handover*>(params.workspace);
  if (cta_index() == 0) {
    store_relaxed(&data->word, 1u);
    if (params.num_steps == 1) fence_device();
    store_relaxed(&data->flag, 1u);
  } else {
    Spin spin(make_wait_bound(nullptr));
    while (load_relaxed(&data->flag) == 0) spin.pause({WaitKind::kCounter, 0, 0, 0, 1, 0});
    store_global(&data->answer, load_relaxed(&data->word));
  }
}

TEST(MemoryModel, RelaxedStoresMayOvertakeOneAnother) {
  for (const bool fences : {false, true}) {
    int overtaken = 0;
    for (uint64_t seed = 1; seed <= 8 * kSeeds; ++seed) {
      Buffer<Handover> data(1);
      LaunchParams params = with_workspace(data.data());
      params.num_steps = fences ? 1 : 0;
      EmulationOptions options = checked(seed, CopyPolicy::kLate);
      options.delays_stores = true;
      ASSERT_EQ(run(two_stores_kernel, params, {2, kLanes, 0}, options), "");
      overtaken += data.data()->answer == 0 ? 1 : 0;
    }
    EXPECT_EQ(overtaken > 0, !fences);
  }
}

template <class T>
void parts_kernel(LaunchParams params) {
  if (thread_index() < 2) store_shared(reinterpret_cast<T*>(shared_memory()) + thread_index(), T{1});
  if (params.num_steps == 1 && thread_index() == 2) load_shared(reinterpret_cast<uint32_t*>(shared_memory()));
}

TEST(MemoryModel, NeighbouringHalfWordsAndBytesAreApart) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const auto kernel : {parts_kernel<uint16_t>, parts_kernel<uint8_t>}) {
      LaunchParams params = {};
      EXPECT_EQ(run(kernel, params, {1, kLanes, 16}, checked(seed)), "");
      params.num_steps = 1;
      EXPECT_TRUE(contains(run(kernel, params, {1, kLanes, 16}, checked(seed)), "race at shared of CTA 0+"));
    }
  }
}

}  // namespace
}  // namespace soliton
