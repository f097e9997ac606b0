// Facts of RoPE that have to go with others. A part of check.h.
#pragma once

#include <string>

#include "models/check.h"

namespace soliton {

/// The key without those that it is nested in.
std::string last_word(const std::string& key);

/// Throws Error, as check() does.
void check_rope(const StatedFacts& stated);
/// Of longrope's factors. Throws Error, as check_same() does.
void check_same_factors(const StatedFacts& stated, const ModelFacts& expected, const std::string& whose);

}  // namespace soliton
