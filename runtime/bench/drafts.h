// Decoding with a draft model beside plain decoding, both with random weights: with those of the large model itself every
// draft should be right, with others none is, and neither may cost more than it brings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/bench/options.h"
#include "runtime/engine/engine.h"

namespace soliton {

struct DraftMeasurement {
  std::string draft_model;
  uint64_t draft_seed = 0;  // of its weights
  int max_drafts = 0;       // a step
  int prompt_tokens = 0;
  int tokens = 0;  // generated in each run
  /// [repeats], of runs that take turns: tokens a second behind the first step, and of that with drafts tokens a step. The
  /// draft model knows from run to run how well it has done.
  std::vector<double> plain_rates = {};
  std::vector<double> rates = {};
  std::vector<double> tokens_per_step = {};
  /// First tokens of the last run that plain decoding chose too, and that the kernel for several rows chooses one by one.
  int equal_plain = 0;
  int equal_one_by_one = 0;
};

/// Tokens that the KV cache has to hold for it; 0 if no draft kernel is named.
int draft_context(const BenchOptions& options);

/// Opens --draft-kernel with weights of --draft-seed beside the engine, whose tree it resets.
DraftMeasurement measure_drafts(Engine& engine, const BenchOptions& options);

std::string draft_table(const DraftMeasurement& drafts);
nlohmann::ordered_json as_json(const DraftMeasurement& drafts);

}  // namespace soliton
