// Formats of single matrices where a checkpoint's configuration names linear layers.
#pragma once

#include "models/check.h"
#include "models/checkpoint.h"
#include "models/quantization_config.h"

namespace soliton {

/// Does the configuration name any?
bool names_modules(const QuantizationConfig& quantization);

/// States which matrices of which layers have another format than most. `stated` has passed check() as if none had; `checkpoint`
/// is that of its facts. Throws Error (kMismatch) if linear layers that are multiplied together differ, if there are three
/// formats, or for one that lm_head may not have.
void state_modules(const QuantizationConfig& quantization, const Checkpoint& checkpoint, StatedFacts& stated);

}  // namespace soliton
