// OLMo 3: OLMo 2 with windows in three of four layers, whose rotations are not stretched.
#include "models/families/family.h"

namespace soliton {

extern const Family kOlmo3 = {.architecture = "Olmo3ForCausalLM",
                              .model_type = "olmo3",
                              .absent_window = 4096,
                              .absent_norm_epsilon = 1e-5,
                              .absent_rope_theta = 500000.0,
                              .window = Window::kLayers,
                              .window_period = 4,
                              .ropes = Ropes::kOfWindows,
                              .absent_local_theta = 500000.0,
                              .head_norm = true,
                              .joint_norm = true,
                              .norms = NormPlacement::kAfter};

}  // namespace soliton
