// What config.json says of a mixture of experts, in the words of its family.
#pragma once

#include "models/check.h"
#include "models/families/family.h"
#include "models/strict_json.h"

namespace soliton {

/// Behind the sizes of layers. Throws Error for what only the file can get wrong, and for what kernels cannot do.
void read_experts(const JsonView& config, const MixtureFamily& family, StatedFacts& stated);

}  // namespace soliton
