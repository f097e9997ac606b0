// OLMoE: all of q is normed as one vector, and all of k, before heads are rotated.
#include "models/families/family.h"

namespace soliton {

extern const Family kOlmoe = {
    .architecture = "OlmoeForCausalLM",
    .model_type = "olmoe",
    .absent_norm_epsilon = 1e-5,
    .head_norm = true,
    .joint_norm = true,
    .unsupported = "clip_qkv",
    .mixture = MixtureFamily{.ffn = "intermediate_size", .renormalised = "norm_topk_prob"}};

}  // namespace soliton
