// soliton-bench --calibrate: measures what the attention of a kernel library's steps costs on this card.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/bench/test_progress.h"
#include "runtime/bench/tree_model.h"
#include "runtime/bench/tree_spec.h"
#include "runtime/engine/engine.h"

namespace soliton {

/// The trees from which the costs of a kernel of `most_rows` rows are fitted, that takes `least_rows` or more: shared and own
/// tokens, many and few, of context and memory for at most so many tokens.
std::vector<TreeSpec> calibration_trees(int least_rows, int most_rows, int64_t context, int64_t pool_tokens);

/// One kernel of several rows. Times are medians.
struct KernelCalibration {
  int rows = 0;
  TreeCosts before = {};  // by which the card's spec plans
  CostFit fit = {};
  FitErrors before_errors = {};  // of the costs before, with the same time beside attention
  std::vector<std::string> tests = {};
  std::vector<double> before_us = {};     // [tests]: steps planned by the costs before,
  std::vector<double> after_us = {};      // by those that were fitted,
  std::vector<double> predicted_us = {};  // and what these say

  /// How much longer steps take by the plans before, as a geometric mean.
  double gain() const;
};

/// Measures every kernel of several rows but those of blocks of rows; the engine plans by what was fitted from then on, unless
/// the trees' steps were shorter before. Throws what decode_tree() throws.
std::vector<KernelCalibration> calibrate(Engine& engine, int64_t pool_tokens, int repeats, uint64_t seed,
                                         TestProgress& progress);

/// How many trees calibrate() measures.
int num_calibration_tests(const KernelLibrary& library, int64_t context, int64_t pool_tokens);

/// Tokens of context, at most, and of memory that all its trees need.
inline constexpr int kCalibrationContext = 32768;
inline constexpr int64_t kCalibrationTokens = 131072;

/// As a table in Markdown, and as JSON.
std::string calibration_table(const std::vector<KernelCalibration>& kernels);
nlohmann::ordered_json as_json(const std::vector<KernelCalibration>& kernels);

}  // namespace soliton
