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

/// Longrope: each pair is slowed down by a factor of its own. Of a stretched context all tokens have those of long ones.
float longrope_frequency(float power, int pair, int context, const ModelFacts& facts) {
  const bool is_long = context > facts.rope_original_context;
  const float factor = is_long ? facts.rope_long_factors[pair] : facts.rope_short_factors[pair];
  return 1.0f / (factor * power);
}

/// [rotated_pairs()], radians a token.
std::vector<float> make_frequencies(const ModelFacts& facts, int context) {
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
      case RopeKind::kLongrope:
        frequencies.push_back(longrope_frequency(power, pair, context, facts));
        break;
    }
  }
  return frequencies;
}

/// How the pairs of a table turn, and what its cosines and sines are multiplied with at a position.
struct Table {
  std::vector<float> frequencies;
  float scale = 1;
  bool scales_queries = false;

  float scale_at(int position, const ModelFacts& facts) const {
    if (!scales_queries) return scale;
    const float lengths =
        std::floor(static_cast<float>(position) / static_cast<float>(facts.query_scale_context));
    return scale * (1.0f + static_cast<float>(facts.query_scale_beta) * std::log(1.0f + lengths));
  }
};

std::vector<Table> make_tables(const ModelFacts& facts, int context) {
  std::vector<Table> tables = {
      {make_frequencies(facts, context), static_cast<float>(facts.rope_attention_factor)}};
  if (scales_queries(facts)) {
    tables.push_back(tables[0]);
    tables[1].scales_queries = true;
  } else if (rope_tables(facts) > 1) {
    ModelFacts local = facts;
    local.rope_kind = RopeKind::kDefault;
    local.rope_theta = facts.rope_local_theta;
    tables.push_back({make_frequencies(local, context)});
  }
  return tables;
}

}  // namespace

std::vector<float> make_rotary_table(const ModelFacts& facts, int num_positions, int context) {
  const std::vector<Table> tables = make_tables(facts, context);
  std::vector<float> values;
  values.reserve(static_cast<size_t>(num_positions) * tables.size() * facts.head_dim);
  for (int position = 0; position < num_positions; ++position) {
    for (const Table& table : tables) {
      const float scale = table.scale_at(position, facts);
      for (const float frequency : table.frequencies) {
        const double angle = static_cast<float>(position) * frequency;
        values.push_back(static_cast<float>(std::cos(angle)) * scale);
        values.push_back(static_cast<float>(std::sin(angle)) * scale);
      }
      const float kept = table.scales_queries ? scale / tables[0].scale : 1.0f;
      for (int dim = rotated_dims(facts); dim < facts.head_dim; dim += 2)
        values.insert(values.end(), {kept, 0.0f});
    }
  }
  return values;
}

}  // namespace soliton
