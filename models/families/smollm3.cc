// SmolLM3: Llama whose every fourth layer rotates nothing.
#include "models/families/family.h"

namespace soliton {
namespace {

void read_smollm3(const JsonView& config, StatedFacts& /*stated*/) {
  const JsonView view = config["use_sliding_window"];
  if (!view.is_null() && view.boolean())
    throw view.error(ExitCode::kMismatch, "expected false, got true: not supported");
}

}  // namespace

extern const Family kSmolLm3 = {.architecture = "SmolLM3ForCausalLM",
                                .model_type = "smollm3",
                                .absent_kv_heads = 4,
                                .absent_rope_theta = 2000000.0,
                                .absent_tied = true,
                                .ropes = Ropes::kListed,
                                .read_further = read_smollm3};

}  // namespace soliton
