// Cohere's: Command R, and Command R7B, whose every fourth layer sees all of the context and rotates nothing, where the others
// have a window. LayerNorm without biases; attention and the feed-forward network both read what it gives; logits are
// scaled.
#include "models/families/family.h"
#include "models/hf_layers.h"
#include "models/hf_members.h"

namespace soliton {
namespace {

void read_cohere(const JsonView& config, StatedFacts& stated) {
  read_scale(config, "logit_scale", &ModelFacts::logit_scale, 0.0625, stated);
  const JsonView norms = config["use_qk_norm"];  // LayerNorm of heads, by weights of each
  if (!norms.is_null() && norms.boolean())
    throw norms.error(ExitCode::kMismatch, "expected false, got true: not supported");
}

}  // namespace

extern const Family kCohere = {.architecture = "CohereForCausalLM",
                               .model_type = "cohere",
                               .norm_epsilon_member = "layer_norm_eps",
                               .absent_norm_epsilon = 1e-5,
                               .absent_tied = true,
                               .qkv_bias_member = "attention_bias",
                               .o_bias_member = "attention_bias",
                               .norms = NormPlacement::kParallel,
                               .pairs = true,
                               .read_further = read_cohere};

extern const Family kCohere2 = {.architecture = "Cohere2ForCausalLM",
                                .model_type = "cohere2",
                                .absent_window = 4096,
                                .norm_epsilon_member = "layer_norm_eps",
                                .absent_norm_epsilon = 1e-5,
                                .absent_tied = true,
                                .window = Window::kLayers,
                                .window_period = 4,
                                .window_period_member = "sliding_window_pattern",
                                .ropes = Ropes::kByWindows,
                                .qkv_bias_member = "attention_bias",
                                .o_bias_member = "attention_bias",
                                .norms = NormPlacement::kParallel,
                                .pairs = true,
                                .read_further = read_cohere};

}  // namespace soliton
