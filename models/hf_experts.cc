#include "models/hf_experts.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "models/hf_members.h"
#include "models/limits.h"

namespace soliton {
namespace {

/// How many experts there are, under either name; under both, one number.
JsonView count_of_experts(const JsonView& config, const MixtureFamily& family) {
  JsonView count = config[family.count];
  if (family.other_count == nullptr || config[family.other_count].is_null()) return count;
  JsonView other = config[family.other_count];
  if (count.is_null()) return other;
  if (count.integer() != other.integer()) {
    throw other.error(ExitCode::kBadFile, "expected {} = {}, got {}", family.count, count.integer(),
                      other.integer());
  }
  return count;
}

/// The layers of a model with experts that have none, as the members for them say.
std::vector<int64_t> read_dense_layers(const JsonView& config, const MixtureFamily& family, int num_layers) {
  std::vector<int64_t> layers;
  if (family.dense_layers != nullptr && !config[family.dense_layers].is_null()) {
    const JsonView listed = config[family.dense_layers];
    for (size_t i = 0; i < listed.array_size(); ++i) layers.push_back(listed[i].integer());
  }
  if (family.first_sparse != nullptr) {
    const JsonView first = config[family.first_sparse];
    const int64_t end = first.is_null() ? 1 : first.integer(0, kLayersLimit.max);
    for (int64_t layer = 0; layer < end; ++layer) layers.push_back(layer);
  }
  if (family.sparse_step == nullptr || config[family.sparse_step].is_null()) return layers;
  const int64_t step = config[family.sparse_step].integer(1, std::numeric_limits<int32_t>::max());
  for (int64_t layer = 0; layer < std::min(num_layers, kMostListedLayers); ++layer) {
    if ((layer + 1) % step != 0) layers.push_back(layer);
  }
  return layers;
}

/// Kernels see shared experts as so many of the width of the others.
void read_shared_experts(const JsonView& config, const MixtureFamily& family, StatedFacts& stated) {
  if (family.shared_count != nullptr)
    read_fact_or(config[family.shared_count], &ModelFacts::shared_experts, 1, stated);
  if (family.shared_ffn == nullptr) return;
  const JsonView shared = config[family.shared_ffn];
  const int64_t width = shared.integer(0, std::numeric_limits<int32_t>::max());
  const int32_t expert_ffn = stated.facts.expert_ffn;
  if (!kFfnLimit.contains(expert_ffn)) return;  // check() says so
  if (width % expert_ffn != 0) {
    throw shared.error(ExitCode::kMismatch, "expected a multiple of {} = {}, got {}", family.ffn, expert_ffn,
                       width);
  }
  Place place = shared.place();
  place.got += fmt::format(", which is {} times {}", width / expert_ffn, family.ffn);
  stated.state(&ModelFacts::shared_experts, width / expert_ffn, std::move(place));
  state_flag(&ModelFacts::shared_gate, family.shared_gate && width > 0,
             part_of(config["architectures"].place(), "gate of shared experts"), stated);
}

/// How a token's experts are chosen, and what their outputs are multiplied with.
void read_router(const JsonView& config, const MixtureFamily& family, StatedFacts& stated) {
  const Place place = config["architectures"].place();
  if (family.renormalised == nullptr) {
    state_flag(&ModelFacts::renormalised, true, part_of(place, "weights of experts"), stated);
  } else {
    const JsonView renormalised = config[family.renormalised];
    state_flag(&ModelFacts::renormalised, boolean_or(renormalised, family.absent_renormalised),
               renormalised.place(), stated);
  }
  Place scores = part_of(place, "scores of experts");
  scores.got = kRouterScoresNames[static_cast<int32_t>(family.scores)];
  stated.state(&ModelFacts::router_scores, static_cast<int32_t>(family.scores), std::move(scores));
  state_flag(&ModelFacts::router_bias, family.bias, part_of(place, "biases of scores"), stated);
  state_flag(&ModelFacts::expert_bias, family.expert_bias, part_of(place, "biases of experts"), stated);
  if (family.scale != nullptr) read_fact_or(config[family.scale], &ModelFacts::router_scale, 1.0, stated);
  if (family.num_groups == nullptr) return;
  const JsonView groups = config[family.num_groups];
  if (!groups.is_null() && groups.integer(1, kExpertsLimit.max) != 1)
    throw groups.error(ExitCode::kMismatch, "expected 1, got {}: not supported", groups.describe());
}

}  // namespace

void read_experts(const JsonView& config, const MixtureFamily& family, StatedFacts& stated) {
  const JsonView count = count_of_experts(config, family);
  read_fact(count, &ModelFacts::num_experts, stated);
  if (stated.facts.num_experts == 0) return;
  if (lists_layers(stated.facts)) {
    throw config["intermediate_size"].error(ExitCode::kMismatch,
                                            "expected a number where there are experts, got a list");
  }
  read_fact(config["num_experts_per_tok"], &ModelFacts::experts_per_token, stated);
  read_fact(config[family.ffn], &ModelFacts::expert_ffn, stated);
  read_shared_experts(config, family, stated);
  read_router(config, family, stated);
  const char* const dense = family.dense_layers != nullptr ? family.dense_layers : family.first_sparse;
  Place place = dense == nullptr ? count.place() : config[dense].place();
  stated.state_dense_layers(read_dense_layers(config, family, stated.facts.num_layers), std::move(place));
}

}  // namespace soliton
