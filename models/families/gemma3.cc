// Gemma 3, its text alone: norms around blocks, of 1 + weight, heads that are normed, windows in five of six layers, which
// are rotated by a theta of their own.
#include "models/families/family.h"
#include "models/hf_layers.h"
#include "models/hf_members.h"

namespace soliton {
namespace {

/// As Gemma 2, but scores are not capped.
void read_gemma3(const JsonView& config, StatedFacts& stated) {
  read_gemma_scales(config, stated);
  read_soft_cap(config, "final_logit_softcapping", &ModelFacts::logit_soft_cap, 0.0, stated);
  for (const char* member : {"use_bidirectional_attention", "attn_logit_softcapping"}) {
    const JsonView view = config[member];
    if (view.is_null() || (view.describe() == "false")) continue;
    throw view.error(ExitCode::kMismatch, "expected nothing, got {}: not supported", view.describe());
  }
}

constexpr Family kText = {.architecture = "Gemma3ForCausalLM",
                          .model_type = "gemma3_text",
                          .absent_kv_heads = 4,
                          .absent_heads = 8,
                          .absent_vocabulary = 262208,
                          .absent_context = 131072,
                          .absent_head_dim = 256,
                          .absent_window = 4096,
                          .absent_rope_theta = 1000000.0,
                          .absent_tied = true,
                          .window = Window::kLayers,
                          .window_period = 6,
                          .window_period_member = "sliding_window_pattern",
                          .ropes = Ropes::kOfWindows,
                          .local_theta_member = "rope_local_base_freq",
                          .head_norm = true,
                          .norms = NormPlacement::kAround,
                          .norm_offset = true,
                          .activation_member = "hidden_activation",
                          .read_further = read_gemma3};

/// The same beside an encoder of pictures, which is not read.
constexpr Family with_pictures(Family family) {
  family.architecture = "Gemma3ForConditionalGeneration";
  family.model_type = "gemma3";
  family.text_member = "text_config";
  family.tensors_prefix = "language_model.";
  return family;
}

}  // namespace

extern const Family kGemma3 = kText;
extern const Family kGemma3Pictures = with_pictures(kText);

}  // namespace soliton
