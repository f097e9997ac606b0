// Barriers complete with just their arrivals, and a wait by parity is never two phases away from its barrier.
#include <algorithm>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

void check_barrier(const PlanBarrier& barrier, const NeededBarrier& needed, Report& report) {
  if (barrier.arrivals != needed.arrivals || barrier.arrivers != needed.arrivals) {
    report.refuse(Rule::kBarrierCount,
                  "{}: expected a count of {}, one of each thread that arrives, got {} of {}", barrier.name,
                  needed.arrivals, barrier.arrivals, barrier.arrivers);
  }
  if (barrier.lead != needed.lead) {
    report.refuse(Rule::kParityTwoAhead, "{}: expected threads up to {} uses ahead, got {}", barrier.name,
                  needed.lead, barrier.lead);
  }
  if (barrier.slots != needed.slots) {
    report.refuse(Rule::kParityTwoAhead,
                  "{}: a thread may be {} uses ahead, expected as many barriers, got {}", barrier.name,
                  needed.lead, barrier.slots);
  }
}

/// The producer keeps as many pages in flight as it has slots for, and consumers meet every phase of their
/// slots.
void check_ring(const Plan& plan, Report& report) {
  if (plan.window < 1 || plan.window > plan.ring_slots) {
    report.refuse(Rule::kParityTwoAhead, "window: expected 1 to {} pages in flight, one per slot, got {}",
                  plan.ring_slots, plan.window);
  }
  if (plan.ring_slots % plan.page_stride != 0) {
    report.refuse(
        Rule::kParityTwoAhead,
        "ring: a consumer that goes on by {} pages skips phases of a slot, expected a multiple of {} slots, "
        "got {}",
        plan.page_stride, plan.page_stride, plan.ring_slots);
  }
}

}  // namespace

std::vector<NeededBarrier> needed_barriers(const Plan& plan) {
  const int ring = plan.ring_slots;
  const int tiles = plan.tile_slots;
  const int warps = plan.consumer_warps;  // one lane of each arrives
  if (plan.rows > 1) {
    // Barriers and init_barriers() in templates/rows/context.cuh.
    // Workers that finish tiles: of one handed over at once all that have 8 rows each, while there are workers.
    const int handed = plan.rows <= 8 ? 4 : 2;
    const int finishing = std::min(handed * plan.rows / 8, warps);
    const int buffers = plan.input_buffers;
    return {{"page_full", ring, 1, ring},
            {"page_empty", ring, warps, ring},
            {"input_full", buffers, 1, buffers},
            {"input_empty", buffers, warps, buffers},
            {"tiles_full", 1, warps, 1},
            {"tiles_empty", 1, finishing, 1},
            {"begun", 1, 1, 1},
            {"phase_done", 1, warps, 1},
            {"query_full", 2, 1, 2},
            {"item_done", 2, warps, 2},
            {"parts_full", 1, warps, 1},
            {"step_known", 1, finishing, 1},
            {"step_read", 1, 1, 1},
            {"stopped", 1, 1, 1},
            {"ended", 1, warps + 2, 1}};
  }
  // Barriers and init_barriers() in templates/kernel.cuh. Whoever is ahead by a round of the slots waits for
  // the others.
  return {{"page_full", ring, 1, ring},
          {"page_empty", ring, warps, ring},
          {"tile_full", tiles, warps, tiles},
          {"tile_empty", tiles, 1, tiles},
          {"input_read", kInputGenerations, warps, kInputGenerations},
          {"input_taken", kInputGenerations, 1, kInputGenerations},
          {"query_full", 1, warps, 1},
          {"attention_full", 1, warps + 1, 1},
          {"attention_empty", 1, warps, 1},
          {"token_ready", 1, 1, 1},
          {"step_read", 1, 1, 1},
          {"stopped", 1, 1, 1},
          {"ended", 1, warps + 2, 1}};
}

void check_barriers(const Plan& plan, Report& report) {
  for (const NeededBarrier& needed : needed_barriers(plan)) {
    const auto found = std::find_if(plan.barriers.begin(), plan.barriers.end(),
                                    [&](const PlanBarrier& barrier) { return barrier.name == needed.name; });
    check_barrier(*found, needed, report);
  }
  check_ring(plan, report);
}

}  // namespace soliton
