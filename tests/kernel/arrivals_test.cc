// What the emulation counted at the barriers of whole kernels is what the plan says: as many arrivals, by the warps
// that layout/ names.
#include <bit>
#include <map>

#include "kernel/kernel_cases.h"
#include "kernel/kernel_fixture.h"
#include "layout/one_row.h"
#include "layout/several_rows.h"

namespace soliton {
namespace {

std::vector<BarrierRule> rules_of(const KernelPlan& plan) {
  const auto list = [](const auto& rules) { return std::vector<BarrierRule>(rules.begin(), rules.end()); };
  return plan.rows == 1 ? list(one_row::barrier_rules(plan)) : list(rows::barrier_rules(plan));
}

/// Warps that arrive, each at least once in a launch: producers take pages in turn, and so do workers where one hands
/// parts over, of which some may have had none.
bool are_arriving(int warps, const KernelPlan& plan, const BarrierRule& rule) {
  const std::string name = rule.name;
  if (name == "page_full") return warps == plan.producer_warps;
  if (name == "parts_full") return warps <= plan.consumer_warps;
  return warps == (rule.arrivers == Arrivers::kWorkingLanes ? plan.working_warps()
                                                            : count_arrivals(plan, rule.arrivers));
}

class Arrivals : public KernelCases {};

TEST_P(Arrivals, AreThoseOfThePlan) {
  KernelUnderTest kernel(GetParam());
  const int kernels = kernel.engine().library().num_kernels();
  const KernelPlan& plan = *kernel.engine().library().descriptor(kernels - 1).plan;
  kernel.fill(kernel.prompt(70));
  kernel.decode_from(70, kernel.prompt(plan.rows == 1 ? 1 : 11), 3);
  const std::vector<BarrierRule> rules = rules_of(plan);
  ASSERT_EQ(plan.num_barriers, static_cast<int>(rules.size()));
  const std::vector<BarrierCount>& counts = kernel.barrier_counts();
  size_t next = 0;
  for (int cta = 0; cta < plan.num_ctas; ++cta) {
    for (int set = 0; set < plan.num_barriers; ++set) {
      SCOPED_TRACE(plan.barriers[set].name);
      EXPECT_STREQ(plan.barriers[set].name, rules[set].name);
      uint64_t warps = 0;
      for (int slot = 0; slot < plan.barriers[set].slots; ++slot, ++next) {
        ASSERT_LT(next, counts.size());
        const BarrierCount& count = counts[next];
        EXPECT_EQ(count.cta, cta);
        EXPECT_EQ(count.offset, plan.barrier_offset(set) + slot * kBarrierBytes);
        EXPECT_EQ(count.expected, plan.barriers[set].arrivals);
        EXPECT_EQ(count.arrivals / count.expected, count.phases);
        warps |= count.warps;
      }
      if (warps != 0) {
        EXPECT_TRUE(are_arriving(std::popcount(warps), plan, rules[set])) << std::popcount(warps);
      }
    }
  }
  EXPECT_EQ(next, counts.size());
}

INSTANTIATE_TEST_SUITE_P(Kernels, Arrivals,
                         testing::Values("micro-3", "plain-4-split", "plain-4-split-lanes",
                                         "plain-4-rows8-lanes", "micro-3-rows8", "plain-4-rows8",
                                         "plain-4-rows32"));

}  // namespace
}  // namespace soliton
