// The verifier's rules for plans of several rows: each is broken in turn.
#include <gtest/gtest.h>

#include <functional>

#include "generator/plan/verify.h"
#include "models/error.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

struct RowsMutant {
  const char* name;
  Rule rule;
  std::function<void(Plan&)> change;
};

void PrintTo(const RowsMutant& mutant, std::ostream* out) {
  *out << mutant.name;
}

class VerifyRows : public testing::TestWithParam<RowsMutant> {};

INSTANTIATE_TEST_SUITE_P(
    Mutants, VerifyRows,
    testing::Values(
        RowsMutant{"o_before_attention", Rule::kWaitTooEarly,
                   [](Plan& plan) { std::swap(named(plan.phases, "attention"), named(plan.phases, "o")); }},
        RowsMutant{
            "reads_what_comes_later", Rule::kWaitTooEarly,
            [](Plan& plan) { named(plan.phases, "gate_up").reads = named(plan.phases, "down").writes; }},
        RowsMutant{"reads_what_it_writes", Rule::kReadWritten,
                   [](Plan& plan) { named(plan.phases, "o").writes = named(plan.phases, "o").reads; }},
        RowsMutant{"queries_too_small", Rule::kVectorShape,
                   [](Plan& plan) { named(plan.vectors, "qkv").elements /= 2; }},
        RowsMutant{"candidates_of_one_row", Rule::kVectorShape,
                   [](Plan& plan) { named(plan.vectors, "candidates").elements = plan.num_ctas + 1; }},
        RowsMutant{"norm_twice", Rule::kNormRow, [](Plan& plan) { named(plan.phases, "down").norm = 1; }},
        RowsMutant{"normed_residual", Rule::kInputKind,
                   [](Plan& plan) { named(plan.phases, "o").input = InputKind::kNormed; }},
        RowsMutant{"unpadded", Rule::kMatrixShape,
                   [](Plan& plan) { named(plan.matrices, "down").padded += 32; }},
        RowsMutant{"columns_of_another_model", Rule::kMatrixShape,
                   [](Plan& plan) { --named(plan.matrices, "down").columns; }},
        RowsMutant{"a_tile_that_no_card_holds", Rule::kMatrixShape,
                   [](Plan& plan) { --named(plan.matrices, "down").card_tiles; }},
        RowsMutant{"matrix_that_stands_once", Rule::kMatrixShape,
                   [](Plan& plan) { named(plan.matrices, "down").layer_kind = 1; }},
        RowsMutant{"a_candidate_more", Rule::kVectorShape,
                   [](Plan& plan) { ++named(plan.vectors, "candidates").elements; }},
        RowsMutant{
            "candidates_among_the_squares", Rule::kVectorShape,
            [](Plan& plan) { named(plan.phases, "lm_head").writes = index_of(plan.vectors, "squares"); }},
        RowsMutant{"waits_for_what_it_does_not_read", Rule::kReadWithoutWait,
                   [](Plan& plan) { named(plan.phases, "o").waits_for = -1; }},
        RowsMutant{"signed_under_the_counter", Rule::kUnusedNumber,
                   [](Plan& plan) { named(plan.vectors, "heads").signatures = plan.num_ctas; }},
        RowsMutant{"more_query_tiles_than_lie_beside_new_tokens", Rule::kPieceTooSmall,
                   [](Plan& plan) { plan.max_query_tiles = 1000; }},
        RowsMutant{"more_query_tiles_than_a_head_has", Rule::kNumberOutOfRange,
                   [](Plan& plan) { plan.max_query_tiles = plan.qkv_layout().query_tiles() + 1; }},
        RowsMutant{"warps_of_96_dims", Rule::kNumberOutOfRange, [](Plan& plan) { plan.warp_dims = 96; }},
        RowsMutant{"registers_of_a_card_that_does_not_share_them", Rule::kNumberOutOfRange,
                   [](Plan& plan) { plan.limits.compute_capability = 80; }},
        RowsMutant{"twelve_rows", Rule::kNumberOutOfRange, [](Plan& plan) { plan.rows = 12; }},
        RowsMutant{"ring_without_room_for_values", Rule::kNumberOutOfRange,
                   [](Plan& plan) { plan.ring_slots = 1; }},
        RowsMutant{"no_query_tile", Rule::kNumberOutOfRange, [](Plan& plan) { plan.max_query_tiles = 0; }},
        RowsMutant{"self_validating", Rule::kWaitUnsatisfied,
                   [](Plan& plan) { plan.sync = SyncMode::kSelfValidating; }},
        RowsMutant{"tiles_too_small", Rule::kPieceTooSmall,
                   [](Plan& plan) { named(plan.shared, "tiles").bytes /= 2; }},
        RowsMutant{"input_too_small", Rule::kPieceTooSmall,
                   [](Plan& plan) { named(plan.shared, "input").bytes /= 2; }},
        RowsMutant{"worker_does_not_release", Rule::kBarrierCount,
                   [](Plan& plan) { --named(plan.barriers, "page_empty").arrivals; }},
        RowsMutant{"one_item_done", Rule::kParityTwoAhead,
                   [](Plan& plan) { named(plan.barriers, "item_done").slots = 1; }},
        RowsMutant{"appends_in_no_phase", Rule::kAppendedElsewhere,
                   [](Plan& plan) { named(plan.phases, "o").appends = false; }},
        RowsMutant{"appends_while_others_attend", Rule::kAppendedElsewhere,
                   [](Plan& plan) {
                     std::swap(named(plan.phases, "o").appends, named(plan.phases, "attention").appends);
                   }},
        RowsMutant{"appends_a_phase_later", Rule::kAppendedElsewhere,
                   [](Plan& plan) {
                     std::swap(named(plan.phases, "o").appends, named(plan.phases, "gate_up").appends);
                   }},
        RowsMutant{"appends_twice", Rule::kAppendedElsewhere,
                   [](Plan& plan) { named(plan.phases, "down").appends = true; }},
        RowsMutant{"no_page_of_a_phase_in_flight", Rule::kParityTwoAhead,
                   [](Plan& plan) { named(plan.phases, "down").window = 0; }},
        RowsMutant{"more_pages_of_a_phase_than_the_plan_has", Rule::kParityTwoAhead,
                   [](Plan& plan) { named(plan.phases, "down").window = plan.window + 1; }},
        RowsMutant{"no_page_of_the_cache_in_flight", Rule::kParityTwoAhead,
                   [](Plan& plan) { named(plan.phases, "attention").window = 0; }},
        RowsMutant{"more_pages_of_the_cache_than_the_ring", Rule::kParityTwoAhead,
                   [](Plan& plan) { named(plan.phases, "attention").window = plan.ring_slots + 1; }},
        RowsMutant{"barriers_in_another_order", Rule::kPieceMissing,
                   [](Plan& plan) {
                     std::swap(named(plan.barriers, "tiles_full"), named(plan.barriers, "tiles_empty"));
                   }},
        RowsMutant{"regions_in_another_order", Rule::kPieceMissing,
                   [](Plan& plan) { std::swap(named(plan.shared, "input"), named(plan.shared, "tiles")); }},
        RowsMutant{"no_barrier_that_ends", Rule::kPieceMissing,
                   [](Plan& plan) {
                     std::erase_if(plan.barriers, [](const PlanBarrier& b) { return b.name == "ended"; });
                   }},
        RowsMutant{"no_room_for_factors", Rule::kPieceMissing,
                   [](Plan& plan) {
                     std::erase_if(plan.shared, [](const PlanRegion& r) { return r.name == "factors"; });
                   }},
        RowsMutant{"finishers_that_do_not_arrive", Rule::kBarrierCount,
                   [](Plan& plan) { --named(plan.barriers, "step_known").arrivals; }}),
    [](const testing::TestParamInfo<RowsMutant>& info) { return std::string(info.param.name); });

