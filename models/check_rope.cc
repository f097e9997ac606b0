#include "models/check_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "models/check_layers.h"
#include "models/limits.h"

namespace soliton {
namespace {

/// Both bound a band whose width divides.
void check_above(const StatedFacts& stated, double ModelFacts::*high, double ModelFacts::*low) {
  if (stated.facts.*high > stated.facts.*low) return;
  throw refusal(ExitCode::kBadFile, stated.place(high),
                fmt::format("a number above {} = {}", last_word(stated.place(low).key), stated.facts.*low));
}

Place place_of_factors(const StatedFacts& stated, size_t which) {
  const Place& place = stated.factors_places[which];
  if (!place.file.empty()) return place;
  return {
      .file = stated.file, .key = which == 0 ? "rope.short_factors" : "rope.long_factors", .got = "nothing"};
}

/// Longrope's: one of each pair, and of others none.
void check_factors(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  const size_t used = facts.rope_kind == RopeKind::kLongrope ? static_cast<size_t>(rotated_pairs(facts)) : 0;
  const std::span<const float> lists[] = {facts.rope_short_factors, facts.rope_long_factors};
  for (size_t i = 0; i < std::size(lists); ++i) {
    const auto is_factor = [](float factor) { return kRopePairFactorLimit.contains(factor); };
    const auto is_none = [](float factor) { return factor == 0; };
    const bool can_be = std::ranges::all_of(lists[i].first(used), is_factor) &&
                        std::ranges::all_of(lists[i].subspan(used), is_none);
    if (can_be) continue;
    throw refusal(
        ExitCode::kBadFile, place_of_factors(stated, i),
        fmt::format("{} numbers from {} to {}", used, kRopePairFactorLimit.min, kRopePairFactorLimit.max));
  }
}

}  // namespace

std::string last_word(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

void StatedFacts::state_rope_factors(bool is_long, const std::vector<double>& factors, Place place) {
  auto& to = is_long ? facts.rope_long_factors : facts.rope_short_factors;
  // One too many is seen by check().
  for (size_t i = 0; i < std::min(factors.size(), std::size(to)); ++i) to[i] = static_cast<float>(factors[i]);
  factors_places[is_long ? 1 : 0] = std::move(place);
}

void check_rope(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  if (facts.rope_dims > facts.head_dim) {
    throw refusal(
        ExitCode::kBadFile, stated.place(&ModelFacts::rope_dims),
        fmt::format("at most {} = {}", last_word(stated.place(&ModelFacts::head_dim).key), facts.head_dim));
  }
  // Frequencies between the two are interpolated.
  if (facts.rope_kind == RopeKind::kLlama3)
    check_above(stated, &ModelFacts::rope_high_freq_factor, &ModelFacts::rope_low_freq_factor);
  if (facts.rope_kind == RopeKind::kYarn)
    check_above(stated, &ModelFacts::rope_beta_fast, &ModelFacts::rope_beta_slow);
  check_factors(stated);
  if (scales_queries(facts) && (facts.head_norm != 0 || has_local_rope(facts) || lists_ropes(facts))) {
    throw refusal(stated.unsupported, stated.place(&ModelFacts::query_scale_beta),
                  "0 where heads are normed, or layers not all rotated alike");
  }
}

void check_same_factors(const StatedFacts& stated, const ModelFacts& expected, const std::string& whose) {
  const auto check_list = [&](size_t which, const auto& own, const auto& other) {
    if (std::ranges::equal(own, other)) return;
    throw refusal(ExitCode::kMismatch, place_of_factors(stated, which), fmt::format("others ({})", whose));
  };
  check_list(0, stated.facts.rope_short_factors, expected.rope_short_factors);
  check_list(1, stated.facts.rope_long_factors, expected.rope_long_factors);
}

}  // namespace soliton
