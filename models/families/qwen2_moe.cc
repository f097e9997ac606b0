// Qwen2's mixtures of experts (Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B): beside those that a token is routed to, one as wide as
// several, which all tokens go through, times the sigmoid of its gate.
#include "models/families/family.h"

namespace soliton {

extern const Family kQwen2Moe = {.architecture = "Qwen2MoeForCausalLM",
                                 .model_type = "qwen2_moe",
                                 .absent_kv_heads = 16,
                                 .absent_window = 4096,
                                 .window = Window::kSwitched,
                                 .qkv_bias = true,
                                 .qkv_bias_member = "qkv_bias",
                                 .mixture = MixtureFamily{.renormalised = "norm_topk_prob",
                                                          .sparse_step = "decoder_sparse_step",
                                                          .dense_layers = "mlp_only_layers",
                                                          .shared_ffn = "shared_expert_intermediate_size",
                                                          .shared_gate = true}};

}  // namespace soliton
