#include "runtime/bench/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/bench/tree.h"
#include "runtime/engine/tree/tree_shape.h"

namespace soliton {
namespace {

constexpr int kSteps = 4;  // of a launch; one more than are counted

/// Tokens that all rows share, and those that each has of its own.
struct Lengths {
  int shared = 0;
  int own = 0;
};
constexpr Lengths kLengths[] = {{64, 1},   {64, 300},   {1000, 1}, {4000, 1500},
                                {8000, 1}, {8000, 300}, {30000, 1}};
constexpr int kDraftedBehind = 8000;  // tokens, of a draft whose tokens all follow them directly

TreeSpec shared_tree(int rows, Lengths lengths) {
  TreeSpec spec{.name = fmt::format("{} x {} on {}", rows, lengths.own, lengths.shared),
                .nodes = {{.num_tokens = lengths.shared}}};
  for (int row = 0; row < rows; ++row)
    spec.nodes.push_back({.parent = 0, .num_tokens = lengths.own, .draft = {-1}});
  return spec;
}

TreeSpec drafted_tree(int rows) {
  return {.name = fmt::format("draft of {} on {}", rows, kDraftedBehind),
          .nodes = {{.num_tokens = kDraftedBehind, .draft = std::vector<int32_t>(rows, -1)}}};
}

/// Kernels that are calibrated: rows that those of several take which no smaller one does.
struct RowRange {
  int kernel = 0;
  int least = 0;
  int most = 0;
};
std::vector<RowRange> calibrated_kernels(const KernelLibrary& library) {
  std::vector<RowRange> kernels;
  int least = 2;
  for (int kernel = 0; kernel < library.num_kernels(); ++kernel) {
    const int rows = library.descriptor(kernel).rows;
    if (rows == 1 || row_blocks(rows) > 1) continue;
    kernels.push_back({kernel, least, rows});
    least = rows + 1;
  }
  return kernels;
}

double geometric_mean_ratio(const std::vector<double>& above, const std::vector<double>& below) {
  double sum = 0;
  for (size_t i = 0; i < above.size(); ++i) sum += std::log(above[i] / below[i]);
  return above.empty() ? 1 : std::exp(sum / static_cast<double>(above.size()));
}

}  // namespace

double KernelCalibration::gain() const {
  return geometric_mean_ratio(before_us, after_us);
}

std::vector<TreeSpec> calibration_trees(int least_rows, int most_rows, int64_t context, int64_t pool_tokens) {
  std::vector<TreeSpec> all;
  std::vector<int> counts = {least_rows};
  if (most_rows != least_rows) counts.push_back(most_rows);
  for (const int rows : counts) {
    for (const Lengths lengths : kLengths) all.push_back(shared_tree(rows, lengths));
    all.push_back(drafted_tree(rows));
  }
  std::erase_if(all, [&](const TreeSpec& spec) {
    return longest_path(spec) + kSteps > context ||
           int64_t{num_pages_needed(spec, kSteps)} * kKvPageTokens > pool_tokens;
  });
  return all;
}

int num_calibration_tests(const KernelLibrary& library, int64_t context, int64_t pool_tokens) {
  size_t tests = 0;
  for (const RowRange& kernel : calibrated_kernels(library))
    tests += 2 * calibration_trees(kernel.least, kernel.most, context, pool_tokens).size();
  return static_cast<int>(tests);
}

std::vector<KernelCalibration> calibrate(Engine& engine, int64_t pool_tokens, int repeats, uint64_t seed,
                                         TestProgress& progress) {
  const KernelLibrary& library = engine.library();
  const ModelFacts& facts = library.model().facts;
  const TreeTest test{.num_steps = kSteps, .repeats = repeats, .seed = seed};
  std::vector<std::optional<KernelCosts>> costs(static_cast<size_t>(library.num_kernels()));
  std::vector<KernelCalibration> results;
  for (const auto& [kernel, least, most] : calibrated_kernels(library)) {
    const std::vector<TreeSpec> specs = calibration_trees(least, most, engine.context(), pool_tokens);
    if (specs.empty()) continue;
    costs[kernel].reset();
    engine.plan_by(costs);
    KernelCalibration result{.rows = most, .before = library.planned_costs(kernel)};
    std::vector<MeasuredStep> steps;
    const auto measure = [&](const TreeSpec& spec) {
      progress.begin(spec.name);
      const TreeSteps measured = time_steps(engine, spec, test);
      steps.push_back({plan_tree(library, kernel, spec, measured.num_steps), measured.us});
      return measured.us;
    };
    for (const TreeSpec& spec : specs) {
      result.tests.push_back(spec.name);
      result.before_us.push_back(measure(spec));
    }
    TreeShape shape = tree_shape(library, kernel);
    TreeCosts start = result.before;
    start.item_us *= shape.item_costs;
    shape.item_costs = 1;  // as tree_shape() has it of costs that have been measured
    shape.tile_costs = 0;
    const CostFit first = fit_costs(steps, shape, facts, start);
    const KernelCosts before{.attention = start, .planned_by = start, .other_us = first.costs.other_us};
    result.before_errors = errors_of(before, steps, shape, facts);
    costs[kernel] = first.costs;
    engine.plan_by(costs);
    for (const TreeSpec& spec : specs) result.after_us.push_back(measure(spec));
    result.fit = fit_costs(steps, shape, facts, start);  // by plans of both kinds
    for (size_t i = specs.size(); i < steps.size(); ++i) {
      result.predicted_us.push_back(result.fit.costs.other_us +
                                    attention_us(steps[i].plan, shape, result.fit.costs.attention, facts));
    }
    if (result.gain() < 1) result.fit.costs.planned_by = start;
    costs[kernel] = result.fit.costs;
    results.push_back(std::move(result));
  }
  engine.plan_by(costs);
  return results;
}

std::string calibration_table(const std::vector<KernelCalibration>& kernels) {
  std::string text =
      "| kernel's rows | item us | token by 16 queries us | read TB/s | exchange TB/s | beside attention us "
      "| "
      "trees | error mean / worst | before | steps before / after |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  const auto errors = [](const FitErrors& of) {
    return fmt::format("{:.1f}% / {:.1f}%", of.mean * 100, of.worst * 100);
  };
  for (const KernelCalibration& kernel : kernels) {
    const TreeCosts& costs = kernel.fit.costs.attention;
    text += fmt::format("| {} | {:.3f} | {:.5f} | {:.2f} | {:.2f} | {:.1f} | {} | {} | {} | {:.3f} |\n",
                        kernel.rows, costs.item_us, costs.mma_us, costs.read_bytes_per_s * 1e-12,
                        costs.exchange_bytes_per_s * 1e-12, kernel.fit.costs.other_us, kernel.tests.size(),
                        errors(kernel.fit.errors), errors(kernel.before_errors), kernel.gain());
  }
  return text;
}

