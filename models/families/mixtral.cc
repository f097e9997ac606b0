// Mixtral: Mistral whose layers are mixtures of experts.
#include "models/families/family.h"

namespace soliton {

extern const Family kMixtral = {.architecture = "MixtralForCausalLM",
                                .model_type = "mixtral",
                                .absent_kv_heads = 8,
                                .absent_norm_epsilon = 1e-5,
                                .window = Window::kStated,
                                .mixture = MixtureFamily{.count = "num_local_experts",
                                                         .ffn = "intermediate_size",
                                                         .names = {.router = "block_sparse_moe.gate",
                                                                   .experts = "block_sparse_moe.experts",
                                                                   .gate = "w1",
                                                                   .up = "w3",
                                                                   .down = "w2"}}};

}  // namespace soliton
