// EXAONE 4: norms behind blocks alone, heads that are normed; where layers have windows, the others rotate nothing.
#include "models/families/family.h"

namespace soliton {

extern const Family kExaone4 = {.architecture = "Exaone4ForCausalLM",
                                .model_type = "exaone4",
                                .absent_kv_heads = 32,
                                .absent_window = 4096,
                                .absent_norm_epsilon = 1e-5,
                                .window = Window::kLayers,
                                .window_period = 4,
                                .window_period_member = "sliding_window_pattern",
                                .ropes = Ropes::kByWindows,
                                .head_norm = true,
                                .norms = NormPlacement::kAfter};

}  // namespace soliton
