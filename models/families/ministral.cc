// Ministral: Mistral whose layers each say whether they have a window. Ministral 3, alone or, as all of Mistral since 2025, beside
// an encoder of pictures, which is not read: beyond the context before it was stretched, queries are scaled by position.
#include "models/families/family.h"
#include "models/hf_members.h"

namespace soliton {
namespace {

constexpr Family kMinistralText = {.architecture = "Ministral3ForCausalLM",
                                   .model_type = "ministral3",
                                   .absent_kv_heads = 8,
                                   .absent_head_dim = 128,
                                   .absent_norm_epsilon = 1e-5,
                                   .window = Window::kStated,
                                   .scales_queries = true};

/// The text of Mistral Small 3.1 is a Mistral's.
void read_text_type(const JsonView& config, StatedFacts& /*stated*/) {
  const JsonView type = config["model_type"];
  if (type.is_null() || type.string() == kMinistralText.model_type || type.string() == "mistral") return;
  throw type.error(ExitCode::kMismatch, "expected \"mistral\" or \"ministral3\", got {}", type.describe());
}

constexpr Family beside_pictures(Family family) {
  family.architecture = "Mistral3ForConditionalGeneration";
  family.model_type = "mistral3";
  family.text_member = "text_config";
  family.tensors_prefix = "language_model.";
  family.read_further = read_text_type;
  return family;
}

}  // namespace

extern const Family kMinistral3 = kMinistralText;
extern const Family kMistral3 = beside_pictures(kMinistralText);

extern const Family kMinistral = {.architecture = "MinistralForCausalLM",
                                  .model_type = "ministral",
                                  .absent_kv_heads = 8,
                                  .absent_window = 4096,
                                  .window = Window::kLayers,
                                  .window_period = 0};

}  // namespace soliton
