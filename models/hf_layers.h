// What config.json says of a family's layers: what gate and up become, and how far each layer attends.
#pragma once

#include "models/check.h"
#include "models/families/family.h"
#include "models/strict_json.h"

namespace soliton {

void read_activation(const JsonView& config, const Family& family, StatedFacts& stated);

/// Windows of the layers that have some. Behind num_layers.
void read_layer_windows(const JsonView& config, const Family& family, StatedFacts& stated);

}  // namespace soliton
