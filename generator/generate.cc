#include "generator/generate.h"

#include <fmt/format.h>

#include "generator/emit.h"
#include "generator/plan/verify.h"
#include "generator/source_of.h"
#include "layout/fact_list.h"
#include "models/check.h"

namespace soliton {
namespace {

std::string describe_facts(const ModelConfig& model) {
  std::string text = model.name + "\n";
  for_each_fact(model.facts, [&](const char* name, const auto& value) {
    const std::string_view key = name;
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, RopeKind>) {
      text += fmt::format("{}: {}\n", key, rope_name(value));
    } else if (key == "ffn") {
      text += fmt::format("{}: {}\n", key, show_ffn(model.facts));
    } else if (key == "activation") {
      text += fmt::format("{}: {}\n", key, kActivationNames[model.facts.activation]);
    } else {
      text += fmt::format("{}: {}\n", key, value);
    }
  });
  return text;
}

/// The passes up to a sound plan. Throws Error, and leaves the dumps so far, whose names end in `suffix`.
Plan make_plan(const ModelConfig& model, const std::vector<GpuSpec>& gpus, const PlanChoices& choices,
               const std::string& suffix, std::map<std::string, std::string>& dumps) {
  const Graph graph = step_of(model.facts, gpus.front(), choices);
  dumps["2-graph.txt"] = describe(graph);
  Plan plan = partition(graph, model, gpus.front(), choices);
  plan.gpu = name_of_target(gpus);
  plan.cards = gpus;
  plan.tuned = choices.tuned;
  plan.source = source_of(model.path);
  place(plan, choices);
  predict(plan);
  dumps["3-plan" + suffix + ".txt"] = describe(plan);
  const std::vector<Violation> violations = verify(plan);
  std::string& verdict = dumps["4-verify" + suffix + ".txt"];
  for (const Violation& violation : violations) {
    verdict += fmt::format("{}: {}\n", rule_name(violation.rule), violation.message);
  }
  if (!violations.empty()) {
    throw Error(ExitCode::kMismatch, fmt::format("{} on {}: plan refused: {}: {}", model.name, plan.gpu,
                                                 rule_name(violations[0].rule), violations[0].message));
  }
  verdict = "sound\n";
  return plan;
}

}  // namespace

Generated generate(const ModelConfig& model, const std::vector<GpuSpec>& gpus, const PlanChoices& choices) {
  Generated result;
  std::vector<Plan> plans;
  try {
    result.dumps["1-config.txt"] = describe_facts(model);
    plans.push_back(make_plan(model, gpus, choices, "", result.dumps));
    for (const int rows : choices.further_rows) {
      PlanChoices further = choices;
      further.rows = rows;
      try {
        plans.push_back(make_plan(model, gpus, further, fmt::format("-rows{}", rows), result.dumps));
      } catch (const Error& refusal) {
        if (!choices.leaves_out) throw;
        result.left_out.emplace_back(refusal.what());
      }
    }
  } catch (const Error& refusal) {
    // Facts and card were checked when they were read: it can only be the plan.
    const std::string tuned = choices.tuned.empty() ? "" : fmt::format(" ({})", choices.tuned);
    throw PlanRefused(refusal.what() + tuned, std::move(result.dumps));
  }
  result.files = emit(plans);
  result.plan = std::move(plans.front());
  return result;
}

}  // namespace soliton
