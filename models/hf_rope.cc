// config.json has two schemas: rope_theta and rope_scaling at the top, or both inside rope_parameters, which
// may be nested by layer type. A file that states both has to state the same.
#include "models/hf_rope.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "models/hf_members.h"
#include "models/limits.h"

namespace soliton {
namespace {

using nlohmann::json;

constexpr double kMaxScale = 1e15;  // of yarn's mscale, which is no fact
constexpr double kMaxAlpha = 1e6;

double number_or(const JsonView& view, double fallback, double min, double max) {
  return view.is_null() ? fallback : view.number(min, max);
}

/// The object that describes RoPE, whichever schema it comes from; may be null.
JsonView find_rope(const JsonView& config, const Family& family) {
  const JsonView scaling = config["rope_scaling"];
  const JsonView parameters = config["rope_parameters"];
  if (parameters.is_null()) return scaling;
  if (!scaling.is_null() && scaling.object() != parameters.object()) {
    throw scaling.error("expected what rope_parameters says, or nothing; got something else");
  }
  const json& members = parameters.object();
  const bool nested = !members.empty() && std::all_of(members.begin(), members.end(),
                                                      [](const json& member) { return member.is_object(); });
  if (!nested) return parameters;
  if (family.ropes == Ropes::kOfWindows && members.contains("full_attention"))
    return parameters["full_attention"];
  for (const json& member : members) {
    if (member != members.front()) {
      throw parameters.error(ExitCode::kMismatch, "expected the same for every layer type, got differences");
    }
  }
  return parameters[members.begin().key()];
}

// Theta grows with what is longer than max_position_embeddings, beyond which no context goes here: up to it nothing does.
constexpr const char* kDynamic = "dynamic";

/// From rope_type or its older name `type`.
RopeKind read_rope_kind(const JsonView& rope) {
  const JsonView current = rope["rope_type"];
  const JsonView legacy = rope["type"];
  if (!current.is_null() && !legacy.is_null() && current.string() != legacy.string()) {
    throw legacy.error("expected what rope_type says, {}, got {}", current.describe(), legacy.describe());
  }
  const JsonView view = current.is_null() ? legacy : current;
  if (view.is_null()) {
    if (!rope["factor"].is_null()) throw current.error("expected a string beside factor, got nothing");
    return RopeKind::kDefault;
  }
  if (view.string() == kDynamic) return RopeKind::kDefault;
  std::vector<std::string> known;
  for (const RopeKind kind :
       {RopeKind::kDefault, RopeKind::kLlama3, RopeKind::kLinear, RopeKind::kYarn, RopeKind::kLongrope}) {
    if (view.string() == rope_name(kind)) return kind;
    known.push_back(in_quotes(rope_name(kind)));
  }
  known.push_back(in_quotes(kDynamic));
  throw view.error(ExitCode::kMismatch, "expected one of {}, got {}", fmt::join(known, ", "),
                   view.describe());
}

void read_llama3_rope(const JsonView& rope, StatedFacts& stated) {
  read_fact(rope["factor"], &ModelFacts::rope_factor, stated);
  read_fact(rope["low_freq_factor"], &ModelFacts::rope_low_freq_factor, stated);
  read_fact(rope["high_freq_factor"], &ModelFacts::rope_high_freq_factor, stated);
  read_fact(rope["original_max_position_embeddings"], &ModelFacts::rope_original_context, stated);
}

/// The context may be stated as it was before it was stretched: what is stretched to counts if it is longer.
void stretch_context(const JsonView& rope, StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  if (!kRopeFactorLimit.contains(facts.rope_factor)) return;  // check() says so
  const auto stretched = static_cast<int64_t>(facts.rope_factor * facts.rope_original_context);
  if (stretched <= facts.max_context) return;
  Place place = stated.place(&ModelFacts::max_context);
  place.got += fmt::format(", stretched to {} by {}", stretched, rope["factor"].place().key);
  stated.state(&ModelFacts::max_context, stretched, place);
}

/// As transformers reads it.
void read_yarn_rope(const JsonView& rope, StatedFacts& stated) {
  ModelFacts& facts = stated.facts;
  read_fact_or(rope["original_max_position_embeddings"], &ModelFacts::rope_original_context,
               facts.max_context, stated);
  const double implied_factor = std::max(1.0, double(facts.max_context) / facts.rope_original_context);
  read_fact_or(rope["factor"], &ModelFacts::rope_factor, implied_factor, stated);
  read_fact_or(rope["beta_fast"], &ModelFacts::rope_beta_fast, facts.rope_beta_fast, stated);
  read_fact_or(rope["beta_slow"], &ModelFacts::rope_beta_slow, facts.rope_beta_slow, stated);
  const JsonView truncate = rope["truncate"];
  state_flag(&ModelFacts::rope_truncate, boolean_or(truncate, true), truncate.place(), stated);
  const double mscale = number_or(rope["mscale"], 0.0, 0.0, kMaxScale);
  const double mscale_all_dim = number_or(rope["mscale_all_dim"], 0.0, 0.0, kMaxScale);
  const bool is_scaled = mscale != 0.0 && mscale_all_dim != 0.0;
  const double implied = is_scaled ? yarn_attention_factor(facts.rope_factor, mscale) /
                                         yarn_attention_factor(facts.rope_factor, mscale_all_dim)
                                   : yarn_attention_factor(facts.rope_factor);
  read_fact_or(rope["attention_factor"], &ModelFacts::rope_attention_factor, implied, stated);
  stretch_context(rope, stated);
}

void read_rope_factors(const JsonView& view, bool is_long, StatedFacts& stated) {
  const int pairs = rotated_pairs(stated.facts);
  if (std::cmp_not_equal(view.array_size(), pairs))
    throw view.error("expected one for each of {} pairs of dims, got {}", pairs, view.array_size());
  std::vector<double> factors;
  for (size_t pair = 0; pair < view.array_size(); ++pair)
    factors.push_back(view[pair].number(kRopePairFactorLimit.min, kRopePairFactorLimit.max));
  stated.state_rope_factors(is_long, factors, view.place());
}

/// As transformers reads it: the context before it was stretched may be stated at the top, and `factor` only matters to the
/// attention factor.
void read_longrope(const JsonView& config, const JsonView& rope, StatedFacts& stated) {
  ModelFacts& facts = stated.facts;
  for (const char* member : {"short_mscale", "long_mscale"}) {
    if (!rope[member].is_null())
      throw rope[member].error(ExitCode::kMismatch, "expected nothing, got {}: not supported",
                               rope[member].describe());
  }
  const JsonView original = config["original_max_position_embeddings"];
  read_fact_or(original.is_null() ? rope["original_max_position_embeddings"] : original,
               &ModelFacts::rope_original_context, facts.max_context, stated);
  const double stretched = double(facts.max_context) / std::max(facts.rope_original_context, 1);
  const double factor = number_or(rope["factor"], stretched, 0, kMaxScale);
  read_fact_or(rope["attention_factor"], &ModelFacts::rope_attention_factor,
               longrope_attention_factor(factor, facts.rope_original_context), stated);
  read_rope_factors(rope["short_factor"], false, stated);
  read_rope_factors(rope["long_factor"], true, stated);
}

/// Hunyuan's `alpha` of dynamic scaling: another theta, whatever the context.
void read_alpha(const JsonView& view, StatedFacts& stated) {
  const double alpha = view.number(1, kMaxAlpha);
  const int dims = rotated_dims(stated.facts);
  if (dims <= 2) return;
  Place place = view.place();
  const double theta = stated.facts.rope_theta * std::pow(alpha, dims / (dims - 2.0));
  place.got = fmt::format("{}, which makes theta {}", view.describe(), theta);
  stated.state(&ModelFacts::rope_theta, theta, std::move(place));
}

/// What queries are multiplied with beyond the original context, by position.
void read_query_scale(const JsonView& rope, const Family& family, StatedFacts& stated) {
  const JsonView beta = rope["llama_4_scaling_beta"];
  if (beta.is_null()) return;
  if (!family.scales_queries)
    throw beta.error(ExitCode::kMismatch, "expected nothing, got {}: not supported", beta.describe());
  if (beta.number() == 0) return;
  read_fact(beta, &ModelFacts::query_scale_beta, stated);
  read_fact(rope["original_max_position_embeddings"], &ModelFacts::query_scale_context, stated);
}

/// Which share of a head's dims is rotated. Families that have no such share take 1.
void read_rotary_factor(const JsonView& view, const Family& family, StatedFacts& stated) {
  if (view.is_null()) return;
  const double factor = view.number(0.0, 1.0);
  if (!family.absent_rotary_factor && factor != 1.0)
    throw view.error(ExitCode::kMismatch, "expected 1, got {}: not supported", view.describe());
  const auto dims = static_cast<int32_t>(stated.facts.head_dim * factor);
  Place place = view.place();
  place.got += fmt::format(", which is {} dims", dims);
  stated.state(&ModelFacts::rope_dims, factor == 1.0 ? 0 : dims, std::move(place));
}

}  // namespace

void read_rope(const JsonView& config, const Family& family, StatedFacts& stated) {
  const JsonView top_theta = config["rope_theta"];
  read_fact_or(top_theta, &ModelFacts::rope_theta, family.absent_rope_theta, stated);
  const double absent_factor = family.absent_rotary_factor.value_or(1);
  stated.facts.rope_dims =
      absent_factor == 1 ? 0 : static_cast<int32_t>(stated.facts.head_dim * absent_factor);
  read_rotary_factor(config["partial_rotary_factor"], family, stated);
  const JsonView rope = find_rope(config, family);
  if (rope.is_null() && family.states_rope)
    throw config["rope_scaling"].error("expected an object, got nothing");
  if (rope.is_null()) {
    Place place = config["rope_scaling"].place();
    place.got = rope_name(RopeKind::kDefault);
    return stated.state(&ModelFacts::rope_kind, RopeKind::kDefault, std::move(place));
  }
  if (const JsonView theta = rope["rope_theta"]; !theta.is_null()) {
    if (!top_theta.is_null() && theta.number() != top_theta.number()) {
      throw theta.error("expected what rope_theta at the top says, {}, got {}", top_theta.number(),
                        theta.number());
    }
    read_fact(theta, &ModelFacts::rope_theta, stated);
  }
  read_rotary_factor(rope["partial_rotary_factor"], family, stated);
  const RopeKind kind = read_rope_kind(rope);
  Place kind_place = rope["rope_type"].is_null() ? rope["type"].place() : rope["rope_type"].place();
  const bool is_dynamic = kind_place.got == in_quotes(kDynamic);
  kind_place.got = rope_name(kind);
  stated.state(&ModelFacts::rope_kind, kind, std::move(kind_place));
  if (kind == RopeKind::kLlama3) read_llama3_rope(rope, stated);
  if (kind == RopeKind::kLinear) read_fact(rope["factor"], &ModelFacts::rope_factor, stated);
  if (kind == RopeKind::kYarn) read_yarn_rope(rope, stated);
  if (kind == RopeKind::kLongrope) read_longrope(config, rope, stated);
  if (is_dynamic && family.rope_alpha && !rope["alpha"].is_null()) read_alpha(rope["alpha"], stated);
  read_query_scale(rope, family, stated);
}

}  // namespace soliton
