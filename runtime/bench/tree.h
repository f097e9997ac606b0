// Steps over trees of branches, as `soliton-bench --tree` measures them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/bench/timeline.h"
#include "runtime/bench/tree_spec.h"
#include "runtime/engine/engine.h"

namespace soliton {

/// One workload. Times in us are medians; 0: not measured.
struct TreeMeasurement {
  std::string test;             // name of the workload
  int rows = 0;                 // of a step,
  int kernel_rows = 0;          // and those that the kernel has room for
  int64_t unique_tokens = 0;    // cached ones
  int64_t path_tokens = 0;      // the same for each row on its own
  int longest_path = 0;         // tokens
  double step_us = 0;           // of all rows
  double floor_us = 0;          // weights and unique KV over S; 0 if S is not known
  double one_row_us = 0;        // a step of the kernel of one row behind as many tokens as the longest path
  double without_cache_us = 0;  // a step of as many rows with one cached token each
  double unshared_us = 0;  // a step in which every row has a copy of its path; 0: too large for the memory
  double attention_of_ceiling = 0;  // unique KV bytes over step_us - without_cache_us, divided by S
  double page_reads = 0;            // pages read over unique pages
  double predicted_us = 0;          // a step, by costs that were measured; 0: there are none
};

struct TreeTest {
  int num_steps = 32;  // of a launch whose times are taken, for branches that decode plainly
  int repeats = 3;
  uint64_t seed = 1;
};

/// Steps over a workload's tree.
struct TreeSteps {
  double us = 0;  // median of a step
  int num_steps = 0;
  int64_t page_reads = 0;  // as TreeResult has them
};

/// Measures them, after a launch that warms up. The engine's tree is empty afterwards.
TreeSteps time_steps(Engine& engine, const TreeSpec& spec, const TreeTest& test);

/// Of the step in the middle of a launch. The engine's tree is empty afterwards.
Timeline record_timeline(Engine& engine, const TreeSpec& spec, const TreeTest& test);

/// Tokens that the KV pool has to hold for a workload.
int64_t pool_tokens(const TreeSpec& spec, int num_steps);

/// The same rows, each with a copy of its path.
TreeSpec unshared(const TreeSpec& spec);

/// Measures a workload. The engine's tree is empty afterwards. `ceiling` is S in bytes per second, 0 if not
/// known.
TreeMeasurement measure_tree(Engine& engine, const TreeSpec& spec, const TreeTest& test, double ceiling);

/// As a table in Markdown.
std::string tree_table(const std::vector<TreeMeasurement>& rows);

}  // namespace soliton
