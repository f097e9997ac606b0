// Plans that are sound verify clean; every way of breaking one is refused for its own rule.
#include "generator/plan/verify.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/generator/bad_plans.h"

namespace soliton {

/// For the names of tests.
void PrintTo(const BadPlan& bad, std::ostream* out) {
  *out << bad.name;
}

namespace {

std::vector<BadPlan> all_bad_plans() {
  std::vector<BadPlan> all;
  for (const auto* table : {&bad_structure(), &bad_work(), &bad_shapes(), &bad_waits(), &bad_places(),
                            &bad_memory(), &bad_barriers()}) {
    all.insert(all.end(), table->begin(), table->end());
  }
  return all;
}

class VerifyRefuses : public testing::TestWithParam<BadPlan> {
 protected:
  /// The rules that the damaged plan breaks; `messages`: each as a line.
  std::set<Rule> broken(const std::string& model, const std::string& gpu, std::string& messages) const {
    Plan plan = shipped_plan(model, gpu, GetParam().choices);
    EXPECT_EQ(refusals(plan), "") << "sound before it is damaged";
    GetParam().damage(plan);
    std::set<Rule> rules;
    for (const Violation& violation : verify(plan)) {
      rules.insert(violation.rule);
      messages += violation.message + "\n";
    }
    return rules;
  }

