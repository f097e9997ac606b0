// Kernel plans: shared memory and barriers of every shipped plan stand as layout/one_row.h and layout/several_rows.h say,
// apart from each other; and what is worked out from a plan.
#include "layout/kernel_plan.h"

#include <gtest/gtest.h>

#include "generated/tiny-stories-cpu/plan.h"
#include "layout/library.h"
#include "layout/one_row.h"
#include "layout/several_rows.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

/// Do the regions stand in turn, aligned and large enough, with nothing behind the barriers?
template <class Rules>
constexpr bool holds_regions(const KernelPlan& plan, const Rules& rules) {
  int end = 0;
  int i = 0;
  for (const RegionRule& rule : rules) {
    const Region& region = plan.regions[i++];
    if (region.offset < end || region.offset % rule.alignment != 0 || region.bytes < rule.bytes) return false;
    end = region.offset + region.bytes;
  }
  return i == plan.num_regions && i <= kMaxRegions && end == plan.shared_bytes();
}

/// Do the barriers count just those who arrive, in as many slots as anybody may be ahead, and fit their region?
template <class Rules>
constexpr bool holds_barriers(const KernelPlan& plan, const Rules& rules) {
  int i = 0;
  for (const BarrierRule& rule : rules) {
    const BarrierSet& set = plan.barriers[i++];
    if (set.slots != rule.slots || rule.slots != rule.lead) return false;
    if (set.arrivals != count_arrivals(plan, rule.arrivers) || set.by_warps != by_warps(plan, rule.arrivers))
      return false;
  }
  return i == plan.num_barriers && i <= kMaxBarriers && plan.barrier_offset(i) == plan.shared_bytes();
}

constexpr bool is_sound(const KernelPlan& plan) {
  if (plan.rows == 1) {
    return holds_regions(plan, one_row::region_rules(plan)) &&
           holds_barriers(plan, one_row::barrier_rules(plan));
  }
  return holds_regions(plan, rows::region_rules(plan)) && holds_barriers(plan, rows::barrier_rules(plan));
}

// The compiler sees what the kernel will see.
static_assert(is_sound(generated::kDecodeNumbers));
static_assert(is_sound(generated::kDecodeRows8Numbers));

/// The plan with something else about one of its pieces.
template <class Change>
constexpr bool is_sound_after(KernelPlan plan, const Change& change) {
  change(plan);
  return is_sound(plan);
}
static_assert(!is_sound_after(generated::kDecodeNumbers, [](KernelPlan& p) { p.regions[1].offset -= 16; }));
static_assert(!is_sound_after(generated::kDecodeNumbers, [](KernelPlan& p) { p.regions[3].bytes -= 16; }));
static_assert(!is_sound_after(generated::kDecodeNumbers, [](KernelPlan& p) { --p.num_regions; }));
static_assert(!is_sound_after(generated::kDecodeNumbers, [](KernelPlan& p) { ++p.barriers[2].arrivals; }));
static_assert(!is_sound_after(generated::kDecodeRows8Numbers,
                              [](KernelPlan& p) { p.regions[2].offset -= 16; }));
static_assert(!is_sound_after(generated::kDecodeRows8Numbers, [](KernelPlan& p) { --p.barriers[9].slots; }));

/// Those that are shipped, and others of both kinds.
TEST(KernelPlan, RegionsAndBarriersOfEveryShippedPlanAreApart) {
  int num_plans = 0;
  for (const char* model : {"tiny-stories", "tiny-stories-gptq", "llama-3.2-1b", "llama-3.2-3b",
                            "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-8b-gptq", "llama-3.1-8b-gptq-lm-head",
                            "llama-3.1-70b-gptq", "qwen2.5-1.5b", "qwen3-0.6b"}) {
    for (const char* gpu : {"h200", "h100", "cpu"}) {
      const ModelConfig config = shipped_model(model);
      if (std::string(gpu) == "cpu" && !config.name.starts_with("tiny")) continue;
      for (const int rows : {1, 8, 16, 32, 64, 128, 256}) {
        const Plan plan = make_plan(config, shipped_gpu(gpu), {.rows = rows});
        const PlannedKernel kernel(plan);
        EXPECT_TRUE(is_sound(*kernel)) << model << " on " << gpu << ", " << rows << " rows";
        EXPECT_EQ(kernel->shared_bytes(), plan.shared_bytes());
        ++num_plans;
      }
    }
  }
  EXPECT_GE(num_plans, 100);
}

