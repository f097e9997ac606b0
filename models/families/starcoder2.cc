// StarCoder2 (3B, 7B, 15B): LayerNorm with a bias before each block, feed-forward networks without a gate, biases of all linear
// layers but lm_head, and a window in all layers.
#include "models/families/family.h"

namespace soliton {

extern const Family kStarcoder2 = {.architecture = "Starcoder2ForCausalLM",
                                   .model_type = "starcoder2",
                                   .norm_epsilon_member = "norm_epsilon",
                                   .absent_norm_epsilon = 1e-5,
                                   .absent_tied = true,
                                   .window = Window::kStated,
                                   .qkv_bias = true,
                                   .qkv_bias_member = "use_bias",
                                   .o_bias = true,
                                   .ffn_bias = true,
                                   .ffn_bias_member = "use_bias",
                                   .norms = NormPlacement::kCentred,
                                   .norm_bias = true,
                                   .ungated = true,
                                   .absent_activation = Activation::kGeluTanh,
                                   .tensors = {.up = "mlp.c_fc", .down = "mlp.c_proj"}};

}  // namespace soliton
