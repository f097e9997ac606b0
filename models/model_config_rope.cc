#include "models/model_config_rope.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "layout/fact_list.h"
#include "models/yaml_members.h"

namespace soliton {
namespace {

/// What rotates the heads of the layers, which take turns.
void read_layer_ropes(const StrictYaml& rope, StatedFacts& stated) {
  if (!rope.has("layers")) return;
  const std::vector<int64_t> ropes =
      rope.any_integers("layers", "a list: of each layer 0, 1 (local_theta) or 2 (not rotated)");
  Place place = rope.place("layers");
  place.got = fmt::format("[{}]", fmt::join(ropes, ", "));
  stated.state_ropes(ropes, std::move(place));
}

const std::initializer_list<std::string_view> kRopeKeys = {"kind",
                                                           "theta",
                                                           "dims",
                                                           "factor",
                                                           "low_freq_factor",
                                                           "high_freq_factor",
                                                           "original_context",
                                                           "beta_fast",
                                                           "beta_slow",
                                                           "attention_factor",
                                                           "truncate",
                                                           "short_factors",
                                                           "long_factors",
                                                           "local_theta",
                                                           "layers"};
constexpr std::array<std::string_view, 5> kCommonRopeKeys = {"kind", "theta", "dims", "local_theta",
                                                             "layers"};

/// What a kind of RoPE says beside its theta.
struct RopeKeys {
  RopeKind kind;
  std::vector<std::string_view> keys;
};
const std::vector<RopeKeys>& rope_keys() {
  static const std::vector<RopeKeys> kKeys = {
      {RopeKind::kDefault, {}},
      {RopeKind::kLlama3, {"original_context", "factor", "low_freq_factor", "high_freq_factor"}},
      {RopeKind::kLinear, {"factor"}},
      {RopeKind::kYarn,
       {"original_context", "truncate", "factor", "beta_fast", "beta_slow", "attention_factor"}},
      {RopeKind::kLongrope, {"original_context", "attention_factor", "short_factors", "long_factors"}}};
  return kKeys;
}
bool rope_has(RopeKind kind, std::string_view key) {
  const std::vector<std::string_view>& keys = rope_keys()[static_cast<size_t>(kind)].keys;
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void read_llama3(const StrictYaml& rope, StatedFacts& stated) {
  read_fact(rope, "factor", &ModelFacts::rope_factor, stated);
  read_fact(rope, "low_freq_factor", &ModelFacts::rope_low_freq_factor, stated);
  read_fact(rope, "high_freq_factor", &ModelFacts::rope_high_freq_factor, stated);
  read_fact(rope, "original_context", &ModelFacts::rope_original_context, stated);
}

void read_yarn(const StrictYaml& rope, StatedFacts& stated) {
  read_fact(rope, "factor", &ModelFacts::rope_factor, stated);
  read_fact(rope, "original_context", &ModelFacts::rope_original_context, stated);
  read_fact_if_there(rope, "beta_fast", &ModelFacts::rope_beta_fast, stated);
  read_fact_if_there(rope, "beta_slow", &ModelFacts::rope_beta_slow, stated);
  stated.facts.rope_attention_factor = yarn_attention_factor(stated.facts.rope_factor);
  read_fact_if_there(rope, "attention_factor", &ModelFacts::rope_attention_factor, stated);
  read_flag_if_there(rope, "truncate", &ModelFacts::rope_truncate, stated);
}

void read_longrope(const StrictYaml& rope, StatedFacts& stated) {
  read_fact(rope, "original_context", &ModelFacts::rope_original_context, stated);
  read_fact_if_there(rope, "attention_factor", &ModelFacts::rope_attention_factor, stated);
  for (const bool is_long : {false, true}) {
    const char* const key = is_long ? "long_factors" : "short_factors";
    const std::vector<double> factors = rope.any_numbers(key, "a list: a factor of each pair of dims");
    Place place = rope.place(key);
    place.got = fmt::format("{} of them", factors.size());
    const int pairs = rotated_pairs(stated.facts);
    if (std::cmp_not_equal(factors.size(), pairs))
      throw rope.error(key, fmt::format("{} numbers, one of each pair of dims", pairs), place.got);
    stated.state_rope_factors(is_long, factors, std::move(place));
  }
}

}  // namespace

void read_rope(const StrictYaml& rope, StatedFacts& stated) {
  ModelFacts& facts = stated.facts;
  rope.allow_keys(kRopeKeys);
  const std::string name = rope.text_choice("kind", {"default", "llama3", "linear", "yarn", "longrope"});
  for (const RopeKeys& each : rope_keys()) {
    if (name == rope_name(each.kind)) facts.rope_kind = each.kind;
  }
  read_fact(rope, "theta", &ModelFacts::rope_theta, stated);
  read_fact_if_there(rope, "dims", &ModelFacts::rope_dims, stated);
  read_fact_if_there(rope, "local_theta", &ModelFacts::rope_local_theta, stated);
  read_layer_ropes(rope, stated);
  for (const std::string_view key : kRopeKeys) {
    const bool is_common = std::ranges::find(kCommonRopeKeys, key) != kCommonRopeKeys.end();
    if (is_common || !rope.has(key) || rope_has(facts.rope_kind, key)) continue;
    std::vector<std::string> kinds;
    for (const RopeKeys& each : rope_keys()) {
      if (rope_has(each.kind, key)) kinds.emplace_back(rope_name(each.kind));
    }
    throw rope.error(key, fmt::format("this key only with kind = {}", fmt::join(kinds, " or ")),
                     fmt::format("it with kind = {}", name));
  }
  if (facts.rope_kind == RopeKind::kLlama3) read_llama3(rope, stated);
  if (facts.rope_kind == RopeKind::kLinear) read_fact(rope, "factor", &ModelFacts::rope_factor, stated);
  if (facts.rope_kind == RopeKind::kYarn) read_yarn(rope, stated);
  if (facts.rope_kind == RopeKind::kLongrope) read_longrope(rope, stated);
}

std::string format_rope(const ModelFacts& facts) {
  constexpr std::string_view kRope = "rope_";
  std::string text = fmt::format("rope:\n  kind: {}\n", rope_name(facts.rope_kind));
  for_each_fact(facts, [&](const char* fact, const auto& value) {
    if constexpr (!std::is_enum_v<std::decay_t<decltype(value)>>) {  // `kind` comes first
      const std::string_view key = fact;
      if (!key.starts_with(kRope)) return;
      if (key == "rope_truncate") {
        if (facts.rope_kind == RopeKind::kYarn) text += fmt::format("  truncate: {}\n", value != 0);
      } else if (key == "rope_theta" || key == "rope_dims" || key == "rope_local_theta" ||
                 rope_has(facts.rope_kind, key.substr(kRope.size()))) {
        text += fmt::format("  {}: {}\n", key.substr(kRope.size()), value);
      }
    }
  });
  if (facts.rope_kind == RopeKind::kLongrope) {
    const auto pairs = static_cast<size_t>(rotated_pairs(facts));
    text += fmt::format("  short_factors: [{}]\n",
                        fmt::join(std::span(facts.rope_short_factors).first(pairs), ", "));
    text += fmt::format("  long_factors: [{}]\n",
                        fmt::join(std::span(facts.rope_long_factors).first(pairs), ", "));
  }
  if (lists_ropes(facts)) text += fmt::format("  layers: {}\n", show_ropes(facts));
  return text;
}

}  // namespace soliton
