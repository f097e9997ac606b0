// Members of config.json that become facts. Whether a value may be that, check() says.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "models/check.h"
#include "models/strict_json.h"

namespace soliton {

/// Absent, rather than null.
inline bool is_absent(const JsonView& config, const char* key) {
  return !config.object().contains(key);
}

/// The member becomes the fact.
inline void read_fact(const JsonView& view, int32_t ModelFacts::*fact, StatedFacts& stated) {
  stated.state(fact, view.integer(), view.place());
}
inline void read_fact(const JsonView& view, double ModelFacts::*fact, StatedFacts& stated) {
  stated.state(fact, view.number(), view.place());
}

/// The same of a member that may be absent, which means `fallback`.
template <class Type>
inline void read_fact_or(const JsonView& view, Type ModelFacts::*fact, Type fallback, StatedFacts& stated) {
  if (!view.is_null()) return read_fact(view, fact, stated);
  Place place = view.place();
  place.got = fmt::format("{}", fallback);
  stated.state(fact, fallback, place);
}

inline void state_flag(int32_t ModelFacts::*fact, bool value, Place place, StatedFacts& stated) {
  place.got = fmt::format("{}", value);
  stated.state(fact, value ? 1 : 0, std::move(place));
}

/// What a member implies, besides what it says.
inline Place part_of(Place place, std::string_view what) {
  place.key += fmt::format(": {}", what);
  return place;
}

inline bool boolean_or(const JsonView& view, bool fallback) {
  return view.is_null() ? fallback : view.boolean();
}

}  // namespace soliton
