// Barriers complete with just their arrivals, and a wait by parity is never two phases away from its barrier.
#include <algorithm>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

/// Arrivals follow from who arrives, and no arriver may be further ahead than there are barriers.
void check_barrier(const PlanBarrier& barrier, const BarrierRule& rule, int arrivals, Report& report) {
  if (barrier.arrivals != arrivals || barrier.arrivers != arrivals) {
    report.refuse(Rule::kBarrierCount,
                  "{}: expected a count of {}, one of each thread that arrives, got {} of {}", barrier.name,
                  arrivals, barrier.arrivals, barrier.arrivers);
  }
  if (barrier.lead != rule.lead) {
    report.refuse(Rule::kParityTwoAhead, "{}: expected threads up to {} uses ahead, got {}", barrier.name,
                  rule.lead, barrier.lead);
  }
  if (barrier.slots != rule.lead) {
    report.refuse(Rule::kParityTwoAhead,
                  "{}: a thread may be {} uses ahead, expected as many barriers, got {}", barrier.name,
                  rule.lead, barrier.slots);
  }
}

/// One arrival of each warp, or thread, of the roles that arrive: counted from the roles, not as the planner does.
int arrivals_of_roles(const Plan& plan, Arrivers arrivers) {
  const int consumers = plan.consumer_warps;
  switch (arrivers) {
    case Arrivers::kProducers:
      return plan.producer_warps;
    case Arrivers::kConsumers:
      return consumers;
    case Arrivers::kConsumersAndEpilogue:
      return consumers + 1;
    case Arrivers::kWorkingLanes:
      return consumers + plan.producer_warps + 1;  // epilogue or input loader
    case Arrivers::kFinishers:
      // Of one tile handed over at once all that have 8 rows each, while there are workers; of more rows each has several.
      return std::min(plan.shape().handed_tiles * plan.block_rows() / 8, consumers);
    case Arrivers::kLane:
    case Arrivers::kWarp:
      break;
  }
  return 1;
}

/// The producer keeps as many pages in flight as it has slots for.
void check_ring(const Plan& plan, Report& report) {
  if (plan.window < 1 || plan.window > plan.ring_slots) {
    report.refuse(Rule::kParityTwoAhead, "window: expected 1 to {} pages in flight, one per slot, got {}",
                  plan.ring_slots, plan.window);
  }
  const bool tells = plan.rows == 1 && plan.copies == CopyKind::kBulk;
  if (plan.waiting_window < (tells ? 1 : plan.window) || plan.waiting_window > plan.window) {
    report.refuse(Rule::kParityTwoAhead, "window of a CTA that waits: expected {} to {}, got {}",
                  tells ? 1 : plan.window, plan.window, plan.waiting_window);
  }
}

/// A phase has at most the ring in flight, and of weights what the plan says: the kernel has one window for them.
void check_windows(const Plan& plan, Report& report) {
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind == PhaseKind::kMatrix && phase.window != plan.window) {
      report.refuse(Rule::kParityTwoAhead, "{}: expected {} pages in flight, got {}", phase.name, plan.window,
                    phase.window);
    }
    if (phase.kind == PhaseKind::kAttention && (phase.window < 1 || phase.window > plan.ring_slots)) {
      report.refuse(Rule::kParityTwoAhead, "{}: expected 1 to {} pages in flight, got {}", phase.name,
                    plan.ring_slots, phase.window);
    }
  }
}

}  // namespace

void check_barriers(const Plan& plan, Report& report) {
  const PlannedKernel kernel(plan);
  const std::vector<BarrierRule> rules = needed_barriers(*kernel);
  for (size_t i = 0; i < rules.size(); ++i) {
    check_barrier(plan.barriers[i], rules[i], arrivals_of_roles(plan, rules[i].arrivers), report);
  }
  check_ring(plan, report);
  check_windows(plan, report);
}

}  // namespace soliton
