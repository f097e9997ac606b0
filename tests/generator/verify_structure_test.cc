// Structure that other rules rely on: counts, indices, names, one phase for each matrix; barriers and pieces of memory,
// in the order in which the kernel knows them.
#include <gtest/gtest.h>

#include "tests/generator/bad_plans.h"

namespace soliton {

const std::vector<BadPlan>& bad_structure() {
  static const std::vector<BadPlan> plans = {
      {.name = "MatricesInAnotherOrder",
       .rule = Rule::kPieceMissing,
       .message = "matrices: expected o as number 1, got down",
       .damage =
           [](Plan& plan) {
             std::swap(plan.matrices[1], plan.matrices[3]);
             std::swap(phase(plan, "o").matrix, phase(plan, "down").matrix);
           }},
      {.name = "NoCard",
       .rule = Rule::kNumberOutOfRange,
       .message = "cards: expected 1 to 4, got 0",
       .damage = [](Plan& plan) { plan.cards.clear(); }},
      {.name = "AttentionDealtFromACta",
       .rule = Rule::kUnusedNumber,
       .message = "attention: first CTA: expected 0, which is not used, got 1",
       .damage = [](Plan& plan) { phase(plan, "attention").first_cta = 1; }},
      {.name = "WarpgroupsOfOneRow",
       .rule = Rule::kUnusedNumber,
       .message = "warpgroups: expected 0, which is not used, got 1",
       .damage = [](Plan& plan) { plan.warpgroups = true; }},
      {.name = "OutputThatThereIsNot",
       .rule = Rule::kNumberOutOfRange,
       .message = "down: output: expected 0 to 4, got 5",
       .damage = [](Plan& plan) { phase(plan, "down").output = static_cast<OutputKind>(5); }},
      {.name = "ModelWithoutKvHeads",
       .rule = Rule::kNumberOutOfRange,
       .message = "tiny-stories: num_kv_heads: expected an integer from 1 to 1024, got 0",
       .damage = [](Plan& plan) { plan.facts.num_kv_heads = 0; }},
      {.name = "NoTileSlot",
       .rule = Rule::kNumberOutOfRange,
       .message = "tile slots: expected 1 or more, got 0",
       .damage = [](Plan& plan) { plan.tile_slots = 0; }},
      {.name = "SplitsFromNoPages",
       .rule = Rule::kNumberOutOfRange,
       .message = "pages of a split of attention at least: expected 1 or more, got 0",
       .damage = [](Plan& plan) { plan.min_pages_per_split = 0; }},
      {.name = "RingTooSmallForKeysAndValues",
       .rule = Rule::kNumberOutOfRange,
       .message = "ring slots: expected 2 or more, got 1",
       .damage = [](Plan& plan) { plan.ring_slots = 1; }},
      {.name = "WarpsThatDoNotShareAPageEvenly",
       .rule = Rule::kNumberOutOfRange,
       .message = "consumer warps: expected 1, 2, 4, 8 or 16, got 3",
       .damage = [](Plan& plan) { plan.consumer_warps = 3; }},
      {.name = "NoWarps",
       .rule = Rule::kNumberOutOfRange,
       .message = "consumer warps: expected 1, 2, 4, 8 or 16, got 0",
       .damage = [](Plan& plan) { plan.consumer_warps = 0; }},
      {.name = "NoProducer",
       .rule = Rule::kNumberOutOfRange,
       .message = "producer warps: expected 1 with bulk copies, got 0",
       .damage = [](Plan& plan) { plan.producer_warps = 0; }},
      {.name = "TwoProducersOfBulkCopies",
       .rule = Rule::kNumberOutOfRange,
       .message = "producer warps: expected 1 with bulk copies, got 2",
       .damage = [](Plan& plan) { plan.producer_warps = 2; }},
      {.name = "MoreProducersThanSlots",
       .rule = Rule::kNumberOutOfRange,
       .message = "producer warps: expected 1 to 4, one of each slot at most, got 5",
       .damage =
           [](Plan& plan) {
             plan.copies = CopyKind::kLanes;
             plan.ring_slots = 4;
             plan.producer_warps = 5;
           }},
      {.name = "BulkCopiesOnACardWithout",
       .rule = Rule::kNumberOutOfRange,
       .message = "bulk copies: expected compute capability 90 or more, got 86",
       .damage =
           [](Plan& plan) {
             plan.limits.compute_capability = 86;
             plan.limits.emulated = false;
           }},
      {.name = "ReadsAVectorThatThereIsNot",
       .rule = Rule::kIndexOutOfRange,
       .message = "o: reads: expected an index of -1 to 5, got 6",
       .damage = [](Plan& plan) { phase(plan, "o").reads = 6; }},
      {.name = "MatrixThatThereIsNot",
       .rule = Rule::kIndexOutOfRange,
       .message = "down: matrix: expected an index of -1 to 4, got 5",
       .damage = [](Plan& plan) { phase(plan, "down").matrix = 5; },
       .also = {Rule::kMatrixUse}},
      {.name = "TwoVectorsOfOneName",
       .rule = Rule::kNameRepeated,
       .message = "qkv: expected one vector, got 2",
       .damage = [](Plan& plan) { vector(plan, "heads").name = "qkv"; }},
      {.name = "TwoPhasesOfOneMatrix",
       .rule = Rule::kMatrixUse,
       .message = "matrix qkv: expected one phase that uses it, got 2",
       .damage = [](Plan& plan) { phase(plan, "lm_head").matrix = 0; }},
      {.name = "PhaseWithoutMatrix",
       .rule = Rule::kMatrixUse,
       .message = "o: expected a matrix, got none",
       .damage = [](Plan& plan) { phase(plan, "o").matrix = -1; }},
      {.name = "AttentionWithAMatrix",
       .rule = Rule::kMatrixUse,
       .message = "attention: expected no matrix, got one",
       .damage = [](Plan& plan) { phase(plan, "attention").matrix = 0; }},
      {.name = "ChoiceInEveryLayer",
       .rule = Rule::kStepShape,
       .message = "lm_head: expected the last phase to choose a token, once, got a choice of every layer",
       .damage = [](Plan& plan) { phase(plan, "lm_head").layer_kind = 0; }},
      {.name = "NoAttention",
       .rule = Rule::kStepShape,
       .message = "step: expected one attention phase, got 0",
       .damage =
           [](Plan& plan) {
             std::erase_if(plan.phases, [](const PlanPhase& p) { return p.name == "attention"; });
           }},
      {.name = "BarrierMissing",
       .rule = Rule::kPieceMissing,
       .message = "barriers: expected one step_read, got 0",
       .damage =
           [](Plan& plan) {
             std::erase_if(plan.barriers, [](const PlanBarrier& b) { return b.name == "step_read"; });
           }},
      {.name = "BarrierTwice",
       .rule = Rule::kPieceMissing,
       .message = "barriers: expected one ended, got 2",
       .damage = [](Plan& plan) { plan.barriers.push_back(PlanBarrier(plan.barriers.back())); }},
      {.name = "BarrierThatNobodyKnows",
       .rule = Rule::kPieceMissing,
       .message = "barriers: expected no spare, got one",
       .damage = [](Plan& plan) { plan.barriers.push_back({.name = "spare"}); }},
      {.name = "NoCounters",
       .rule = Rule::kPieceMissing,
       .message = "workspace: expected one counters, got 0",
       .damage = [](Plan& plan) { plan.workspace.pop_back(); }},
      {.name = "RegionMissing",
       .rule = Rule::kPieceMissing,
       .message = "shared memory: expected one squares, got 0",
       .damage =
           [](Plan& plan) {
             std::erase_if(plan.shared, [](const PlanRegion& r) { return r.name == "squares"; });
           }},
      {.name = "RegionThatNobodyKnows",
       .rule = Rule::kPieceMissing,
       .message = "shared memory: expected no spare, got one",
       .damage = [](Plan& plan) { plan.shared.push_back({.name = "spare"}); }},
      // The kernel finds both by number.
      {.name = "BarriersInAnotherOrder",
       .rule = Rule::kPieceMissing,
       .message = "barriers: expected page_full as number 0, got page_empty",
       .damage = [](Plan& plan) { std::swap(barrier(plan, "page_full"), barrier(plan, "page_empty")); }},
      {.name = "LastBarriersInAnotherOrder",
       .rule = Rule::kPieceMissing,
       .message = "barriers: expected stopped as number 13, got ended",
       .damage = [](Plan& plan) { std::swap(barrier(plan, "stopped"), barrier(plan, "ended")); }},
      {.name = "RegionsInAnotherOrder",
       .rule = Rule::kPieceMissing,
       .message = "shared memory: expected x as number 1, got tiles",
       .damage = [](Plan& plan) { std::swap(shared(plan, "x"), shared(plan, "tiles")); }},
      {.name = "BarriersBeforeTheStatus",
       .rule = Rule::kPieceMissing,
       .message = "shared memory: expected status as number 10, got barriers",
       .damage = [](Plan& plan) { std::swap(shared(plan, "status"), shared(plan, "barriers")); }},
  };
  return plans;
}
}  // namespace soliton
