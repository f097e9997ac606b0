// Phi-3 and Phi-4: q, k and v stand in one tensor, and gate and up in another. What longrope stretches (Phi-3.5), and what
// rotates a part of the dims only (Phi-4-mini), is refused.
#include "models/families/family.h"

namespace soliton {

extern const Family kPhi3 = {.architecture = "Phi3ForCausalLM",
                             .model_type = "phi3",
                             .absent_norm_epsilon = 1e-5,
                             .window = Window::kStated,
                             .projections = Projections::kFused};

}  // namespace soliton
