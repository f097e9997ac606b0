#include "runtime/engine/sampling.h"

#include <algorithm>
#include <cmath>

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

float log_sum_exp(std::span<const float> logits) {
  const float best = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - best));
  return best + static_cast<float>(std::log(sum));
}

}  // namespace soliton