TEST_P(VerifyRows, IsRefused) {
  for (const int rows : {8, 64}) {
    Plan plan = shipped_plan("tiny-stories", "h200", {.rows = rows});
    ASSERT_TRUE(verify(plan).empty());
    GetParam().change(plan);
    const std::vector<Violation> violations = verify(plan);
    EXPECT_TRUE(std::any_of(violations.begin(), violations.end(),
                            [](const Violation& violation) { return violation.rule == GetParam().rule; }))
        << rows << " rows: " << (violations.empty() ? "nothing refused" : violations[0].message);
  }
}

// Where heads are normed, the phase that does it stands between qkv and attention.
class VerifyNormedRows : public testing::TestWithParam<RowsMutant> {};

INSTANTIATE_TEST_SUITE_P(
    Mutants, VerifyNormedRows,
    testing::Values(RowsMutant{"attention_before_heads_are_normed", Rule::kStepShape,
                               [](Plan& plan) {
                                 std::swap(named(plan.phases, "attention"), named(plan.phases, "norm_heads"));
                               }},
                    RowsMutant{"heads_are_not_normed", Rule::kStepShape,
                               [](Plan& plan) {
                                 named(plan.phases, "qkv").writes = named(plan.phases, "attention").reads;
                                 std::erase_if(plan.phases, [](const PlanPhase& phase) {
                                   return phase.name == "norm_heads";
                                 });
                               }},
                    RowsMutant{"heads_are_normed_twice", Rule::kStepShape,
                               [](Plan& plan) {
                                 PlanPhase again = named(plan.phases, "norm_heads");
                                 again.name = "norm_heads_again";
                                 plan.phases.insert(plan.phases.begin() + 2, again);
                               }},
                    RowsMutant{"a_model_that_norms_no_heads", Rule::kStepShape,
                               [](Plan& plan) { plan.facts.head_norm = 0; }},
                    RowsMutant{"attention_reads_unnormed_heads", Rule::kWaitTooEarly,
                               [](Plan& plan) {
                                 named(plan.phases, "attention").reads = named(plan.phases, "qkv").writes;
                               }},
                    RowsMutant{"norms_what_nobody_wrote", Rule::kWaitTooEarly,
                               [](Plan& plan) {
                                 named(plan.phases, "norm_heads").reads = named(plan.phases, "o").writes;
                               }},
                    RowsMutant{"norms_in_place", Rule::kReadWritten,
                               [](Plan& plan) {
                                 named(plan.phases, "norm_heads").writes =
                                     named(plan.phases, "norm_heads").reads;
                               }},
                    RowsMutant{"floats_of_half_the_rows", Rule::kVectorShape,
                               [](Plan& plan) { named(plan.vectors, "unnormed").elements /= 2; }},
                    RowsMutant{"queries_too_small", Rule::kVectorShape,
                               [](Plan& plan) { named(plan.vectors, "qkv").elements /= 2; }}),
    [](const testing::TestParamInfo<RowsMutant>& info) { return std::string(info.param.name); });

TEST_P(VerifyNormedRows, IsRefused) {
  for (const int rows : {8, 64}) {
    Plan plan = shipped_plan("qwen3-0.6b", "h200", {.rows = rows});
    ASSERT_EQ(refusals(plan), "");
    GetParam().change(plan);
    const std::vector<Violation> violations = verify(plan);
    EXPECT_TRUE(std::any_of(violations.begin(), violations.end(),
                            [](const Violation& violation) { return violation.rule == GetParam().rule; }))
        << rows << " rows: " << (violations.empty() ? "nothing refused" : violations[0].message);
  }
}

TEST(VerifyRows, RandomModelsThatNormHeadsHaveSoundPlans) {
  int num_plans = 0;
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    if (random.model.facts.head_norm == 0) continue;
    for (const int rows : {8, 32}) {
      try {
        const Plan plan = make_plan(random.model, shipped_gpu("h200"), {.rows = rows});
        EXPECT_EQ(refusals(plan), "") << random.describe() << ", " << rows << " rows";
        ++num_plans;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kMismatch);  // too wide for a CTA's shared memory
      }
    }
  }
  EXPECT_GT(num_plans, kNumRandomModels / 8);
}

}  // namespace
}  // namespace soliton
