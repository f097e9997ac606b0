// What the cost model says of a step over a tree, and the costs with which it says what was measured.
#pragma once

#include <span>
#include <vector>

#include "runtime/bench/tree_spec.h"
#include "runtime/device/kernel_library.h"
#include "runtime/engine/tree/tree_plan.h"

namespace soliton {

/// The plan of a workload's steps in one of a library's kernels of several rows, by the costs that it plans by.
TreePlan plan_tree(const KernelLibrary& library, int kernel, const TreeSpec& spec, int num_steps);

/// What the attention of all layers takes in a step halfway through the plan, in us.
double attention_us(const TreePlan& plan, const TreeShape& shape, const TreeCosts& costs,
                    const ModelFacts& facts);

/// A step of a plan that was measured.
struct MeasuredStep {
  TreePlan plan;
  double us = 0;
};

/// How far predictions are from what was measured, as shares of that.
struct FitErrors {
  double mean = 0;
  double worst = 0;
};

struct CostFit {
  KernelCosts costs;
  FitErrors errors;
};

FitErrors errors_of(const KernelCosts& costs, std::span<const MeasuredStep> steps, const TreeShape& shape,
                    const ModelFacts& facts);

/// The costs of a kernel with which the mean square of these errors is least. A cost that no step tells anything of stays as
/// it is in `start`. The shape's items cost once TreeCosts::item_us. Throws Error (kInternal) without steps.
CostFit fit_costs(std::span<const MeasuredStep> steps, const TreeShape& shape, const ModelFacts& facts,
                  const TreeCosts& start);

}  // namespace soliton
