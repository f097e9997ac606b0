// Several samples of one prompt, each drawn with a seed of its own. The prompt is fed once, and all samples
// read the same keys and values of it:
//
//   the prompt but its last token
//    |- sample 0: the prompt's last token, and what it chose
//    |- sample 1, ...
//    `- a paused branch: no token, no row, no page
//
// The paused branch keeps the prompt a node of its own when one sample is left, or was asked for. So the
// cache is cut into the same slices (SliceRule::kFixed) whatever samples there are, and all steps take the
// same kernel: a sample depends on its seed and not on its neighbours. With more rows than fit one tile of 16
// queries (8 with two query heads to a KV head) that holds but for rounding: the number of tiles decides how
// the kernel splits its sums, so a token may be another one where two scores are close.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/answer/feed_prompt.h"
#include "runtime/engine/chosen_token.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/sampling.h"

namespace soliton {

struct ParallelRequest {
  std::span<const int32_t> prompt;  // at least one token
  int num_samples = 1;
  int max_tokens = 0;                         // of each sample, at least one
  Sampling sampling = {};                     // sample i has its seed + i, modulo 2^32
  std::span<const int32_t> stop_tokens = {};  // a sample ends with one of these
  int min_rows = 0;                           // see TreeRequest; at least num_samples in any case
  FeedWatch prompt_watch = {};                // of the prompt, without whose end there are no tokens
};

struct Sample {
  uint32_t seed = 0;
  std::vector<int32_t> tokens = {};  // the last one has not been fed
  bool hit_stop_token = false;
};

struct ParallelResult {
  std::vector<Sample> samples;
  std::vector<uint32_t> times_ns;  // [steps]: device time at which a step's tokens were chosen, modulo 2^32

  size_t num_tokens() const;  // of all samples
};

/// Decodes behind what main_branch() holds, the only branch, and leaves the engine an empty tree. `on_token`
/// is called for every token of every sample and ends the samples, all of them, by returning false. Throws
/// Error: kMismatch, before anything is changed, if no kernel takes a row for each sample; else as
/// Engine::decode_tree().
ParallelResult decode_parallel(Engine& engine, const ParallelRequest& request,
                               const std::function<bool(int sample, const ChosenToken&)>& on_token = {});

/// EngineOptions::pool_tokens that such a request needs in an empty tree.
int64_t parallel_pool_tokens(size_t prompt_tokens, int num_samples, int max_tokens);

}  // namespace soliton
