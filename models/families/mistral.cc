// Mistral 7B and Nemo: of v0.1 attention sees the latest 4096 tokens only.
#include "models/families/family.h"

namespace soliton {

extern const Family kMistral = {.architecture = "MistralForCausalLM",
                                .model_type = "mistral",
                                .absent_kv_heads = 8,
                                .absent_window = 4096,
                                .window = Window::kStated};

}  // namespace soliton
