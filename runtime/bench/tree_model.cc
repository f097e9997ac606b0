#include "runtime/bench/tree_model.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "models/error.h"
#include "runtime/engine/tree/tree_shape.h"

namespace soliton {
namespace {

constexpr double kMicrosecondsPerPs = 1e-6;
constexpr double kFirstFactor = 2.0;   // by which a cost is changed at first,
constexpr double kLastFactor = 1.002;  // and in the end
constexpr int kMostRounds = 1000;
constexpr double kDoubt =
    0.002;  // error that a cost e times as large has to save, lest it stay where it began

/// The costs that are sought one by one.
constexpr double TreeCosts::*kSought[] = {&TreeCosts::item_us, &TreeCosts::mma_us,
                                          &TreeCosts::read_bytes_per_s, &TreeCosts::exchange_bytes_per_s};

/// The time beside attention with which errors are least: a weighted mean.
double best_other_us(std::span<const MeasuredStep> steps, std::span<const double> attention) {
  double sum = 0;
  double weights = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const double weight = 1 / (steps[i].us * steps[i].us);
    sum += weight * (steps[i].us - attention[i]);
    weights += weight;
  }
  return std::max(0.0, sum / weights);
}

struct Candidate {
  KernelCosts costs;
  double square = 0;  // mean of the errors' squares, and what leads away from where costs began
};

double doubt(const TreeCosts& costs, const TreeCosts& start) {
  double square = 0;
  for (double TreeCosts::*cost : kSought) {
    if (start.*cost <= 0) continue;
    const double distance = kDoubt * std::log(costs.*cost / start.*cost);
    square += distance * distance;
  }
  return square;
}

Candidate judge(std::span<const MeasuredStep> steps, const TreeShape& shape, const ModelFacts& facts,
                const TreeCosts& costs, const TreeCosts& start) {
  std::vector<double> attention;
  for (const MeasuredStep& step : steps) attention.push_back(attention_us(step.plan, shape, costs, facts));
  Candidate candidate{
      .costs = {.attention = costs, .planned_by = costs, .other_us = best_other_us(steps, attention)},
      .square = doubt(costs, start)};
  for (size_t i = 0; i < steps.size(); ++i) {
    const double error = (candidate.costs.other_us + attention[i]) / steps[i].us - 1;
    candidate.square += error * error / static_cast<double>(steps.size());
  }
  return candidate;
}

}  // namespace

TreePlan plan_tree(const KernelLibrary& library, int kernel, const TreeSpec& spec, int num_steps) {
  KvTree tree(num_pages_needed(spec, num_steps));
  build_tree(tree, spec, num_steps);
  TreeSnapshot snapshot;
  tree.snapshot(snapshot);
  TreePlan plan;
  TreePlanner(tree_shape(library, kernel), library.planned_costs(kernel), {}).plan(snapshot, num_steps, plan);
  return plan;
}

double attention_us(const TreePlan& plan, const TreeShape& shape, const TreeCosts& costs,
                    const ModelFacts& facts) {
  const ItemCosts items(shape, costs);
  std::map<std::pair<int, int>, int> layers;  // with each window and chunk
  for (int layer = 0; layer < facts.num_layers; ++layer)
    ++layers[{window_of_layer(facts, layer), chunk_of_layer(facts, layer)}];
  double us = 0;
  for (const auto& [reach, count] : layers) {
    us += count * kMicrosecondsPerPs *
          static_cast<double>(attention_ps(plan, items, plan.num_steps / 2, reach.first, reach.second));
  }
  return us;
}

FitErrors errors_of(const KernelCosts& costs, std::span<const MeasuredStep> steps, const TreeShape& shape,
                    const ModelFacts& facts) {
  FitErrors errors;
  for (const MeasuredStep& step : steps) {
    const double predicted = costs.other_us + attention_us(step.plan, shape, costs.attention, facts);
    const double error = std::abs(predicted / step.us - 1);
    errors.mean += error / static_cast<double>(steps.size());
    errors.worst = std::max(errors.worst, error);
  }
  return errors;
}

/// One cost after the other is multiplied and divided by a factor while that helps, then the factor gets smaller.
CostFit fit_costs(std::span<const MeasuredStep> steps, const TreeShape& shape, const ModelFacts& facts,
                  const TreeCosts& start) {
  if (steps.empty()) throw Error(ExitCode::kInternal, "costs of a tree: expected measured steps, got none");
  Candidate best = judge(steps, shape, facts, start, start);
  for (double factor = kFirstFactor; factor > kLastFactor; factor = std::sqrt(factor)) {
    bool improves = true;
    for (int round = 0; improves && round < kMostRounds; ++round) {
      improves = false;
      for (double TreeCosts::*cost : kSought) {
        for (const double by : {factor, 1 / factor}) {
          TreeCosts costs = best.costs.attention;
          costs.*cost *= by;
          const Candidate candidate = judge(steps, shape, facts, costs, start);
          if (candidate.square >= best.square) continue;
          best = candidate;
          improves = true;
        }
      }
    }
  }
  return {.costs = best.costs, .errors = errors_of(best.costs, steps, shape, facts)};
}

}  // namespace soliton
