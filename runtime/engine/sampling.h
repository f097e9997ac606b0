// How the tokens of an answer are chosen, as users say it; layout/sampling.h says what it means.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "layout/sampling.h"
#include "models/hf_config.h"

namespace soliton {

struct Sampling {
  double temperature = 0;  // 0: the best token
  int top_k = 0;           // 0: all
  double top_p = 1;
  double min_p = 0;
  double repeat_penalty = 1;  // of the tokens of prompt and answer so far
  uint32_t seed = 0;
  int num_drafts = 0;  // tokens that a step checks at most; 0: no speculation
  bool logprobs = false;

  /// Whether always the token of the best logit is taken.
  bool is_greedy() const { return temperature == 0 && repeat_penalty == 1; }
};

/// What flags say of it.
struct SamplingFlags {
  std::optional<double> temperature;
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repeat_penalty;
  bool logprobs = false;

  bool any() const { return temperature || top_k || top_p || min_p || repeat_penalty || logprobs; }

  /// `base` but for what was given.
  Sampling over(Sampling base) const {
    base.temperature = temperature.value_or(base.temperature);
    base.top_k = top_k.value_or(base.top_k);
    base.top_p = top_p.value_or(base.top_p);
    base.min_p = min_p.value_or(base.min_p);
    base.repeat_penalty = repeat_penalty.value_or(base.repeat_penalty);
    base.logprobs = base.logprobs || logprobs;
    return base;
  }
};

/// What a model's files ask for: its temperature if they ask for sampling, else 0.
Sampling default_sampling(const GenerationDefaults& defaults);

/// How a row draws its tokens; with another seed than the sampling's if that is one of several.
RowSampling row_sampling(const Sampling& sampling, uint32_t seed);
inline RowSampling row_sampling(const Sampling& sampling) {
  return row_sampling(sampling, sampling.seed);
}

/// The logarithm of the sum of exp(logit), of at least one: a token's logprob is its logit less this.
float log_sum_exp(std::span<const float> logits);

}  // namespace soliton
