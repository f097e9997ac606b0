// Qwen3's mixtures of experts (Qwen3-30B-A3B, Qwen3-235B-A22B): attention as in the dense models.
#include "models/families/family.h"

namespace soliton {

extern const Family kQwen3Moe = {.architecture = "Qwen3MoeForCausalLM",
                                 .model_type = "qwen3_moe",
                                 .absent_kv_heads = 4,
                                 .absent_window = 4096,
                                 .window = Window::kSwitched,
                                 .head_norm = true,
                                 .mixture = MixtureFamily{.other_count = "num_local_experts",
                                                          .renormalised = "norm_topk_prob",
                                                          .sparse_step = "decoder_sparse_step",
                                                          .dense_layers = "mlp_only_layers"}};

}  // namespace soliton
