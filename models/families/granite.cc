// Granite 3, dense: Llama with scales of the embedding, of what blocks give, of scores and of logits.
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

}  // namespace

extern const Family kGranite = {
    .architecture = "GraniteForCausalLM", .model_type = "granite", .read_further = read_granite};

}  // namespace soliton
