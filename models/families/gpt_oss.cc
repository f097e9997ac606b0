// gpt-oss (20b, 120b): mixtures of experts whose layers attend to a window and to everything in turn, with sinks; all linear
// layers but lm_head have biases.
#include "models/families/family.h"

namespace soliton {

extern const Family kGptOss = {
    .architecture = "GptOssForCausalLM",
    .model_type = "gpt_oss",
    .absent_kv_heads = 8,
    .absent_head_dim = 64,
    .absent_window = 128,
    .absent_norm_epsilon = 1e-5,
    .window = Window::kLayers,
    .qkv_bias = true,
    .qkv_bias_member = "attention_bias",
    .o_bias = true,
    .sinks = true,
    .activation = Activation::kClampedSwiglu,
    .states_rope = true,
    .mixture = MixtureFamily{
        .count = "num_local_experts",
        .ffn = "intermediate_size",
        .bias = true,
        .expert_bias = true,
        .names = {.router = "mlp.router", .router_bias = "mlp.router.bias", .is_interleaved = true}}};

}  // namespace soliton
