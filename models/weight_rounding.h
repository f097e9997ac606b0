// Weights of a checkpoint in floats that are rounded to integers as they are loaded (--weights), so that a model takes less of
// a card without another download.
#pragma once

#include <optional>
#include <string>

#include "models/hf_config.h"

namespace soliton {

/// What --weights takes.
inline constexpr const char* kRoundedWeights[] = {"q8", "q4"};

inline constexpr const char* kRoundedWeightsHelp =
    "rounds the layers of a model in floats as they are loaded, in groups of 32: q8 to 8 bits, q4 to 4 bits";

/// The layers' matrices become symmetric integers of 8 bits ("q8") or 4 ("q4"), in groups of 32; all else stays as it is. No
/// word: nothing changes. Throws Error (kMismatch) for a model that is quantised, or that no kernel can be generated for then.
void round_weights(const std::string& word, HfConfig& config);

}  // namespace soliton
