// Several rows: words of the workspace that say themselves that they have arrived, kMissing until they are written. Each of them
// is read by one thread, which makes it missing again; it is written anew a layer later, with grid barriers in between. So a phase
// that reads nothing else of the phase before waits for no grid barrier.
#pragma once

#include "layout/kernel_plan.h"

namespace soliton {

/// Bytes of the workspace.
struct WorkspaceRange {
  int64_t offset;
  int64_t bytes;
};

/// Do phases of this kind wait for words of their input? Other cards' words would come one by one over the link; where all heads are
/// normed together their sums have many readers.
SOLITON_HOST_DEVICE constexpr bool awaits_words(const KernelPlan& plan, PhaseKind kind) {
  if (plan.num_cards > 1 || plan.rows > kMostAwaitedRows) return false;
  if (kind == PhaseKind::kNormHeads) return plan.model.head_norm && !plan.model.joint_norm;
  return kind == PhaseKind::kUngroup && plan.multiplies_pairs();
}

/// Does down wait for the words of its pairs? Many read them: they are made missing as the next layer begins.
SOLITON_HOST_DEVICE constexpr bool awaits_pairs(const KernelPlan& plan) {
  return awaits_words(plan, PhaseKind::kUngroup);
}
/// What it reads, see layout/expert_pairs.h.
constexpr WorkspaceRange gated_pairs(const KernelPlan& plan) {
  for (int i = 0; i < plan.num_phases; ++i) {
    const Phase& phase = plan.phases[i];
    if (phase.kind != PhaseKind::kMatrix) continue;
    if (plan.matrices[phase.matrix].experts.axis != ExpertAxis::kColumns) continue;
    return {plan.vector(phase.reads).offset,
            int64_t{plan.rows} * plan.model.mixture.used() * plan.pair_bytes()};
  }
  return {};
}

/// What has to be kMissingByte before a launch: inputs that are waited for, and sums of CTAs that share columns.
constexpr int kMissingRanges = 4;
struct MissingRanges {
  WorkspaceRange ranges[kMissingRanges];
};
constexpr MissingRanges missing_ranges(const KernelPlan& plan) {
  MissingRanges missing{};
  const auto input_of = [&](PhaseKind kind) -> WorkspaceRange {
    if (plan.rows == 1 || plan.phase(kind).kind != kind || !awaits_words(plan, kind)) return {};
    const Vector input = plan.vector(plan.phase(kind).reads);
    return {input.offset, int64_t{input.elements} * int64_t{sizeof(float)}};
  };
  missing.ranges[0] = input_of(PhaseKind::kNormHeads);
  missing.ranges[1] = input_of(PhaseKind::kUngroup);
  if (plan.warpgroups) missing.ranges[2] = {plan.sums.offset, plan.residual_offset(0) - plan.sums.offset};
  if (plan.rows > 1 && awaits_pairs(plan)) missing.ranges[3] = gated_pairs(plan);
  return missing;
}

}  // namespace soliton
