#include "runtime/sampling.h"

#include <algorithm>
#include <cmath>

#include "models/error.h"

namespace soliton {
namespace {

// Scores stay finite; noise is far below a score's last bit long before.
constexpr float kMostInverseTemperature = 1e30f;

}  // namespace

Sampling default_sampling(const GenerationDefaults& defaults) {
  Sampling sampling;
  if (defaults.do_sample) sampling.temperature = defaults.temperature.value_or(1.0);
  sampling.top_k = defaults.top_k.value_or(sampling.top_k);
  sampling.top_p = defaults.top_p.value_or(sampling.top_p);
  sampling.min_p = defaults.min_p.value_or(sampling.min_p);
  sampling.repeat_penalty = defaults.repetition_penalty.value_or(sampling.repeat_penalty);
  return sampling;
}

RowSampling row_sampling(const Sampling& sampling, uint32_t seed) {
  const auto temperature = static_cast<float>(sampling.temperature);
  return {.inverse_temperature =
              sampling.temperature == 0 ? 0 : std::min(1 / temperature, kMostInverseTemperature),
          .seed = seed,
          .top_k = sampling.top_k,
          .top_p = static_cast<float>(sampling.top_p),
          .max_distance =
              sampling.min_p == 0 ? kUnlimitedDistance : static_cast<float>(-std::log(sampling.min_p)),
          .penalty = static_cast<float>(sampling.repeat_penalty)};
}

void check_sampling(const Sampling& sampling) {
  if (sampling.num_drafts == 0) return;
  const auto refuse = [](const std::string& got) {
    throw Error(ExitCode::kUsage,
                fmt::format("--lookup: expected greedy decoding of one answer, got {}", got));
  };
  if (sampling.temperature > 0) refuse(fmt::format("--temp {}", sampling.temperature));
  if (sampling.repeat_penalty != 1) refuse(fmt::format("--repeat-penalty {}", sampling.repeat_penalty));
  if (sampling.logprobs) refuse("--logprobs");
}

}  // namespace soliton
