// Plans for tests: of the shipped models, of random ones, and the parts of a plan by name.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "generator/graph.h"
#include "generator/overrides.h"
#include "generator/plan/kernel_plan.h"
#include "generator/plan/plan.h"
#include "generator/plan/verify.h"
#include "generator/source_of.h"

namespace soliton {

constexpr const char* kShippedModels[] = {"tiny-stories", "llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b",
                                          "llama-3.1-70b"};
constexpr const char* kShippedGpus[] = {"h200", "h100"};
constexpr int kNumRandomModels = 200;

inline ModelConfig shipped_model(const std::string& name) {
  return load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / (name + ".yaml"));
}

inline GpuSpec shipped_gpu(const std::string& name) {
  return load_gpu_spec(std::filesystem::path(SOLITON_SOURCE_DIR) / "generator" / "gpus" / (name + ".yaml"));
}

/// What soliton-gen chooses without a flag: the overrides, if any are shipped.
inline PlanChoices shipped_choices(const std::string& model, const std::string& gpu) {
  const std::filesystem::path path =
      overrides_path(std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / (model + ".yaml"), gpu);
  return with_overrides({}, load_overrides(path).value_or(PlanChoices{}), path);
}

/// A plan as generate() makes it, not verified.
inline Plan make_plan(const ModelConfig& model, const GpuSpec& gpu, const PlanChoices& choices = {}) {
  Plan plan = partition(step_of(model.facts, gpu, choices), model, gpu, choices);
  plan.source = source_of(model.path);
  place(plan, choices);
  predict(plan);
  return plan;
}

inline Plan shipped_plan(const std::string& model, const std::string& gpu, const PlanChoices& choices = {}) {
  return make_plan(shipped_model(model), shipped_gpu(gpu), choices);
}

/// What verify() says, one line each; empty for a sound plan.
inline std::string refusals(const Plan& plan) {
  std::string text;
  for (const Violation& violation : verify(plan)) {
    text += fmt::format("{}: {}\n", rule_name(violation.rule), violation.message);
  }
  return text;
}

template <class Part>
Part& named(std::vector<Part>& parts, const std::string& name) {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.name == name; });
  if (found == parts.end()) throw std::logic_error("no part of the plan is called " + name);
  return *found;
}

template <class Part>
const Part& named(const std::vector<Part>& parts, const std::string& name) {
  return named(const_cast<std::vector<Part>&>(parts), name);
}

template <class Part>
int index_of(const std::vector<Part>& parts, const std::string& name) {
  return static_cast<int>(&named(parts, name) - parts.data());
}

/// A model and what the user chose for it; the same for the same seed everywhere.
struct RandomCase {
  ModelConfig model;
  PlanChoices choices;

  std::string describe() const {
    const ModelFacts& facts = model.facts;
    return fmt::format(
        "{}: hidden {} ffn {} layers {} heads {}/{} head_dim {} vocabulary {}, {} CTAs, {} warps, sync {}, "
        "{} cards",
        model.name, facts.hidden, facts.ffn, facts.num_layers, facts.num_heads, facts.num_kv_heads,
        facts.head_dim, facts.vocabulary, choices.num_ctas, choices.consumer_warps,
        static_cast<int>(choices.sync), choices.num_cards);
  }
};

inline RandomCase random_case(int seed) {
  std::mt19937 generator(seed);
  const auto upto = [&](int most) { return static_cast<int>(generator() % most) + 1; };
  const auto one_of = [&](std::initializer_list<int> values) {
    return values.begin()[generator() % values.size()];
  };
  RandomCase result;
  result.model.name = fmt::format("random-{}", seed);
  ModelFacts& facts = result.model.facts;
  facts.hidden = 64 * upto(32);
  facts.ffn = 64 * upto(32);
  facts.num_layers = upto(4);
  facts.num_kv_heads = upto(8);
  facts.num_heads = facts.num_kv_heads * upto(9);  // groups of up to three head blocks
  facts.head_dim = one_of({64, 96, 128, 256});
  facts.vocabulary = upto(5000);
  facts.max_context = 64 * upto(64);
  result.choices.num_ctas = one_of({0, 1, 2, 3, 7, 31, 32, 33, 128, 131, 132});
  result.choices.consumer_warps = one_of({0, 2, 4, 8});
  result.choices.sync = one_of({0, 1}) == 0 ? SyncMode::kSelfValidating : SyncMode::kCounter;
  facts.qkv_bias = one_of({0, 1});
  facts.head_norm = can_norm_heads(facts.head_dim) ? one_of({0, 1}) : 0;
  result.choices.num_cards = one_of({1, 1, 2, 3, 4, 5, 8});
  return result;
}

}  // namespace soliton
