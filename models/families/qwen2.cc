// Qwen2 and Qwen2.5: q, k and v have biases.
#include "models/families/family.h"

namespace soliton {

extern const Family kQwen2 = {.architecture = "Qwen2ForCausalLM",
                              .model_type = "qwen2",
                              .absent_kv_heads = 32,
                              .absent_window = 4096,
                              .window = Window::kSwitched,
                              .qkv_bias = true};

}  // namespace soliton
