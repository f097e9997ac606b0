// Vectors are cleared neither while they are read nor too late, and as the kernel can.
#include <gtest/gtest.h>

#include "tests/generator/bad_plans.h"

namespace soliton {

const std::vector<BadPlan>& bad_clears() {
  static const std::vector<BadPlan> plans = {
      // Clearing. A step of the tiny model has 6 x 5 + 1 phases: qkv 0, attention 1, o 2, gate_up 3, down 4,
      // qkv 5.
      {.name = "NeverCleared",
       .rule = Rule::kNotCleared,
       .message = "heads: written in phases 1 and 6, expected a phase between that clears it",
       .damage = [](Plan& plan) { phase(plan, "gate_up").clears.clear(); }},
      {.name = "CandidatesNeverCleared",
       .rule = Rule::kNotCleared,
       .message = "candidates: written in phases 30 and 61, expected a phase between that clears it",
       .damage = [](Plan& plan) { phase(plan, "attention").first_layer_clears.clear(); },
       .also = {Rule::kClearedUnlike}},
      {.name = "ClearedOnlyInLayerZero",
       .rule = Rule::kNotCleared,
       .message = "post_attention: written in phases 2 and 7, expected a phase between that clears it",
       .damage =
           [](Plan& plan) { std::swap(phase(plan, "down").clears, phase(plan, "down").first_layer_clears); },
       .also = {Rule::kClearedUnlike}},
      {.name = "ClearedByItsReader",
       .rule = Rule::kClearedWhileRead,
       .message = "heads: cleared in phase 2, expected phase 3 or later: it is read in phase 2",
       .damage = [](Plan& plan) { move_clear(plan, "heads", "gate_up", "o"); },
       .also = {Rule::kClearedUnlike}},
      {.name = "CandidatesClearedByTheirReader",
       .rule = Rule::kClearedWhileRead,
       .message = "candidates: cleared in phase 31, expected phase 32 or later: it is read in phase 31",
       .damage =
           [](Plan& plan) {
             std::swap(phase(plan, "qkv").first_layer_clears, phase(plan, "attention").first_layer_clears);
           },
       .also = {Rule::kClearedUnlike}},
      {.name = "ClearedBeforeTheFirstRead",
       .rule = Rule::kClearedWhileRead,
       .message = "post_attention: cleared in phase 4 before anyone read what phase 2 wrote",
       .damage = [](Plan& plan) { read_instead(plan, "gate_up", "heads"); },
       .also = {Rule::kReadWithoutWait}},
      {.name = "ReadAgainAfterClearing",
       .rule = Rule::kClearedWhileRead,
       .message = "hidden: cleared in phase 6 and read in phase 8, written in phase 4",
       .damage = [](Plan& plan) { read_instead(plan, "gate_up", "hidden"); },
       .also = {Rule::kReadWithoutWait}},
      {.name = "ClearedTwoPhasesBeforeTheNextWrite",
       .rule = Rule::kClearedTooLate,
       .message = "qkv: cleared in phase 3, expected phase 2 or earlier: it is written in phase 5",
       .damage = [](Plan& plan) { move_clear(plan, "qkv", "o", "gate_up"); },
       .also = {Rule::kClearedUnlike}},
      {.name = "ClearedInThePhaseThatWrites",
       .rule = Rule::kClearedTooLate,
       .message = "ffn: cleared in phase 8, expected phase 5 or earlier: it is written in phase 8",
       .damage = [](Plan& plan) { move_clear(plan, "ffn", "qkv", "gate_up"); },
       .also = {Rule::kClearedUnlike}},
      {.name = "TwoVectorsClearedAtOnce",
       .rule = Rule::kClearedUnlike,
       .message = "gate_up: expected to clear one vector at most, got 2",
       .damage = [](Plan& plan) { move_clear(plan, "qkv", "o", "gate_up"); },
       .also = {Rule::kClearedTooLate}},
      {.name = "CandidatesClearedByAnotherPhase",
       .rule = Rule::kClearedUnlike,
       .message = "o: expected to clear 0 more in layer 0 (nothing), got 1 (candidates)",
       .damage =
           [](Plan& plan) {
             std::swap(phase(plan, "o").first_layer_clears, phase(plan, "attention").first_layer_clears);
           }},
      {.name = "CandidatesClearedTwice",
       .rule = Rule::kClearedUnlike,
       .message = "attention: expected to clear 1 more in layer 0 (candidates), got 2 (candidates)",
       .damage =
           [](Plan& plan) {
             phase(plan, "attention").first_layer_clears.push_back(index_of(plan.vectors, "candidates"));
           }},
  };
  return plans;
}

namespace {

/// A plan of one layer, whose step has 6 phases.
Plan one_layer() {
  ModelConfig model = shipped_model("tiny-stories");
  model.facts.num_layers = 1;
  return make_plan(model, shipped_gpu("cpu"));
}

/// What verify() says about when vectors are cleared, whichever phase the kernel can make do it.
std::string refused_distances(const Plan& plan) {
  std::string text;
  for (const Violation& violation : verify(plan)) {
    if (violation.rule == Rule::kClearedUnlike) continue;
    text += fmt::format("{}: {}\n", rule_name(violation.rule), violation.message);
  }
  return text;
}

// qkv is read in phase 1 and written in phase 6 again: phases 2 and 3 may clear it, 1 and 4 may not.
TEST(Verify, ClearsAreJudgedByDistance) {
  const auto cleared_in = [](const std::string& name) {
    Plan plan = one_layer();
    move_clear(plan, "qkv", "o", name);
    return refused_distances(plan);
  };
  EXPECT_EQ(
      cleared_in("attention"),
      "cleared while read: qkv: cleared in phase 1, expected phase 2 or later: it is read in phase 1\n");
  EXPECT_EQ(cleared_in("o"), "");
  EXPECT_EQ(cleared_in("gate_up"), "");
  EXPECT_EQ(
      cleared_in("down"),
      "cleared too late: qkv: cleared in phase 4, expected phase 3 or earlier: it is written in phase 6\n");
}

// Candidates are written in phases 5, 11 and 17, and read in phases 6 and 12.
TEST(Verify, ClearsInLayerZeroAreJudgedByDistance) {
  const auto cleared_in = [](const std::string& name) {
    Plan plan = one_layer();
    phase(plan, name).first_layer_clears.swap(phase(plan, "attention").first_layer_clears);
    return refused_distances(plan);
  };
  EXPECT_EQ(cleared_in("qkv"),
            "cleared while read: candidates: cleared in phase 6, expected phase 7 or later: it is read in "
            "phase 6\n");
  EXPECT_EQ(cleared_in("gate_up"),
            "cleared too late: candidates: cleared in phase 9, expected phase 7 or earlier: it is written in "
            "phase 11\n");
}

// Under the grid counter nothing is cleared: a plan may say what it likes about it.
TEST(Verify, CounterPlansNeedNoClears) {
  Plan plan = shipped_plan("tiny-stories", "cpu", {.sync = SyncMode::kCounter});
  for (PlanPhase& each : plan.phases) {
    each.clears.clear();
    each.first_layer_clears.clear();
  }
  EXPECT_EQ(refusals(plan), "");
  plan.sync = SyncMode::kSelfValidating;
  EXPECT_NE(refusals(plan), "");
}

}  // namespace
}  // namespace soliton
