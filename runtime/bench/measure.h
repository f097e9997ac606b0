// Time per token of an engine, as the bench and the tuning both measure it.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/engine/sampling.h"

namespace soliton {

/// One row of the table.
struct Row {
  std::string test;  // "tg128 @ d512"
  double rate = 0;   // tokens per second, mean over repeats
  double deviation = 0;
  double p50_us = 0;  // time of a token, over all repeats
  double p90_us = 0;
  double p99_us = 0;
  double max_us = 0;
  int64_t bytes = 0;      // that a token in the middle of the run must read
  double bandwidth = 0;   // bytes over p50, per second
  double of_ceiling = 0;  // bandwidth / S; 0 if S is not known
};

/// One row of the table of prompts.
struct PromptRow {
  std::string test;  // "pp512"
  double rate = 0;   // tokens per second, mean over repeats
  double deviation = 0;
  double p50_ms = 0;  // from its beginning to the first token
  double max_ms = 0;
  double flops = 0;  // see prompt_flops()

  /// Per second, of the median.
  double flops_rate() const { return flops / (p50_ms * 1e-3); }
};

/// The rows in results that are JSON.
nlohmann::ordered_json as_json(const Row& row);
nlohmann::ordered_json as_json(const PromptRow& row);

/// Mean and deviation of the rates of repeats.
struct Rates {
  double mean = 0;
  double deviation = 0;
};
Rates summarise_rates(const std::vector<double>& rates);

/// Fills the row from the token times (us) of each repeat; `ceiling` is S in bytes per second, 0 if not known.
void summarise(const std::vector<std::vector<double>>& repeats, double ceiling, Row& row);

std::vector<int32_t> random_prompt(int count, int vocabulary, uint64_t seed);

/// From the start of a prompt in an empty cache to its answer's first token, as the host sees it.
double time_prompt_us(Engine& engine, std::span<const int32_t> prompt);

struct GenerationTest {
  int tokens = 0;  // whose times are taken
  int depth = 0;   // tokens in the cache before
  int repeats = 1;
  uint64_t seed = 1;
  std::optional<Sampling> sampling = {};  // how tokens are chosen; nothing: greedily
};

/// Generates once without taking times. Returns the number of tokens.
int generate_once(Engine& engine, const GenerationTest& test);

/// "tg128 @ d512".
std::string name_of(const GenerationTest& test);

/// Generates once to warm up, then `repeats` times; `on_repeat` is told how many of these are done.
Row measure_generation(Engine& engine, const GenerationTest& test, double ceiling,
                       const std::function<void(int)>& on_repeat = {});

}  // namespace soliton