nlohmann::ordered_json as_json(const std::vector<KernelCalibration>& kernels) {
  const auto costs_json = [](const TreeCosts& costs) {
    return nlohmann::ordered_json{{"item_us", costs.item_us},
                                  {"mma_us", costs.mma_us},
                                  {"read_bytes_per_s", costs.read_bytes_per_s},
                                  {"exchange_bytes_per_s", costs.exchange_bytes_per_s}};
  };
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const KernelCalibration& kernel : kernels) {
    nlohmann::ordered_json entry{{"rows", kernel.rows},
                                 {"costs", costs_json(kernel.fit.costs.attention)},
                                 {"other_us", kernel.fit.costs.other_us},
                                 {"error_mean", kernel.fit.errors.mean},
                                 {"error_worst", kernel.fit.errors.worst},
                                 {"costs_before", costs_json(kernel.before)},
                                 {"error_mean_before", kernel.before_errors.mean},
                                 {"error_worst_before", kernel.before_errors.worst},
                                 {"before_over_after", kernel.gain()},
                                 {"planned_by_fit", kernel.gain() >= 1},
                                 {"trees", nlohmann::ordered_json::array()}};
    for (size_t i = 0; i < kernel.tests.size(); ++i) {
      entry["trees"].push_back({{"test", kernel.tests[i]},
                                {"before_us_p50", kernel.before_us[i]},
                                {"step_us_p50", kernel.after_us[i]},
                                {"predicted_us", kernel.predicted_us[i]}});
    }
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace soliton
