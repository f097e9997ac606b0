// AFM of Arcee (4.5B): Llama, but for feed-forward networks without a gate, of squared ReLUs.
#include "models/families/family.h"

namespace soliton {

extern const Family kArcee = {.architecture = "ArceeForCausalLM",
                              .model_type = "arcee",
                              .absent_norm_epsilon = 1e-5,
                              .ungated = true,
                              .absent_activation = Activation::kReluSquared};

}  // namespace soliton
