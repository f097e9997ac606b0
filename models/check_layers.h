// Facts that layers list, each its own: widths, windows, tables of rotations. A part of check.h.
#pragma once

#include <string>

#include "models/check.h"

namespace soliton {

bool has_experts(const ModelFacts& facts);
/// Have some layers a theta of their own?
bool has_local_rope(const ModelFacts& facts);

Error refusal(ExitCode code, const Place& place, const std::string& expected);

/// Throws Error, as check() does.
void check_layers(const StatedFacts& stated);
/// Throws Error, as check_same() does.
void check_same_layers(const StatedFacts& stated, const ModelFacts& expected, const std::string& whose);

}  // namespace soliton
