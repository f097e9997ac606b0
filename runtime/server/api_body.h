// Bodies of requests as JSON, read with limits.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "models/strict_json.h"

namespace soliton {

/// What the body calls itself in errors of JsonView.
inline constexpr const char* kBodyName = "body";

// Enough to forbid every token of the largest vocabulary, and for prompts of tokens; an empty list of two bytes takes 64.
inline constexpr JsonLimits kBodyLimits = {.values = 2'000'000, .members = 500'000};

/// A body as JSON, which knows one kind of numbers: 5.0 is the integer 5. Throws Error, as parse_json().
nlohmann::json parse_body(const std::string& text);
/// The same body with members in its order, as templates see them.
nlohmann::ordered_json parse_ordered_body(const std::string& text);
/// The same of a body that parse_ordered_body() has read.
nlohmann::json with_integers(const nlohmann::ordered_json& body);

}  // namespace soliton
