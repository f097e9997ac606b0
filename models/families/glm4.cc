// GLM-4 of 2025, dense: norms around blocks; the first half of a head's dims is rotated, by pairs that stand side by side; gate
// and up in one tensor.
#include "models/families/family.h"

namespace soliton {

extern const Family kGlm4 = {.architecture = "Glm4ForCausalLM",
                             .model_type = "glm4",
                             .absent_kv_heads = 2,
                             .absent_head_dim = 128,
                             .absent_norm_epsilon = 1.5625e-7,
                             .qkv_bias = true,
                             .qkv_bias_member = "attention_bias",
                             .norms = NormPlacement::kAround,
                             .norm_names = {"input_layernorm", "post_self_attn_layernorm",
                                            "post_attention_layernorm", "post_mlp_layernorm"},
                             .absent_rotary_factor = 0.5,
                             .projections = Projections::kFusedGateUp,
                             .pairs = true};

}  // namespace soliton
