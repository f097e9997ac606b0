// A plan as the kernel will have it: layout/kernel_plan.h, whose formulas and tables planner and verifier use too.
#pragma once

#include <string>
#include <vector>

#include "generator/plan/plan.h"
#include "layout/kernel_plan.h"
#include "layout/structure.h"

namespace soliton {

/// The kernel's view of a plan, which must outlive it: names are the plan's own.
class PlannedKernel {
 public:
  explicit PlannedKernel(const Plan& plan);
  PlannedKernel(const PlannedKernel&) = delete;
  PlannedKernel& operator=(const PlannedKernel&) = delete;

  const KernelPlan& operator*() const { return kernel_; }
  const KernelPlan* operator->() const { return &kernel_; }

 private:
  std::vector<PackedMatrix> matrices_;
  std::vector<Vector> vectors_;
  std::vector<Phase> phases_;
  KernelPlan kernel_;
};

/// The facts of a model that kernels know.
ModelShape model_shape(const Plan& plan);

/// A matrix as the runtime packs it; its name is the plan's own.
PackedMatrix packed_matrix(const PlanMatrix& matrix);

/// What the kernel of this plan needs of shared memory and barriers, in the order in which it finds them.
std::vector<RegionRule> needed_regions(const KernelPlan& kernel);
std::vector<BarrierRule> needed_barriers(const KernelPlan& kernel);

}  // namespace soliton
