// RoPE in models/*.yaml: a part of model_config.h.
#pragma once

#include <string>

#include "models/check.h"
#include "models/strict_yaml.h"

namespace soliton {

/// The map `rope`. Behind head_dim and num_layers.
void read_rope(const StrictYaml& rope, StatedFacts& stated);

/// Its inverse.
std::string format_rope(const ModelFacts& facts);

}  // namespace soliton
