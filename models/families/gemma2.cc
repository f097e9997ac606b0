// Gemma 2: norms around blocks, of 1 + weight, capped scores and logits, a window in every second layer.
#include "models/families/family.h"
#include "models/hf_layers.h"
#include "models/hf_members.h"

namespace soliton {
namespace {

void read_gemma2(const JsonView& config, StatedFacts& stated) {
  read_gemma_scales(config, stated);
  read_soft_cap(config, "attn_logit_softcapping", &ModelFacts::attention_soft_cap, 50.0, stated);
  read_soft_cap(config, "final_logit_softcapping", &ModelFacts::logit_soft_cap, 30.0, stated);
}

}  // namespace

extern const Family kGemma2 = {.architecture = "Gemma2ForCausalLM",
                               .model_type = "gemma2",
                               .absent_kv_heads = 4,
                               .absent_head_dim = 256,
                               .absent_window = 4096,
                               .absent_tied = true,
                               .window = Window::kLayers,
                               .norms = NormPlacement::kAround,
                               .norm_offset = true,
                               .activation_member = "hidden_activation",
                               .unsupported = "use_bidirectional_attention",
                               .read_further = read_gemma2};

}  // namespace soliton
