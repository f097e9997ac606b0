// How the tables of layout/one_row.h and layout/several_rows.h say what a kernel needs: pieces of shared memory, and
// barriers with those who arrive on them.
#pragma once

#include "layout/kernel_plan.h"

namespace soliton {

/// A piece of shared memory that a kernel needs.
struct RegionRule {
  const char* name = nullptr;
  int bytes = 0;
  int alignment = 1;
};

/// Who arrives on a barrier in each of its phases.
enum class Arrivers : int {
  kLane,                  // one lane: of the warp that issues the copies, or that says it once
  kWarp,                  // one warp, as a whole
  kProducers,             // every producer: a lane of one that issues bulk copies, else as a whole
  kConsumers,             // every consumer, or worker, as a whole
  kConsumersAndEpilogue,  // and the epilogue warp
  kFinishers,             // several rows: the workers that finish tiles
  kWorkingLanes,          // a lane of every warp but the watch
};

/// Who says that copies have landed: in bulk the lane that issued them, with their bytes.
constexpr Arrivers copier(const KernelPlan& plan) {
  return plan.copies == CopyKind::kBulk ? Arrivers::kLane : Arrivers::kWarp;
}

constexpr bool by_warps(const KernelPlan& plan, Arrivers arrivers) {
  if (arrivers == Arrivers::kProducers) return plan.copies != CopyKind::kBulk;
  return arrivers != Arrivers::kLane && arrivers != Arrivers::kWorkingLanes;
}

constexpr int count_arrivals(const KernelPlan& plan, Arrivers arrivers) {
  switch (arrivers) {
    case Arrivers::kLane:
    case Arrivers::kWarp:
      return 1;
    case Arrivers::kProducers:
      return plan.producer_warps;
    case Arrivers::kConsumers:
      return plan.consumer_warps;
    case Arrivers::kConsumersAndEpilogue:
      return plan.consumer_warps + 1;
    case Arrivers::kFinishers:
      return plan.shape().finishing_workers();
    case Arrivers::kWorkingLanes:
      return plan.working_warps();
  }
  return 0;
}

/// The barriers of one kind of hand-over.
struct BarrierRule {
  const char* name = nullptr;
  int slots = 1;  // barriers that are used in turn
  int lead = 1;   // uses by which an arriver or waiter may be ahead of the slowest
  Arrivers arrivers = Arrivers::kLane;
};

/// Rules by their enumerators, which are also the indices of KernelPlan::regions and ::barriers.
template <class Rule, class Id, int kCount>
struct Rules {
  Rule rules[kCount] = {};
  constexpr Rule& operator[](Id id) { return rules[static_cast<int>(id)]; }
  constexpr const Rule* begin() const { return rules; }
  constexpr const Rule* end() const { return rules + kCount; }
};

constexpr int count_barriers(const BarrierRule* begin, const BarrierRule* end) {
  int count = 0;
  for (; begin != end; ++begin) count += begin->slots;
  return count;
}

}  // namespace soliton