  /// Nothing is refused that is not wrong. A piece of memory may be larger than what the damaged plan puts there.
  std::set<Rule> allowed() const {
    std::set<Rule> rules(GetParam().also.begin(), GetParam().also.end());
    rules.insert(Rule::kPieceTooLarge);
    rules.insert(GetParam().rule);
    return rules;
  }
};

TEST_P(VerifyRefuses, TinyModelWithTheReason) {
  std::string messages;
  const std::string gpu = GetParam().choices.num_ctas > 0 ? "h200" : "cpu";
  const std::set<Rule> rules = broken("tiny-stories", gpu, messages);
  EXPECT_TRUE(rules.contains(GetParam().rule)) << messages;
  for (const Rule rule : rules) EXPECT_TRUE(allowed().contains(rule)) << rule_name(rule) << "\n" << messages;
  EXPECT_NE(("\n" + messages).find("\n" + GetParam().message + "\n"), std::string::npos)
      << "expected: " << GetParam().message << "\ngot:\n"
      << messages;
}

TEST_P(VerifyRefuses, LargeModel) {
  std::string messages;
  const std::set<Rule> rules = broken("llama-3.1-8b", "h200", messages);
  EXPECT_TRUE(rules.contains(GetParam().rule)) << messages;
  for (const Rule rule : rules) EXPECT_TRUE(allowed().contains(rule)) << rule_name(rule) << "\n" << messages;
}

INSTANTIATE_TEST_SUITE_P(Plan, VerifyRefuses, testing::ValuesIn(all_bad_plans()),
                         [](const auto& info) { return info.param.name; });

constexpr int kNumRules = static_cast<int>(Rule::kKernelUnlike) + 1;

TEST(Verify, EveryRuleHasABadPlan) {
  std::set<Rule> rules;
  for (const BadPlan& bad : all_bad_plans()) rules.insert(bad.rule);
  rules.insert(Rule::kKernelUnlike);  // of sound plans: see sweep_test.cc
  EXPECT_EQ(rules.size(), static_cast<size_t>(kNumRules));
}

TEST(Verify, EveryRuleHasItsOwnName) {
  std::set<std::string> names;
  for (int rule = 0; rule < kNumRules; ++rule) names.insert(rule_name(static_cast<Rule>(rule)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumRules));
  EXPECT_STREQ(rule_name(Rule::kNumberOutOfRange), "number out of range");
  EXPECT_STREQ(rule_name(Rule::kPageSkipped), "page skipped");
  EXPECT_STREQ(rule_name(Rule::kWeightsOverlap), "weights overlap");
  EXPECT_STREQ(rule_name(Rule::kKernelUnlike), "kernel unlike the plan");
}

TEST(Verify, ShippedModelsAreSound) {
  for (const char* model : kShippedModels) {
    for (const char* gpu : kShippedGpus) {
      EXPECT_EQ(refusals(shipped_plan(model, gpu)), "") << model << " on " << gpu;
    }
  }
  EXPECT_EQ(refusals(shipped_plan("tiny-stories", "cpu")), "");
}

class VerifyAccepts : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(VerifyAccepts, AnyCountOfCtasAndWarpsAndBothModes) {
  const auto [model, gpu] = GetParam();
  for (const int ctas : {1, 2, 3, 7, 128, 132}) {
    for (const int warps : {2, 4, 8}) {
      for (const SyncMode sync : {SyncMode::kSelfValidating, SyncMode::kCounter}) {
        EXPECT_EQ(
            refusals(shipped_plan(model, gpu, {.num_ctas = ctas, .consumer_warps = warps, .sync = sync})), "")
            << ctas << " CTAs, " << warps << " warps, sync " << static_cast<int>(sync);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plan, VerifyAccepts,
                         testing::Combine(testing::ValuesIn(kShippedModels),
                                          testing::ValuesIn(kShippedGpus)));

TEST(Verify, RandomModelsAreSound) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    EXPECT_EQ(refusals(make_plan(random.model, shipped_gpu("h200"), random.choices)), "")
        << random.describe();
  }
}

// What is refused at a limit plus one is accepted at the limit.
TEST(Verify, LimitsThemselvesAreFine) {
  Plan plan = shipped_plan("tiny-stories", "cpu", {.consumer_warps = 8});
  plan.limits.max_shared_bytes_per_block = static_cast<int>(plan.shared_bytes());
  plan.limits.max_threads_per_block = plan.threads();
  plan.limits.registers_per_sm = plan.registers_per_thread * plan.threads();
  plan.limits.max_registers_per_thread = plan.registers_per_thread;
  plan.limits.num_sms = plan.num_ctas;
  plan.window = plan.ring_slots;
  for (PlanPhase& each : plan.phases) {
    if (each.window > 0) each.window = plan.ring_slots;
  }
  EXPECT_EQ(refusals(plan), "");
}

// Six layers of five phases: each of these is wrong in all of them.
TEST(Verify, WhatIsWrongInEveryLayerIsReportedOnce) {
  const auto lines = [](const Plan& plan) {
    const std::string text = refusals(plan);
    return std::count(text.begin(), text.end(), '\n');
  };
  Plan plan = shipped_plan("tiny-stories", "cpu");
  phase(plan, "gate_up").waits_for = -1;
  EXPECT_EQ(lines(plan), 1) << refusals(plan);
  plan = shipped_plan("tiny-stories", "cpu");
  matrix(plan, "o").offset -= 16;
  EXPECT_EQ(lines(plan), 1) << refusals(plan);
  plan = shipped_plan("tiny-stories", "cpu", {.sync = SyncMode::kCounter});
  read_and_await(plan, "gate_up", "hidden");
  EXPECT_EQ(lines(plan), 1) << refusals(plan);
}

TEST(Verify, ListsAllThatIsWrong) {
  Plan plan = shipped_plan("tiny-stories", "cpu");
  --phase(plan, "qkv").runs.back().count;
  plan.window = plan.ring_slots + 1;
  --plan.weight_bytes;
  EXPECT_EQ(refusals(plan),
            "page skipped: qkv: tile 31: expected one CTA that reads its pages, got none\n"
            "dealt unlike the kernel: qkv: CTA 3: expected the tiles that the kernel deals it, 8 from 3 by "
            "4, got 7 "
            "from 3 by 4\n"
            "weights overlap: packed weights: lm_head[6] ends at byte 10485760, expected at most 10485759\n"
            "parity two ahead: window: expected 1 to 13 pages in flight, one per slot, got 14\n"
            "parity two ahead: qkv: expected 14 pages in flight, got 4\n"
            "parity two ahead: o: expected 14 pages in flight, got 4\n"
            "parity two ahead: gate_up: expected 14 pages in flight, got 4\n"
            "parity two ahead: down: expected 14 pages in flight, got 4\n"
            "parity two ahead: lm_head: expected 14 pages in flight, got 4\n");
}

}  // namespace
}  // namespace soliton
