// Float arithmetic as in transformers' modeling_rope_utils.py, so that large positions turn by the same angles.
#include "runtime/engine/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace soliton {
namespace {

/// Llama 3: slow pairs are slowed down further, fast ones kept, those between the two interpolated.
float llama3_frequency(float frequency, const ModelFacts& facts) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const double low = facts.rope_original_context / facts.rope_low_freq_factor;
  const double high = facts.rope_original_context / facts.rope_high_freq_factor;
  if (wavelength > low) return static_cast<float>(frequency / facts.rope_factor);
  if (wavelength < high) return frequency;
  const double smooth = (facts.rope_original_context / wavelength - facts.rope_low_freq_factor) /
                        (facts.rope_high_freq_factor - facts.rope_low_freq_factor);
  return static_cast<float>((1.0 - smooth) * frequency / facts.rope_factor + smooth * frequency);
}

/// The pairs between which YaRN goes over from frequencies that it keeps to those that it slows down.
struct Ramp {
  double first = 0;
  double last = 0;
};

Ramp yarn_ramp(const ModelFacts& facts) {
  // The pair, as a real number, that turns so many times within the original context.
  const auto pair_of = [&](double turns) {
    return rotated_dims(facts) * std::log(facts.rope_original_context / (turns * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(facts.rope_theta));
  };
  Ramp ramp{pair_of(facts.rope_beta_fast), pair_of(facts.rope_beta_slow)};
  if (facts.rope_truncate != 0) ramp = {std::floor(ramp.first), std::ceil(ramp.last)};
  ramp = {std::max(ramp.first, 0.0), std::min(ramp.last, rotated_dims(facts) - 1.0)};
  constexpr double kLeast = 0.001;  // its length divides
  if (ramp.first == ramp.last) ramp.last += kLeast;
  return ramp;
}

float yarn_frequency(float power, int pair, const Ramp& ramp, const ModelFacts& facts) {
  const float kept = 1.0f / power;
  const float slowed = 1.0f / (static_cast<float>(facts.rope_factor) * power);
  const float along = (static_cast<float>(pair) - static_cast<float>(ramp.first)) /
                      static_cast<float>(ramp.last - ramp.first);
  const float share_kept = 1.0f - std::clamp(along, 0.0f, 1.0f);
  return slowed * (1.0f - share_kept) + kept * share_kept;
}

/// [rotated_dims() / 2], radians a token.
std::vector<float> make_frequencies(const ModelFacts& facts) {
  const Ramp ramp = facts.rope_kind == RopeKind::kYarn ? yarn_ramp(facts) : Ramp{};
  std::vector<float> frequencies;
  const int dims = rotated_dims(facts);
  for (int pair = 0; pair < dims / 2; ++pair) {
    const float exponent = static_cast<float>(2 * pair) / static_cast<float>(dims);
    const float power = std::pow(static_cast<float>(facts.rope_theta), exponent);
    const float plain = 1.0f / power;
    switch (facts.rope_kind) {
      case RopeKind::kDefault:
        frequencies.push_back(plain);
        break;
      case RopeKind::kLlama3:
        frequencies.push_back(llama3_frequency(plain, facts));
        break;
      case RopeKind::kLinear:
        frequencies.push_back(plain / static_cast<float>(facts.rope_factor));
        break;
      case RopeKind::kYarn:
        frequencies.push_back(yarn_frequency(power, pair, ramp, facts));
        break;
    }
  }
  return frequencies;
}

}  // namespace

std::vector<float> make_rotary_table(const ModelFacts& facts, int context) {
  ModelFacts local = facts;
  local.rope_kind = RopeKind::kDefault;
  local.rope_theta = facts.rope_local_theta;
  local.rope_attention_factor = 1;
  std::vector<std::vector<float>> frequencies = {make_frequencies(facts)};
  if (rope_tables(facts) > 1) frequencies.push_back(make_frequencies(local));
  std::vector<float> table;
  table.reserve(static_cast<size_t>(context) * frequencies.size() * facts.head_dim);
  for (int position = 0; position < context; ++position) {
    for (const std::vector<float>& each : frequencies) {
      const auto scale =
          static_cast<float>((&each == frequencies.data() ? facts : local).rope_attention_factor);
      for (const float frequency : each) {
        const double angle = static_cast<float>(position) * frequency;
        table.push_back(static_cast<float>(std::cos(angle)) * scale);
        table.push_back(static_cast<float>(std::sin(angle)) * scale);
      }
      for (int dim = rotated_dims(facts); dim < facts.head_dim; dim += 2)
        table.insert(table.end(), {1.0f, 0.0f});
    }
  }
  return table;
}

}  // namespace soliton
