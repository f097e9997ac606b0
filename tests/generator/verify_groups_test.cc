// Mixtures whose rows are grouped by experts: what damaged plans are refused for.
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

Plan grouped_plan(int rows = 1024) {
  return shipped_plan("qwen3-30b-a3b", "h200", {.rows = rows});
}
PlanPhase& named(Plan& plan, const std::string& name) {
  return *std::find_if(plan.phases.begin(), plan.phases.end(),
                       [&](const PlanPhase& phase) { return phase.name == name; });
}

TEST(VerifyGroups, FindsPlansOfEveryNumberOfRowsSound) {
  for (const int rows : {256, 512, 1024}) {
    EXPECT_EQ(refusals(grouped_plan(rows)), "") << rows;
    // Biases, MXFP4, and columns that end within a slot of weights; a factor of each expert; integers.
    for (const char* name : {"gpt-oss-20b", "qwen3-30b-a3b-nvfp4", "qwen3-30b-a3b-gptq"}) {
      const Plan plan = shipped_plan(name, "h200", {.rows = rows});
      EXPECT_TRUE(plan.warpgroups) << name;
      EXPECT_EQ(refusals(plan), "") << name << ", " << rows;
    }
  }
}

TEST(VerifyGroups, GivesEveryBlockOfRowsAsManyCtas) {
  EXPECT_NE(shipped_plan("gpt-oss-20b", "h200", {.rows = 1}).num_ctas % row_blocks(1024), 0);
  for (const int rows : {512, 1024})
    EXPECT_EQ(shipped_plan("gpt-oss-20b", "h200", {.rows = rows}).num_ctas % row_blocks(rows), 0);
}

TEST(VerifyGroups, WantsRowsThatChooseBeforeTheyAreGrouped) {
  for (const char* name : {"choose", "group", "ungroup"}) {
    Plan plan = grouped_plan();
    plan.phases.erase(plan.phases.begin() + (&named(plan, name) - plan.phases.data()));
    EXPECT_NE(refusals(plan).find("gate_up: expected phases that choose and group rows before it"),
              std::string::npos)
        << name;
  }
}

TEST(VerifyGroups, WantsRoomForWhateverRowsChoose) {
  for (const char* name : {"choices", "grouped", "outputs", "ffn"}) {
    Plan plan = grouped_plan();
    for (PlanVector& vector : plan.vectors) {
      if (vector.name == name) vector.elements -= 32;
    }
    EXPECT_NE(refusals(plan).find(std::string(name) + ": expected"), std::string::npos) << name;
  }
}

TEST(VerifyGroups, WantsWhatPairsPutOutAddedUp) {
  const Plan sound = shipped_plan("qwen3-30b-a3b-gptq", "h200", {.rows = 8});
  EXPECT_EQ(refusals(sound), "");
  Plan plan = sound;
  plan.phases.erase(plan.phases.begin() + (&named(plan, "ungroup") - plan.phases.data()));
  EXPECT_NE(refusals(plan).find("gate_up: expected down behind it, and a phase that adds up"),
            std::string::npos);
  plan = sound;
  for (PlanVector& vector : plan.vectors) {
    if (vector.name == "outputs") vector.elements -= 32;
  }
  EXPECT_NE(refusals(plan).find("outputs: expected 524288 bytes"), std::string::npos);
}

TEST(VerifyGroups, WantsNoneWhereSingleWarpsMultiply) {
  Plan plan = shipped_plan("qwen3-30b-a3b", "h200", {.rows = 64});
  const PlanPhase choose = {.name = "choose",
                            .kind = PhaseKind::kChoose,
                            .reads = named(plan, "router").writes,
                            .waits_for = named(plan, "router").writes,
                            .writes = plan.squares};
  plan.phases.insert(plan.phases.begin() + (&named(plan, "gate_up") - plan.phases.data()), choose);
  EXPECT_NE(refusals(plan).find("choose: expected no groups of rows where there are none"),
            std::string::npos);
}

}  // namespace
}  // namespace soliton
