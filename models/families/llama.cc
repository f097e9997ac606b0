// Llama 2, 3, 3.1, 3.2, 3.3.
#include "models/families/family.h"

namespace soliton {

extern const Family kLlama = {.architecture = "LlamaForCausalLM", .model_type = "llama"};

}  // namespace soliton
