// What config.json says of RoPE: its kind, its theta, and how it is stretched.
#pragma once

#include "models/check.h"
#include "models/families/family.h"
#include "models/strict_json.h"

namespace soliton {

/// Behind the sizes. What rotates layers that differ, read_layer_ropes() reads.
void read_rope(const JsonView& config, const Family& family, StatedFacts& stated);

}  // namespace soliton
