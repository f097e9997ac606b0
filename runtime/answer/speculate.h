// Decoding that checks, in one step, tokens that a Drafter expects.
//
// Steps that check drafts take the same kernel (of the least rows that a full draft needs) and cut the cache into the
// same slices, so the tokens are those that this kernel chooses one at a time, but for rounding: a step sums its
// new tokens apart from the cached ones, so a token may be another one where the best two logits are close. That goes
// for drawn ones too: noise depends on the position in the text, and not on the row.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/answer/draft/drafter.h"
#include "runtime/engine/chosen_token.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/sampling.h"

namespace soliton {

struct SpeculationRequest {
  std::span<const int32_t> prompt;            // at least one token
  int max_tokens = 0;                         // to generate, at least one
  std::span<const int32_t> stop_tokens = {};  // end with one of these
  Sampling sampling = {};                     // num_drafts: a step, at least one
  std::span<const int32_t> cached = {};       // what main_branch() holds
  /// Asked while the drafter reads the prompt: false ends it all without a token.
  std::function<bool()> goes_on = {};
};

struct SpeculationResult {
  std::vector<int32_t> tokens;     // generated; the last one has not been fed
  std::vector<int> step_tokens;    // [steps]: how many of them a step gave, at least 1
  std::vector<uint32_t> times_ns;  // [steps]: device time at which they were chosen, modulo 2^32
  bool hit_stop_token = false;

  double tokens_per_step() const;
};

/// Decodes in main_branch(), the only branch, which then holds the prompt and all generated tokens but the
/// last. `on_token` is called for each token in order and ends the decoding by returning false. Throws Error:
/// kMismatch, before anything is changed, if no kernel takes num_drafts + 1 rows; else as
/// Engine::decode_tree(), and what the drafter throws.
SpeculationResult decode_speculatively(Engine& engine, Drafter& drafter, const SpeculationRequest& request,
                                       const std::function<bool(const ChosenToken&)>& on_token = {});

}  // namespace soliton
