// OLMo 2: norms behind blocks alone; all of q is normed as one vector, and all of k.
#include "models/families/family.h"

namespace soliton {

extern const Family kOlmo2 = {.architecture = "Olmo2ForCausalLM",
                              .model_type = "olmo2",
                              .absent_norm_epsilon = 1e-5,
                              .head_norm = true,
                              .joint_norm = true,
                              .norms = NormPlacement::kAfter};

}  // namespace soliton
