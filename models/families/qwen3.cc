// Qwen3, dense: heads of q and k are normed before they are rotated.
#include "models/families/family.h"

namespace soliton {

extern const Family kQwen3 = {.architecture = "Qwen3ForCausalLM",
                              .model_type = "qwen3",
                              .absent_kv_heads = 32,
                              .absent_head_dim = 128,
                              .absent_window = 4096,
                              .window = Window::kSwitched,
                              .head_norm = true};

}  // namespace soliton
