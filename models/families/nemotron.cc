// Nemotron 3 and 4, Minitron (4B, 8B, 15B): LayerNorm of 1 + weight and a bias, feed-forward networks without a gate, of squared
// ReLUs; half of a head's dims are rotated.
#include "models/families/family.h"

namespace soliton {

extern const Family kNemotron = {.architecture = "NemotronForCausalLM",
                                 .model_type = "nemotron",
                                 .norm_epsilon_member = "norm_eps",
                                 .absent_norm_epsilon = 1e-5,
                                 .norms = NormPlacement::kCentred,
                                 .norm_bias = true,
                                 .norm_offset = true,
                                 .ungated = true,
                                 .absent_activation = Activation::kReluSquared,
                                 .absent_rotary_factor = 0.5};

}  // namespace soliton