// Scores of four heads, k and v of each unit as pairs of f16, an angle for each pair of dims unless heads are normed
// first; and room for a histogram.
TEST(KernelPlan, ATokenHasRoomForWhatIsKeptOfIt) {
  KernelPlan plan;
  plan.num_ctas = 3;
  plan.model = {.num_heads = 16, .num_kv_heads = 4, .head_dim = 128};
  const auto layout = [&] { return one_row::token_layout(plan); };
  EXPECT_EQ(plan.attention_units(), 2);
  EXPECT_EQ(layout().new_token, 16);
  EXPECT_EQ(layout().rotations, 16 + 2 * 128 * 4);
  EXPECT_EQ(layout().bytes, 16 + 2 * 128 * 4 + 64 * 8);
  plan.model.kv_parts = 2;
  EXPECT_EQ(layout().rotations, 16 + 2 * 2 * 128 * 4);
  plan.model.head_norm = true;
  EXPECT_EQ(layout().bytes, layout().rotations);
  plan.model = {.num_heads = 4, .num_kv_heads = 1, .head_dim = 64};
  EXPECT_EQ(layout().rotations, 16 + 64 * 4);
  EXPECT_EQ(layout().bytes, 2 * 128 * 4) << "a histogram of two words for each of 128 bins";
}

// Pages in flight are the plan's: of matrices and of the cache, and none of phases that read neither.
TEST(KernelPlan, PhasesTakeTheWindowsOfThePlan) {
  static constexpr Phase kPhases[] = {{.name = "qkv", .kind = PhaseKind::kMatrix},
                                      {.name = "attention", .kind = PhaseKind::kAttention},
                                      {.name = "o", .kind = PhaseKind::kMatrix, .appends = true},
                                      {.name = "norm_heads", .kind = PhaseKind::kNormHeads}};
  constexpr KernelPlan kPlan = with_phases(
      [] {
        KernelPlan plan;
        plan.window = 3;
        plan.kv_window = 6;
        return plan;
      }(),
      kPhases);
  EXPECT_EQ(kPlan.num_phases, 4);
  EXPECT_EQ(kPlan.window_of(kPlan.phases[0]), 3);
  EXPECT_EQ(kPlan.window_of(kPlan.phases[1]), 6);
  EXPECT_EQ(kPlan.window_of(kPlan.phases[2]), 3);
  EXPECT_EQ(kPlan.window_of(kPlan.phases[3]), 0);
  EXPECT_TRUE(kPlan.phases[2].appends);
}

// Nobody streams with a window of 0.
TEST(KernelPlan, ShippedNumbersHaveWindows) {
  for (const KernelPlan* plan : {&generated::kDecodeNumbers, &generated::kDecodeRows8Numbers}) {
    EXPECT_GE(plan->window, 1) << plan->rows;
    EXPECT_LE(plan->window, plan->ring_slots) << plan->rows;
    EXPECT_GE(plan->kv_window, 1) << plan->rows;
    EXPECT_LE(plan->kv_window, plan->ring_slots) << plan->rows;
  }
}

TEST(KernelPlan, BarriersOfASetStandInTurn) {
  const KernelPlan& plan = generated::kDecodeNumbers;
  const int first = plan.regions[plan.num_regions - 1].offset;
  EXPECT_EQ(plan.barrier_offset(0), first);
  EXPECT_EQ(plan.barrier_offset(1), first + 8 * plan.ring_slots);
  EXPECT_EQ(plan.barrier_offset(2), first + 16 * plan.ring_slots);
  EXPECT_EQ(plan.barrier_offset(3), first + 16 * plan.ring_slots + 8 * plan.tile_slots);
}

// 128 CTAs take 2 MiB a round. A card of 4.6e12 bytes a second has them 3.68e12 for it.
TEST(KernelPlan, PagesAreBroughtAheadAtAShareOfTheCardsRate) {
  constexpr auto kNs = [](int num_ctas, double rate) {
    Descriptor kernel{};
    kernel.num_ctas = num_ctas;
    return prefetch_ns(kernel, {.read_bytes_per_s = rate});
  };
  static_assert(kNs(128, 4.6e12) == 570);
  static_assert(kNs(128, 2.3e12) == 1140);
  static_assert(kNs(64, 4.6e12) == 285);
  static_assert(kNs(4, 1e9) == 81920);  // the emulation's card of 4 CTAs
  EXPECT_EQ(kNs(132, 4.6e12), 588u);
}

TEST(KernelPlan, DescriptorsSayWhatTheKernelNeeds) {
  constexpr Descriptor kOne = describe(generated::kModel, generated::kDecodeNumbers);
  constexpr Descriptor kEight = describe(generated::kModel, generated::kDecodeRows8Numbers);
  static_assert(kOne.rows == 1 && kEight.rows == 8);
  static_assert(kOne.max_query_tiles == 0 && kOne.resident_tokens == 0);
  static_assert(kEight.max_query_tiles >= 1 && kEight.resident_tokens >= kKvPageTokens);
  for (const auto& [descriptor, plan] :
       {std::pair(&kOne, &generated::kDecodeNumbers), std::pair(&kEight, &generated::kDecodeRows8Numbers)}) {
    EXPECT_EQ(descriptor->model, &generated::kModel);  // stated once
    EXPECT_EQ(descriptor->plan, plan);
    EXPECT_EQ(descriptor->num_ctas, plan->num_ctas);
    EXPECT_EQ(descriptor->threads_per_cta, plan->threads());
    EXPECT_EQ(descriptor->shared_bytes, plan->shared_bytes());
    EXPECT_EQ(descriptor->workspace_bytes, plan->workspace_bytes);
  }
}

}  // namespace
}  // namespace soliton
