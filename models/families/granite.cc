// Granite 3 and 4, dense: Llama with scales of the embedding, of what blocks give, of scores and of logits. Granite 4's
// architecture is that of hybrids too; the feed-forward network of a dense model is the shared expert of theirs.
#include <utility>

#include "models/families/family.h"
#include "models/hf_layers.h"
#include "models/hf_members.h"

namespace soliton {
namespace {

void read_granite(const JsonView& config, StatedFacts& stated) {
  read_scale(config, "embedding_multiplier", &ModelFacts::embedding_scale, 1.0, stated);
  read_scale(config, "residual_multiplier", &ModelFacts::residual_scale, 1.0, stated);
  read_scale(config, "attention_multiplier", &ModelFacts::attention_scale, 1.0, stated);
  const JsonView divisor = config["logits_scaling"];
  const double value = divisor.is_null() ? 1.0 : divisor.number();
  Place place = divisor.place();
  place.got = fmt::format("{}", value);
  stated.state(&ModelFacts::logit_scale, value == 0 ? 0 : 1 / value, std::move(place));
}

/// Refuses other layers. Published files say "attention" and "mamba", those that transformers 5 saves "full_attention" and
/// "linear_attention"; without a list all layers are the latter.
void expect_attention(const JsonView& config, int32_t num_layers) {
  const JsonView types = config["layer_types"];
  if (types.is_null())
    throw types.error(ExitCode::kMismatch, "expected a model without {}, got nothing", kStateSpaces);
  for (size_t i = 0; i < types.array_size(); ++i) {
    const std::string type = types[i].string();
    if (type == "attention" || type == "full_attention") continue;
    if (type == "mamba" || type == "linear_attention")
      throw types[i].error(ExitCode::kMismatch, "expected a model without {}, got {}", kStateSpaces,
                           in_quotes(type));
    throw types[i].error(ExitCode::kMismatch, "expected \"attention\" or \"full_attention\", got {}",
                         in_quotes(type));
  }
  if (std::cmp_not_equal(types.array_size(), num_layers))
    throw types.error("expected one for each of {} layers (num_hidden_layers), got {}", num_layers,
                      types.array_size());
}

void read_hybrid(const JsonView& config, StatedFacts& stated) {
  expect_attention(config, stated.facts.num_layers);
  if (const JsonView experts = config["num_local_experts"]; experts.is_null() || experts.integer() != 0)
    throw experts.error(ExitCode::kMismatch, "expected 0, got {}: not supported", experts.describe());
  read_granite(config, stated);
  const JsonView position = config["position_embedding_type"];
  const std::string type = position.is_null() ? "nope" : position.string();
  if (type == "nope") return stated.state_ropes({kNoRope}, position.place());
  if (type != "rope")
    throw position.error(ExitCode::kMismatch, "expected \"rope\" or \"nope\", got {}", in_quotes(type));
}

}  // namespace

extern const Family kGranite = {
    .architecture = "GraniteForCausalLM", .model_type = "granite", .read_further = read_granite};

extern const Family kGraniteHybrid = {
    .architecture = "GraniteMoeHybridForCausalLM",
    .model_type = "granitemoehybrid",
    .ffn_member = "shared_intermediate_size",
    .tensors = {.gate_up = "shared_mlp.input_linear", .down = "shared_mlp.output_linear"},
    .projections = Projections::kFusedGateUp,
    .read_further = read_hybrid};

}  // namespace soliton
