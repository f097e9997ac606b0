// Mixtures of experts: what is multiplied with what a router chooses, and nothing else, is of experts.
#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

bool is_mixture(const Plan& plan, const PlanPhase& phase) {
  return phase.layer_kind != plan.once() && ffn_of(plan, phase) == kMixture;
}

/// What the matrix of a phase holds.
ExpertParts expected_experts(const Plan& plan, const PlanPhase& phase) {
  const ModelFacts& facts = plan.facts;
  if (!is_mixture(plan, phase)) return {};
  if (phase.output == OutputKind::kSwiglu)
    return {ExpertAxis::kRows, stored_experts(facts), used_experts(facts)};
  if (phase.output == OutputKind::kResidual && !phase.appends)
    return {ExpertAxis::kColumns, stored_experts(facts), used_experts(facts)};
  return {};
}

void check_matrix(const Plan& plan, const PlanPhase& phase, Report& report) {
  const ExpertParts expected = expected_experts(plan, phase);
  const PlanMatrix& matrix = plan.matrices[phase.matrix];
  const ExpertParts& got = matrix.experts;
  // Pages are put together of what experts have: padding would stand among these. Integers fill the last page with others.
  const int unit = matrix.format.has_scales() ? matrix.format.page_columns() : 1;
  if (got.axis == ExpertAxis::kColumns && matrix.padded != round_up(matrix.columns, unit)) {
    report.refuse(Rule::kExpertsUnlike, "{}: expected {} columns of experts without padding, got {}",
                  phase.name, round_up(matrix.columns, unit), matrix.padded);
  }
  if (got == expected) return;
  report.refuse(Rule::kExpertsUnlike, "{}: expected {} of {} experts by axis {}, got {} of {} by axis {}",
                phase.name, expected.chosen, expected.count, static_cast<int>(expected.axis), got.chosen,
                got.count, static_cast<int>(got.axis));
}

/// Where single warps multiply CTAs share the columns of a router's tiles, whole pages each, and of no other matrix; of
/// several rows each CTA has one slice of one tile at most.
void check_slices(const Plan& plan, const PlanPhase& phase, Report& report) {
  const PlanMatrix& matrix = plan.matrices[phase.matrix];
  const int slices = phase.column_slices;
  if (plan.warpgroups || slices == 1) return;
  const bool is_router = phase.output == OutputKind::kRouter;
  const bool is_alone = plan.rows == 1 || static_cast<int64_t>(slices) * matrix.num_tiles <= plan.all_ctas();
  if (is_router && slices > 1 && is_alone && matrix.padded % (slices * matrix.format.page_columns()) == 0)
    return;
  report.refuse(Rule::kExpertsUnlike, "{}: expected {}, got {} slices of {} columns", phase.name,
                is_router ? "slices of whole pages" : "whole tiles", slices, matrix.padded);
}

/// Gate and up of experts have the router right before them, which reads the same; and nothing else has one. Where warpgroups
/// multiply, rows choose and are grouped in between, and added up behind down, as they are where pairs are multiplied.
void check_router(const Plan& plan, size_t index, Report& report) {
  const PlanPhase& phase = plan.phases[index];
  const bool chooses =
      phase.kind == PhaseKind::kMatrix && is_mixture(plan, phase) && phase.output == OutputKind::kSwiglu;
  const auto is_kind = [&](size_t at, PhaseKind kind) {
    return at < plan.phases.size() && plan.phases[at].kind == kind &&
           plan.phases[at].layer_kind == phase.layer_kind;
  };
  const bool groups = plan.warpgroups;
  const bool pairs = !groups && can_pair(plan.facts, plan.limits, plan.rows);
  if (pairs && chooses &&
      !(is_kind(index + 1, PhaseKind::kMatrix) && is_kind(index + 2, PhaseKind::kUngroup) &&
        plan.phases[index + 1].writes == plan.phases[index + 2].reads)) {
    report.refuse(Rule::kExpertsUnlike,
                  "{}: expected down behind it, and a phase that adds up what that puts out, got others",
                  phase.name);
  }
  if (groups && chooses &&
      !(is_kind(index - 2, PhaseKind::kChoose) && is_kind(index - 1, PhaseKind::kGroup) &&
        is_kind(index + 1, PhaseKind::kMatrix) && is_kind(index + 2, PhaseKind::kUngroup))) {
    report.refuse(
        Rule::kExpertsUnlike,
        "{}: expected phases that choose and group rows before it, and one that adds up what experts "
        "put out behind down, got others",
        phase.name);
  }
  const bool is_of_groups = phase.kind == PhaseKind::kChoose || phase.kind == PhaseKind::kGroup ||
                            (phase.kind == PhaseKind::kUngroup && !pairs);
  const bool adds_up = phase.kind == PhaseKind::kUngroup && !is_mixture(plan, phase);
  if (adds_up || (is_of_groups && !(groups && is_mixture(plan, phase))))
    report.refuse(Rule::kExpertsUnlike, "{}: expected no groups of rows where there are none", phase.name);
  const size_t at = index - (groups ? 3 : 1);
  const PlanPhase* before = at < plan.phases.size() ? &plan.phases[at] : nullptr;
  const bool has_router = before != nullptr && before->kind == PhaseKind::kMatrix &&
                          before->output == OutputKind::kRouter && before->writes == phase.routes &&
                          (groups || before->reads == phase.reads) && before->norm == phase.norm;
  if (chooses && !has_router) {
    report.refuse(Rule::kExpertsUnlike,
                  "{}: expected the router right before it, of the same input, got none", phase.name);
  }
  if (!chooses && phase.routes >= 0)
    report.refuse(Rule::kExpertsUnlike, "{}: expected no router, got one", phase.name);
  if (phase.kind == PhaseKind::kMatrix && phase.output == OutputKind::kRouter && !is_mixture(plan, phase))
    report.refuse(Rule::kExpertsUnlike, "{}: expected no router where layers have no experts", phase.name);
}

}  // namespace

void check_experts(const Plan& plan, Report& report) {
  for (size_t i = 0; i < plan.phases.size(); ++i) {
    const PlanPhase& phase = plan.phases[i];
    check_router(plan, i, report);
    if (phase.kind != PhaseKind::kMatrix) continue;
    check_matrix(plan, phase, report);
    check_slices(plan, phase, report);
  }
}

}  // namespace soliton
