// The emulation finds what it is there for: each wait, fence and count of a real kernel is taken away in
// turn, and each time the launch must be reported or its result differ.
#include <algorithm>
#include <span>
#include <string_view>

#include "error_of.h"
#include "kernel/kernel_fixture.h"
#include "long_tests.h"

namespace soliton {
namespace {

constexpr int kPosition = 66;
constexpr int kTokens = 3;
constexpr uint64_t kSeeds = 6;
constexpr int kMostCheckedThreads = 4096;  // by the emulation

struct FaultCase {
  const char* name;
  const char* kernel;
  Fault fault;
};

/// Runs with the fault under several schedules. True if any launch is reported, or gives other bits.
bool is_found(KernelUnderTest& kernel, const Fault& fault, uint64_t num_seeds = kSeeds) {
  const Descriptor& descriptor = kernel.engine().library().descriptor();
  EXPECT_LE(descriptor.num_cards * descriptor.num_ctas * descriptor.threads_per_cta, kMostCheckedThreads)
      << "a launch that cannot be checked is reported whatever the fault";
  const bool takes_rows = descriptor.rows > 1;
  kernel.fill(kernel.prompt(kPosition));
  const std::vector<int32_t> last = kernel.prompt(takes_rows ? 11 : 1);  // a step of eight and one of three
  const EmulationOptions sound = kernel.emulation();
  // First: a fault may leave in the cache, behind these tokens, what is no number, which a weight of 0 does not hide.
  const std::vector<float> expected = kernel.decode_from(kPosition, last, kTokens).logits;
  for (uint64_t seed = 1; seed <= num_seeds; ++seed) {
    kernel.emulation() = sound;
    kernel.emulation().check = true;
    kernel.emulation().fault = fault;
    kernel.emulation().seed = seed;
    kernel.emulation().copies = seed % 2 == 0 ? CopyPolicy::kLate : CopyPolicy::kRandom;
    DecodeResult result;
    try {
      result = kernel.decode_from(kPosition, last, kTokens);
    } catch (const std::exception&) {
      return true;
    }
    if (result.logits != expected) return true;
  }
  return false;
}

class FaultInjection : public testing::TestWithParam<FaultCase> {};

constexpr Fault skip(WaitKind kind) {
  return {.kind = FaultKind::kSkipWait, .wait = kind};
}
constexpr Fault count(int ordinal, int delta) {
  return {.kind = FaultKind::kBarrierCount, .ordinal = ordinal, .delta = delta};
}

// Barriers in the order of init_barriers(): page_full and page_empty in turn, tile_full and tile_empty in
// turn, two of input_read and input_taken in turn, query_full, attention_full, attention_empty, token_ready,
// step_read, stopped. The ring of this kernel has 4 slots.
constexpr int kTileBarriers = 8;
constexpr int kInputRead = 16;
constexpr int kQueryFull = 20;
constexpr int kAttentionFull = 21;
constexpr int kTokenReady = 23;

INSTANTIATE_TEST_SUITE_P(
    Each, FaultInjection,
    testing::Values(
        FaultCase{"no_wait_for_a_page", "plain-4-split", skip(WaitKind::kPageFull)},
        FaultCase{"no_wait_for_a_free_slot", "plain-4-split", skip(WaitKind::kPageEmpty)},
        FaultCase{"no_wait_for_a_tile", "plain-4-split", skip(WaitKind::kTileFull)},
        FaultCase{"no_wait_for_a_free_tile", "plain-4-split", skip(WaitKind::kTileEmpty)},
        FaultCase{"no_wait_for_the_input", "plain-4-split", skip(WaitKind::kInputRead)},
        FaultCase{"no_wait_for_taken_input", "plain-11-wide", skip(WaitKind::kInputTaken)},
        FaultCase{"no_wait_for_the_token", "plain-4-split", skip(WaitKind::kTokenReady)},
        FaultCase{"no_wait_for_the_query", "plain-4-split", skip(WaitKind::kQueryFull)},
        FaultCase{"no_wait_for_attention", "plain-4-split", skip(WaitKind::kAttentionFull)},
        FaultCase{"no_wait_for_taken_attention", "group8-one", skip(WaitKind::kAttentionEmpty)},
        FaultCase{"no_wait_before_x_takes_its_place", "plain-4-split", skip(WaitKind::kAttentionEmpty)},
        FaultCase{"no_wait_for_the_step_before", "micro-12", skip(WaitKind::kStepRead)},
        FaultCase{"no_wait_for_the_choice_of_experts", "mixture-3", skip(WaitKind::kExpertsChosen)},
        FaultCase{"no_fence", "group8-6-split", {.kind = FaultKind::kDropDeviceFence}},
        FaultCase{"no_fence_before_copies", "plain-4-split", {.kind = FaultKind::kDropAsyncFence}},
        FaultCase{"page_full_one_more", "plain-4-split", count(0, 1)},
        FaultCase{"page_empty_one_less", "plain-4-split", count(1, -1)},
        FaultCase{"page_empty_one_more", "plain-4-split", count(1, 1)},
        FaultCase{"tile_full_one_less", "plain-4-split", count(kTileBarriers, -1)},
        FaultCase{"tile_empty_one_more", "plain-4-split", count(kTileBarriers + 1, 1)},
        FaultCase{"input_read_one_less", "plain-4-split", count(kInputRead, -1)},
        FaultCase{"input_taken_one_more", "plain-4-split", count(kInputRead + 1, 1)},
        FaultCase{"query_full_one_less", "plain-4-split", count(kQueryFull, -1)},
        FaultCase{"attention_full_one_less", "plain-4-split", count(kAttentionFull, -1)},
        FaultCase{"attention_empty_one_less", "plain-4-split", count(kAttentionFull + 1, -1)},
        FaultCase{"attention_empty_one_more", "plain-4-split", count(kAttentionFull + 1, 1)},
        FaultCase{"rows_no_wait_for_the_picks", "mixture-4-rows8", skip(WaitKind::kPicksKnown)},
        FaultCase{"rows_no_wait_for_the_choice_of_experts", "mixture-4-rows8",
                  skip(WaitKind::kExpertsChosen)},
        FaultCase{"pairs_no_wait_for_the_lines", "int4-mixture-4-rows8", skip(WaitKind::kLinesReady)},
        FaultCase{"pairs_no_wait_for_a_page", "int4-mixture-4-rows8", skip(WaitKind::kPageFull)},
        FaultCase{"units_no_wait_for_copies", "int4-mixture-4-rows8", {.kind = FaultKind::kNoCopyWait}},
        FaultCase{"awaited_words_are_not_missing", "int4-mixture-4-rows8", {.kind = FaultKind::kKeepZeros}},
        FaultCase{"rows_no_wait_for_a_page", "plain-4-rows8", skip(WaitKind::kPageFull)},
        FaultCase{"rows_no_wait_for_a_free_slot", "plain-4-rows8", skip(WaitKind::kPageEmpty)},
        FaultCase{"rows_no_wait_for_a_tile", "plain-4-rows8", skip(WaitKind::kTilesFull)},
        FaultCase{"rows_no_wait_for_a_free_tile", "plain-3-rows64-lanes", skip(WaitKind::kTilesEmpty)},
        FaultCase{"rows_no_wait_for_the_input", "plain-4-rows8", skip(WaitKind::kInputFull)},
        FaultCase{"rows_no_wait_for_free_input", "broad-2-rows8", skip(WaitKind::kInputEmpty)},
        FaultCase{"rows_no_wait_for_the_query", "plain-4-rows8", skip(WaitKind::kQueryFull)},
        FaultCase{"rows_no_wait_for_the_parts", "plain-4-rows8", skip(WaitKind::kPartsFull)},
        FaultCase{"rows_no_wait_for_the_item", "plain-1-rows8", skip(WaitKind::kItemDone)},
        FaultCase{"rows_no_wait_for_the_phase", "plain-4-rows8", skip(WaitKind::kBegun)},
        FaultCase{"rows_no_wait_for_the_phase_before", "plain-4-rows8", skip(WaitKind::kPhaseDone)},
        FaultCase{"rows_no_wait_for_the_step", "plain-4-rows8", skip(WaitKind::kStepKnown)},
        FaultCase{"rows_no_wait_for_the_step_before", "single-4-rows8", skip(WaitKind::kStepRead)},
        FaultCase{"rows_no_fence_before_copies", "plain-4-rows8", {.kind = FaultKind::kDropAsyncFence}},
        FaultCase{"warpgroups_no_wait_for_products", "plain-3-rows64", {.kind = FaultKind::kNoProductWait}},
        FaultCase{
            "warpgroups_no_fence_of_products", "plain-3-rows64", {.kind = FaultKind::kDropProductFence}},
        FaultCase{
            "warpgroups_no_commit_of_products", "plain-3-rows64", {.kind = FaultKind::kDropProductCommit}},
        FaultCase{
            "integers_no_wait_for_products", "int4-zeros-3-rows64", {.kind = FaultKind::kNoProductWait}},
        FaultCase{
            "integers_no_fence_of_products", "int4-zeros-3-rows64", {.kind = FaultKind::kDropProductFence}},
        FaultCase{
            "integers_no_commit_of_products", "int4-zeros-3-rows64", {.kind = FaultKind::kDropProductCommit}},
        FaultCase{"integers_no_wait_for_pages", "int4-zeros-3-rows64", skip(WaitKind::kPageFull)},
        FaultCase{"digits_no_wait_for_products", "int4-zeros-2-rows8", {.kind = FaultKind::kNoProductWait}},
        FaultCase{
            "digits_no_fence_of_products", "int4-zeros-2-rows8", {.kind = FaultKind::kDropProductFence}},
        FaultCase{
            "digits_no_commit_of_products", "int4-zeros-2-rows8", {.kind = FaultKind::kDropProductCommit}},
        FaultCase{"digits_no_fence_of_the_input", "int4-zeros-2-rows8", {.kind = FaultKind::kDropAsyncFence}},
        FaultCase{"digits_no_wait_for_pages", "int4-zeros-2-rows8", skip(WaitKind::kPageFull)},
        FaultCase{"digits_no_wait_for_the_workers", "int4-zeros-2-rows8", skip(WaitKind::kTilesFull)},
        FaultCase{"digits_no_wait_for_the_phase", "int4-zeros-2-rows8", skip(WaitKind::kBegun)},
        FaultCase{"sets_no_wait_for_products", "int4-wide-2-rows32", {.kind = FaultKind::kNoProductWait}},
        FaultCase{"warpgroups_no_wait_for_the_input", "broad-4-rows64", skip(WaitKind::kInputFull)},
        FaultCase{"warpgroups_no_wait_for_free_input", "broad-4-rows64", skip(WaitKind::kInputEmpty)},
        FaultCase{"warpgroups_no_wait_for_the_workers", "plain-3-rows64", skip(WaitKind::kTilesFull)},
        FaultCase{"warpgroups_no_release_of_the_phase", "broad-4-rows64", {.kind = FaultKind::kDropRelease}},
        FaultCase{"lanes_no_wait_for_copies", "plain-4-split-lanes", {.kind = FaultKind::kNoCopyWait}},
        FaultCase{"lanes_no_wait_for_a_page", "plain-4-split-lanes", skip(WaitKind::kPageFull)},
        FaultCase{"lanes_no_wait_for_a_free_slot", "plain-4-split-lanes", skip(WaitKind::kPageEmpty)},
        FaultCase{"lanes_no_wait_for_a_tile", "plain-4-split-lanes", skip(WaitKind::kTileFull)},
        FaultCase{"lanes_no_wait_for_a_free_tile", "plain-4-split-lanes", skip(WaitKind::kTileEmpty)},
        FaultCase{"lanes_no_wait_for_the_input", "plain-4-split-lanes", skip(WaitKind::kInputRead)},
        FaultCase{"lanes_no_wait_for_the_token", "plain-4-split-lanes", skip(WaitKind::kTokenReady)},
        FaultCase{"lanes_no_wait_for_the_query", "plain-4-split-lanes", skip(WaitKind::kQueryFull)},
        FaultCase{"lanes_no_wait_for_attention", "plain-4-split-lanes", skip(WaitKind::kAttentionFull)},
        FaultCase{"lanes_no_wait_before_x_takes_its_place", "plain-4-split-lanes",
                  skip(WaitKind::kAttentionEmpty)},
        FaultCase{"lanes_no_wait_for_the_step_before", "micro-20-lanes", skip(WaitKind::kStepRead)},
        FaultCase{"lanes_page_full_one_more", "plain-4-split-lanes", count(0, 1)},
        FaultCase{"lanes_page_empty_one_less", "plain-4-split-lanes", count(1, -1)},
        FaultCase{"lanes_rows_no_wait_for_copies", "plain-4-rows8-lanes", {.kind = FaultKind::kNoCopyWait}},
        FaultCase{"lanes_rows_no_wait_for_a_free_slot", "plain-4-rows8-lanes", skip(WaitKind::kPageEmpty)},
        FaultCase{"lanes_rows_no_wait_for_the_input", "plain-4-rows8-lanes", skip(WaitKind::kInputFull)},
        FaultCase{"lanes_rows_no_wait_for_the_query", "plain-4-rows8-lanes", skip(WaitKind::kQueryFull)},
        FaultCase{"lanes_rows_no_wait_for_the_phase", "plain-4-rows8-lanes", skip(WaitKind::kBegun)},
        FaultCase{"token_ready_one_more", "plain-4-split", count(kTokenReady, 1)}),
    [](const testing::TestParamInfo<FaultCase>& info) { return std::string(info.param.name); });

TEST_P(FaultInjection, IsFound) {
  if (GetParam().fault.kind == FaultKind::kDropProductCommit)
    SOLITON_LONG_RUNS_ONLY("faults that leave out the wait for such products");
  KernelUnderTest kernel(GetParam().kernel);
  EXPECT_TRUE(is_found(kernel, GetParam().fault));
}

/// What the input loader says of its fence, and consumers of their waits, sets the producer's pace and nothing else: a kernel in
/// which nobody hears it ends all the same, with the same bits.
class UnheardHints : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Each, UnheardHints,
                         testing::Values("micro-3", "plain-4-rows8", "int4-zeros-2-rows8"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(UnheardHints, ChangeNothing) {
  KernelUnderTest kernel(GetParam());
  EXPECT_FALSE(is_found(kernel, {.kind = FaultKind::kDropHints}, 1));
}

/// The first of the experts that a token goes through becomes another one between the epilogue, which knows its weight, and
/// the producers, which copy its pages.
Fault spoil_expert(const KernelUnderTest& kernel, int delta) {
  const KernelPlan& plan = *const_cast<KernelUnderTest&>(kernel).engine().library().descriptor().plan;
  Fault fault = {.kind = FaultKind::kSpoilWord, .delta = delta};
  for (int i = 0; plan.barriers[i].name != std::string_view("experts_chosen"); ++i)
    fault.ordinal += plan.barriers[i].slots;
  for (const Region& region : std::span(plan.regions).first(plan.num_regions)) {
    if (region.name == std::string_view("experts"))
      fault.place = region.offset + 4 * plan.model.mixture.shared;
  }
  return fault;
}

TEST(ExpertFaults, ProducersThatCopyAnotherExpertAreFound) {
  KernelUnderTest kernel("mixture-shared-5");
  EXPECT_TRUE(is_found(kernel, spoil_expert(kernel, 1), 1));
}

TEST(ExpertFaults, ProducersThatCopyTheChosenExpertAreNot) {
  KernelUnderTest kernel("mixture-shared-5");
  EXPECT_FALSE(is_found(kernel, spoil_expert(kernel, 0), 1));
}

TEST(ExpertFaults, AnExpertBehindTheLastIsFound) {
  KernelUnderTest kernel("mixture-shared-5");
  kernel.emulation().check = true;
  kernel.emulation().fault = spoil_expert(kernel, 1 << 20);
  EXPECT_NE(error_of([&] { kernel.decode(kernel.prompt(1), 1); }).find("out of bounds"), std::string::npos)
      << error_of([&] { kernel.decode(kernel.prompt(1), 1); });
}

// Else anything that is wrong with a kernel would pass for the fault that was looked for.
TEST(FaultKernels, WithoutFaultsAreNotReported) {
  if (!long_tests()) GTEST_SKIP() << "runs with SOLITON_LONG_TESTS=1: tests of decoding check most of them";
  for (const char* name :
       {"plain-4-split", "plain-11-wide", "group8-one", "micro-12", "plain-4-rows8", "plain-3-rows64-lanes",
        "broad-2-rows8", "plain-1-rows8", "single-4-rows8", "plain-3-rows64", "int4-zeros-3-rows64",
        "int4-zeros-2-rows8", "int4-wide-2-rows32", "broad-4-rows64", "plain-4-split-lanes", "micro-20-lanes",
        "plain-4-rows8-lanes"}) {
    KernelUnderTest kernel(name);
    EXPECT_FALSE(is_found(kernel, {}, 1)) << name;
  }
}

/// A plan that is not sound, and the first seed tried: one under which it was found, as a launch takes a second.
struct MutantPlan {
  const char* kernel;
  uint64_t first_seed;
};
class Mutant : public testing::TestWithParam<MutantPlan> {};

INSTANTIATE_TEST_SUITE_P(Plans, Mutant,
                         testing::Values(MutantPlan{"mutant-one-place", 3}, MutantPlan{"mutant-unsigned", 1}),
                         [](const testing::TestParamInfo<MutantPlan>& info) {
                           std::string name = info.param.kernel;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Decodes while a warp of the last CTA, which has no tile of any matrix, falls behind as far as it may. True if a launch
/// is reported, or gives other bits than a sound kernel.
bool fails_with_a_late_cta(const char* name, uint64_t first_seed, uint64_t num_seeds) {
  KernelUnderTest sound("micro-3");
  const std::vector<int32_t> prompt = sound.prompt(1);
  const DecodeResult expected = sound.decode(prompt, 2);
  KernelUnderTest kernel(name);
  kernel.emulation().check = true;  // and may stop anywhere
  kernel.emulation().delays_warps = true;
  kernel.emulation().goes_on_one_in = 1 << 16;
  kernel.emulation().delayed_cta = kernel.engine().library().descriptor().num_ctas - 1;
  try {
    for (uint64_t seed = first_seed; seed < first_seed + num_seeds; ++seed) {
      kernel.emulation().seed = seed;
      if (kernel.decode_from(0, prompt, 2).logits != expected.logits) return true;
    }
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

TEST_P(Mutant, IsFound) {
  EXPECT_TRUE(fails_with_a_late_cta(GetParam().kernel, GetParam().first_seed, 2 * kSeeds));
}

TEST(Mutants, AreFoundByTheirFault) {
  EXPECT_FALSE(fails_with_a_late_cta("micro-17", 10, 1));
}

/// A launch of two steps of two layers leaves the first tag in its vectors.
TEST(Fault, ALaunchOnTheWorkspaceOfAnotherIsFound) {
  KernelUnderTest kernel("micro-3");
  const std::vector<int32_t> prompt = kernel.prompt(3);
  const DecodeResult expected = kernel.decode(prompt, 4);
  kernel.decode(std::vector<int32_t>{prompt[1], prompt[0]}, 1);
  kernel.emulation().fault = {.kind = FaultKind::kKeepMemory};
  bool found = false;
  for (uint64_t seed = 1; seed <= kSeeds && !found; ++seed) {
    kernel.emulation().seed = seed;
    try {
      found = kernel.decode_from(0, prompt, 4).logits != expected.logits;
    } catch (const std::exception&) {
      found = true;
    }
  }
  EXPECT_TRUE(found);
}

TEST(Deadlock, SaysWhoWaitsForWhat) {
  KernelUnderTest kernel("micro-3");
  kernel.engine().set_num_ctas(2);  // the third CTA's outputs never come
  try {
    kernel.decode(kernel.prompt(2), 1);
    FAIL() << "expected a stall";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("kernel stalled: CTA"), std::string::npos) << error.what();
  }
  const std::string all = kernel.engine().library().functions().last_error();
  EXPECT_NE(all.find("deadlock"), std::string::npos) << all;
  EXPECT_NE(all.find("vector (step 0, phase 1"), std::string::npos) << all;
}

}  // namespace
}  // namespace soliton
