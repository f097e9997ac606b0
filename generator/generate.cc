#include "generator/generate.h"

#include <fmt/format.h>

#include "generator/emit.h"
#include "generator/plan/verify.h"

namespace soliton {
namespace {

std::string describe_facts(const ModelConfig& model) {
  std::string text = model.name + "\n";
  for_each_fact(model.facts, [&](const char* name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, RopeKind>) {
      text += fmt::format("{}: {}\n", name, value == RopeKind::kLlama3 ? "llama3" : "default");
    } else {
      text += fmt::format("{}: {}\n", name, value);
    }
  });
  return text;
}

/// The passes up to a sound plan. Throws UserError, and leaves the dumps so far.
void make_plan(const ModelConfig& model, const GpuSpec& gpu, const PlanChoices& choices, Generated& result) {
  result.dumps["1-config.txt"] = describe_facts(model);
  const Graph graph = build_graph(model.facts);
  result.dumps["2-graph.txt"] = describe(graph);
  result.plan = partition(graph, model, gpu, choices);
  result.plan.tuned = choices.tuned;
  place(result.plan, choices);
  predict(result.plan);
  result.dumps["3-plan.txt"] = describe(result.plan);
  const std::vector<Violation> violations = verify(result.plan);
  for (const Violation& violation : violations) {
    result.dumps["4-verify.txt"] += fmt::format("{}: {}\n", rule_name(violation.rule), violation.message);
  }
  if (!violations.empty()) {
    throw UserError(ExitCode::kPlanRefused,
                    fmt::format("{} on {}: plan refused: {}: {}", model.name, gpu.name,
                                rule_name(violations[0].rule), violations[0].message));
  }
  result.dumps["4-verify.txt"] = "sound\n";
}

}  // namespace

Generated generate(const ModelConfig& model, const GpuSpec& gpu, const PlanChoices& choices) {
  Generated result;
  try {
    make_plan(model, gpu, choices, result);
  } catch (const UserError& refusal) {
    // Facts and card were checked when they were read: it can only be the plan.
    const std::string tuned = choices.tuned.empty() ? "" : fmt::format(" ({})", choices.tuned);
    throw PlanRefused(refusal.what() + tuned, std::move(result.dumps));
  }
  result.files = emit(result.plan);
  return result;
}

}  // namespace soliton
