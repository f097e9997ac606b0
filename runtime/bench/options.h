// What soliton-bench is asked to measure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/bench/tree_spec.h"
#include "runtime/engine/sampling.h"
#include "runtime/hub/fetch_model.h"

namespace soliton {

struct BenchOptions {
  std::string model;
  std::string weights = {};  // see weight_rounding.h
  HubOptions hub;            // of a model that is named as on Hugging Face
  std::string kernel;
  bool random_weights = false;
  std::vector<int> prompts = {0};
  std::vector<int> tokens = {128};
  std::vector<int> depths = {0};
  int repeats = 5;
  int device = 0;
  std::vector<int> cards;  // of a kernel that spans several: their devices
  uint64_t seed = 1;
  SamplingFlags sampling;
  std::string format = "md";
  std::string output;
  std::string timeline;
  std::vector<TreeSpec> trees;
  bool calibrate = false;              // the costs by which steps over trees are planned
  std::string draft_kernel;            // of a draft model with random weights, if not empty
  std::optional<uint64_t> draft_seed;  // of its weights; nothing: another one than `seed`
  int max_drafts = 7;                  // a step
  bool edge = false;  // as people report a card; an empty list then stands for what edge_test() takes
  std::string svg;    // with it: the file of the page
  std::string tune;   // the model's YAML; empty: one kernel is measured
  std::string gpu;
  std::vector<std::string> knobs;
};

/// The line that was typed, for results.
std::string command_line(int argc, char** argv);

/// Nothing after --help. Throws Error (kUsage), and what parse_tree_spec() throws.
std::optional<BenchOptions> parse_bench_options(int argc, char** argv);

}  // namespace soliton
