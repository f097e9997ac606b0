// What config.json says of a family's layers: what gate and up become, and how far each layer attends.
#pragma once

#include "models/check.h"
#include "models/families/family.h"
#include "models/strict_json.h"

namespace soliton {

void read_activation(const JsonView& config, const Family& family, StatedFacts& stated);

/// Windows of the layers that have some. Behind num_layers.
void read_layer_windows(const JsonView& config, const Family& family, StatedFacts& stated);

/// What rotates the heads of the layers. Behind the windows, and RoPE.
void read_layer_ropes(const JsonView& config, const Family& family, StatedFacts& stated);

/// For Family::read_further. A member that may be absent, or null, which means `absent`; and one that is no cap if it is null.
void read_scale(const JsonView& config, const char* member, double ModelFacts::*fact, double absent,
                StatedFacts& stated);
void read_soft_cap(const JsonView& config, const char* member, double ModelFacts::*fact, double absent,
                   StatedFacts& stated);

/// The same of Gemma: scores are scaled by the root of `query_pre_attn_scalar`, the embedding by that of the hidden size.
void read_gemma_scales(const JsonView& config, StatedFacts& stated);

}  // namespace soliton
