// GLM-4.5 and 4.5-Air: mixtures of experts that are routed to by sigmoids, with a bias for the choice, behind a few layers that
// are none; half of the dims of a head are rotated.
#include "models/families/family.h"

namespace soliton {

extern const Family kGlm4Moe = {.architecture = "Glm4MoeForCausalLM",
                                .model_type = "glm4_moe",
                                .absent_kv_heads = 8,
                                .absent_norm_epsilon = 1e-5,
                                .qkv_bias_member = "attention_bias",
                                .head_norm_member = "use_qk_norm",
                                .absent_rotary_factor = 0.5,
                                .further_layers = "num_nextn_predict_layers",
                                .mixture = MixtureFamily{.count = "n_routed_experts",
                                                         .renormalised = "norm_topk_prob",
                                                         .absent_renormalised = true,
                                                         .shared_count = "n_shared_experts",
                                                         .first_sparse = "first_k_dense_replace",
                                                         .num_groups = "n_group",
                                                         .scale = "routed_scaling_factor",
                                                         .scores = RouterScores::kSigmoid,
                                                         .bias = true,
                                                         .names = {.shared = "mlp.shared_experts"}}};

}  // namespace soliton
