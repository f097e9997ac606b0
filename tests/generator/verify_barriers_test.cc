// Barriers complete with just their arrivals, and nobody gets two phases away from one; the ring holds what is in flight.
#include <gtest/gtest.h>

#include "tests/generator/bad_plans.h"

namespace soliton {

const std::vector<BadPlan>& bad_barriers() {
  static const std::vector<BadPlan> plans = {
      {.name = "InputReportedIntoOneBarrier",
       .rule = Rule::kParityTwoAhead,
       .message = "input_read: a thread may be 2 uses ahead, expected as many barriers, got 1",
       .damage = [](Plan& plan) { barrier(plan, "input_read").slots = 1; }},
      {.name = "ProducerAheadOfItsRing",
       .rule = Rule::kParityTwoAhead,
       .message = "page_full: expected threads up to 13 uses ahead, got 14",
       .damage = [](Plan& plan) { barrier(plan, "page_full").lead = plan.ring_slots + 1; }},
      {.name = "PhaseWithAWindowOfItsOwn",
       .rule = Rule::kParityTwoAhead,
       .message = "o: expected 4 pages in flight, got 1",
       .damage = [](Plan& plan) { phase(plan, "o").window = 1; }},
      {.name = "WindowLargerThanTheRing",
       .rule = Rule::kParityTwoAhead,
       .message = "window: expected 1 to 13 pages in flight, one per slot, got 14",
       .damage = [](Plan& plan) { plan.window = plan.ring_slots + 1; }},
      {.name = "MoreInFlightWhileItWaits",
       .rule = Rule::kParityTwoAhead,
       .message = "window of a CTA that waits: expected 1 to 4, got 5",
       .damage = [](Plan& plan) { plan.waiting_window = plan.window + 1; }},
      {.name = "NothingInFlightWhileItWaits",
       .rule = Rule::kParityTwoAhead,
       .message = "window of a CTA that waits: expected 1 to 4, got 0",
       .damage = [](Plan& plan) { plan.waiting_window = 0; }},
      {.name = "NoPageInFlight",
       .rule = Rule::kParityTwoAhead,
       .message = "window: expected 1 to 13 pages in flight, one per slot, got 0",
       .damage = [](Plan& plan) { plan.window = 0; }},
      {.name = "InputReportedIntoOneBarrierOnPurpose",
       .rule = Rule::kParityTwoAhead,
       .message = "input_read: expected threads up to 2 uses ahead, got 1",
       .damage =
           [](Plan& plan) { barrier(plan, "input_read").slots = barrier(plan, "input_read").lead = 1; }},
      {.name = "SlotsWithoutBarriers",
       .rule = Rule::kParityTwoAhead,
       .message = "tile_full: a thread may be 4 uses ahead, expected as many barriers, got 3",
       .damage = [](Plan& plan) { barrier(plan, "tile_full").slots = barrier(plan, "tile_full").lead = 3; }},
      {.name = "ArriverForgotten",
       .rule = Rule::kBarrierCount,
       .message = "page_empty: expected a count of 4, one of each thread that arrives, got 3 of 3",
       .damage =
           [](Plan& plan) {
             PlanBarrier& page_empty = barrier(plan, "page_empty");
             page_empty.arrivals = page_empty.arrivers = plan.consumer_warps - 1;
           }},
      {.name = "PageReleasedByAllButOne",
       .rule = Rule::kBarrierCount,
       .message = "page_empty: expected a count of 4, one of each thread that arrives, got 3 of 4",
       .damage = [](Plan& plan) { --barrier(plan, "page_empty").arrivals; }},
      {.name = "TileThatIsNeverFull",
       .rule = Rule::kBarrierCount,
       .message = "tile_full: expected a count of 4, one of each thread that arrives, got 5 of 4",
       .damage = [](Plan& plan) { ++barrier(plan, "tile_full").arrivals; }},
      {.name = "PartOfTheNewTokenNotAwaited",
       .rule = Rule::kBarrierCount,
       .message = "attention_full: expected a count of 5, one of each thread that arrives, got 4 of 4",
       .damage =
           [](Plan& plan) {
             PlanBarrier& full = barrier(plan, "attention_full");
             full.arrivals = full.arrivers = plan.consumer_warps;
           }},
      {.name = "UnitLeftToOneThatMerges",
       .rule = Rule::kBarrierCount,
       .message = "attention_empty: expected a count of 4, one of each thread that arrives, got 1 of 1",
       .damage =
           [](Plan& plan) {
             PlanBarrier& empty = barrier(plan, "attention_empty");
             empty.arrivals = empty.arrivers = 1;
           }},
      {.name = "NoPageOfAPhaseInFlight",
       .rule = Rule::kParityTwoAhead,
       .message = "gate_up: expected 4 pages in flight, got 0",
       .damage = [](Plan& plan) { phase(plan, "gate_up").window = 0; }},
      {.name = "MorePagesOfAPhaseThanThePlanHas",
       .rule = Rule::kParityTwoAhead,
       .message = "lm_head: expected 4 pages in flight, got 5",
       .damage = [](Plan& plan) { phase(plan, "lm_head").window = plan.window + 1; }},
      {.name = "NoPageOfTheCacheInFlight",
       .rule = Rule::kParityTwoAhead,
       .message = "attention: expected 1 to 13 pages in flight, got 0",
       .damage = [](Plan& plan) { phase(plan, "attention").window = 0; }},
      {.name = "MorePagesOfTheCacheThanTheRing",
       .rule = Rule::kParityTwoAhead,
       .message = "attention: expected 1 to 13 pages in flight, got 14",
       .damage = [](Plan& plan) { phase(plan, "attention").window = plan.ring_slots + 1; }},
  };
  return plans;
}

}  // namespace soliton
