// soliton-bench --edge: what people report of a card and a model. Time to the first token of prompts, time per token
// behind contexts and what energy it takes, memory, time to load and to make the kernel, clocks and throttling; and
// beside the measured times those that the card's spec predicts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layout/model_facts.h"
#include "runtime/bench/measure.h"
#include "runtime/bench/sensors.h"
#include "runtime/bench/test_progress.h"
#include "runtime/device/read_bandwidth.h"
#include "runtime/engine/engine.h"

namespace soliton {

/// What is measured. Empty lists and 0 stand for what is usual: in emulation, which takes a second for what a card does
/// in a millisecond, less.
struct EdgeTest {
  std::vector<int> prompts = {};   // tokens
  std::vector<int> contexts = {};  // tokens in the cache before the first that is timed
  int tokens = 0;                  // timed in a repeat
  int repeats = 0;
  uint64_t seed = 1;
  std::vector<std::string> left_out = {};  // and why, a line each
};

/// Fills in what is usual and leaves out what the model has no room for. Throws Error (kOutOfMemory) if nothing is left.
EdgeTest usual_edge_test(EdgeTest asked, const ModelFacts& facts, bool emulated);

/// Tokens that the KV cache has to hold.
int edge_context(const EdgeTest& test);

struct EdgePrompt {
  int tokens = 0;
  double first_token_ms = 0;  // median
  double worst_ms = 0;
};

struct EdgeContext {
  int tokens = 0;
  Row row = {};
  std::optional<double> predicted_us = {};
  std::optional<EnergyUse> energy = {};
  int64_t energy_tokens = 0;  // decoded while the energy was counted

  std::optional<double> tokens_per_joule() const;
};

/// Bytes.
struct EdgeMemory {
  int64_t weights = 0;                 // as they are packed
  int64_t cache = 0;                   // keys and values for all of edge_context()
  std::optional<int64_t> device = {};  // of the device's, less free than before; nothing in emulation
  int64_t device_total = 0;            // 0 in emulation
  int64_t host_peak = 0;               // resident memory of the process, at most
};

struct EdgeReport {
  std::string command;
  std::string model;
  std::string weights;  // "random", or where they are from
  std::string kernel_gpu;
  int num_ctas = 0;
  int device_index = 0;  // as CUDA counts
  DeviceInfo device = {};
  ReadBandwidth bandwidth = {};
  EdgeTest test = {};
  std::vector<EdgePrompt> prompts = {};
  std::vector<EdgeContext> contexts = {};
  EdgeMemory memory = {};
  double load_s = 0;
  std::optional<double> make_s = {};  // nothing: the kernel was there already
  std::optional<SensorSummary> sensors = {};
  std::string no_sensors = {};     // why there are none
  std::string predicted_for = {};  // the spec that predicted_us are of
  std::string not_predicted = {};  // why there are none

  bool is_emulated() const { return device.compute_capability == 0; }
};

/// Runs the report's test on a loaded engine, and fills in its prompts, contexts (but for what was predicted), sensors,
/// and what memory holds. A test of `progress` is a prompt or a context.
void measure_edge(Engine& engine, EdgeReport& report, TestProgress& progress);

/// What is neither of a prompt nor of a context, by name, as people read it: "n/a" where it is not known.
std::vector<std::pair<std::string, std::string>> edge_facts(const EdgeReport& report);

/// As a text with tables in Markdown,
std::string edge_markdown(const EdgeReport& report);
/// as JSON, where null stands for what is not known,
std::string edge_json(const EdgeReport& report);
/// and as one page that needs no other file.
std::string edge_svg(const EdgeReport& report);

}  // namespace soliton
