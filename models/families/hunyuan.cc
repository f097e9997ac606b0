// Hunyuan of 2025, dense: heads are normed once they are rotated, which is to say that the norms' weights come last; a dynamic
// rope whose `alpha` makes it a fixed one.
#include "models/families/family.h"

namespace soliton {

extern const Family kHunyuan = {.architecture = "HunYuanDenseV1ForCausalLM",
                                .model_type = "hunyuan_v1_dense",
                                .absent_norm_epsilon = 1e-5,
                                .head_norm = true,
                                .head_norm_last = true,
                                .head_norm_names = {"self_attn.query_layernorm", "self_attn.key_layernorm"},
                                .rope_alpha = true};

}  // namespace soliton
