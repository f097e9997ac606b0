// The flags of programs that say how tokens are chosen.
#pragma once

#include "runtime/engine/sampling.h"
#include "runtime/program/command_line.h"

namespace soliton {

/// `temperature_help` says what happens without it.
inline void add_sampling_flags(CLI::App& app, SamplingFlags& flags, const std::string& temperature_help) {
  begin_group(app, "Sampling");
  app.add_option("--temp,--temperature", flags.temperature, "temperature; " + temperature_help)
      ->check(number_from(0, kMaxTemperature));
  app.add_option("--top-k", flags.top_k,
                 "draw among the so many best tokens; 0, all, if nothing else is said")
      ->check(at_least(0));
  app.add_option("--top-p", flags.top_p,
                 "draw among the best tokens that have this probability together; 1 if nothing else is said")
      ->check(number_from(0, 1));
  app.add_option("--min-p", flags.min_p,
                 "draw among tokens that are so likely, relative to the best; 0 if nothing else is said")
      ->check(number_from(0, 1));
  app.add_option(
         "--repeat-penalty", flags.repeat_penalty,
         "divides positive logits of tokens of the text so far, multiplies negative ones; 1, none, if "
         "nothing else is said")
      ->check(number_from(kMinPenalty, kMaxPenalty));
  app.add_flag("--logprobs", flags.logprobs,
               "also the logarithm of each token's probability, before temperature and penalty");
}

}  // namespace soliton
