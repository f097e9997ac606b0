// Seed-OSS: Llama with biases of q, k and v.
#include "models/families/family.h"

namespace soliton {

extern const Family kSeedOss = {.architecture = "SeedOssForCausalLM",
                                .model_type = "seed_oss",
                                .absent_kv_heads = 8,
                                .absent_head_dim = 128,
                                .qkv_bias = true,
                                .qkv_bias_member = "attention_bias",
                                .o_bias_member = "attention_out_bias"};

}  // namespace soliton
