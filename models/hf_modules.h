// Formats of single matrices where a checkpoint's configuration names the linear layers that are quantised.
#pragma once

#include "models/check.h"
#include "models/checkpoint.h"
#include "models/quantization_config.h"

namespace soliton {

/// States which matrices of which layers are in E2M1. `stated` has passed check() as if none were; `checkpoint` is that of its
/// facts. Throws Error (kMismatch) if of linear layers that are multiplied together only some are, or lm_head is.
void state_modules(const QuantizationConfig& quantization, const Checkpoint& checkpoint, StatedFacts& stated);

}  // namespace soliton
