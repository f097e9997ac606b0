// Phi-3 and Phi-4: q, k and v stand in one tensor, and gate and up in another. Contexts of 128k are stretched by longrope, and
// Phi-4-mini rotates a part of the dims only.
#include "models/families/family.h"

namespace soliton {

extern const Family kPhi3 = {.architecture = "Phi3ForCausalLM",
                             .model_type = "phi3",
                             .absent_norm_epsilon = 1e-5,
                             .window = Window::kStated,
                             .absent_rotary_factor = 1.0,
                             .projections = Projections::kFused};

}  // namespace soliton
