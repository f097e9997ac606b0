// The walk over the phases of all steps of a launch: every role of every CTA takes the same one.
//
// Matrix phases are a table in constant memory, so that each role has one piece of code for all of them. Between two of
// them stand the phases of attention, one after another.
#pragma once

#include "machine/context.cuh"

namespace soliton {

/// The order of a plan's phases: those of a kind of layers in order, one kind after another; last the one that happens
/// once.
template <const KernelPlan& kPlan>
struct PhaseOrder {
  static constexpr int count(bool matrix, int end) {
    int found = 0;
    for (int i = 0; i < end; ++i) {
      if (is_beside_matrix(kPlan.phases[i].kind)) continue;
      found += (kPlan.phases[i].kind == PhaseKind::kMatrix) == matrix ? 1 : 0;
    }
    return found;
  }
  static constexpr int first_other() {
    int i = 0;
    while (kPlan.phases[i].kind == PhaseKind::kMatrix) ++i;
    return i;
  }
  /// Has each kind of layers the phases of attention of the first? Their code is one for all.
  static constexpr bool others_are_alike() {
    for (int i = 0, same = kFirstOther; i < kPlan.num_phases; ++i) {
      const Phase& phase = kPlan.phases[i];
      if (phase.kind == PhaseKind::kMatrix || is_beside_matrix(phase.kind)) continue;
      const Phase& first = kPlan.phases[same];
      if (phase.kind != first.kind || phase.reads != first.reads || phase.writes != first.writes)
        return false;
      same = same + 1 == kFirstOther + kOthers ? kFirstOther : same + 1;
    }
    return true;
  }
  static constexpr int kKinds = kPlan.model.num_kinds();
  static constexpr int kMatrices = count(true, kPlan.num_phases);  // in the table
  static constexpr int kPerLayer = kMatrices - 1;                  // where there is one kind of layers
  static constexpr int kFirstOther = first_other();  // so many matrix phases of a layer come before attention
  static constexpr int kOthers = count(false, kPlan.num_phases) / kKinds;
  static constexpr int count_step_matrices() {
    int found = 0;
    kPlan.for_each_step_phase(
        [&](int i, int) { found += kPlan.phases[i].kind == PhaseKind::kMatrix ? 1 : 0; });
    return found;
  }
  static constexpr int kStepMatrices = count_step_matrices();
  static constexpr bool kNormsBlocks = kPlan.phase(PhaseKind::kNormBlock).kind == PhaseKind::kNormBlock;
  static constexpr bool kGroups = kPlan.phase(PhaseKind::kGroup).kind == PhaseKind::kGroup;
  static constexpr bool kUngroups = kPlan.phase(PhaseKind::kUngroup).kind == PhaseKind::kUngroup;
  static_assert(count(false, kFirstOther + kOthers) == kOthers, "the phases of attention follow one another");
  static_assert(others_are_alike(), "all kinds of layers attend alike");
  static_assert(kPlan.phases[kPlan.num_phases - 1].layer_kind == kKinds, "the last phase happens once");
  static_assert(kPlan.window > 0 && kPlan.kv_window > 0, "some page is in flight");
};

template <const KernelPlan& kPlan>
struct MatrixTable {
  MatrixPhase phases[PhaseOrder<kPlan>::kMatrices] = {};
  constexpr MatrixTable() {
    int next = 0;
    for (int i = 0; i < kPlan.num_phases; ++i) {
      if (kPlan.phases[i].kind == PhaseKind::kMatrix) phases[next++] = matrix_phase(kPlan, i);
    }
  }
};
template <const KernelPlan& kPlan>
SOLITON_CONSTANT MatrixTable<kPlan> kMatrixTable{};

/// Where what a block gives is normed, or added up, by a phase of its own: the vector that this writes, by the number of the
/// matrix phase before it.
template <const KernelPlan& kPlan>
struct StreamTable {
  Vector after[PhaseOrder<kPlan>::kMatrices] = {};
  constexpr StreamTable() {
    int next = 0;
    for (int i = 0; i < kPlan.num_phases; ++i) {
      if (kPlan.phases[i].kind == PhaseKind::kMatrix) ++next;
      const PhaseKind kind = kPlan.phases[i].kind;
      if (kind == PhaseKind::kNormBlock || kind == PhaseKind::kUngroup)
        after[next - 1] = kPlan.vector(kPlan.phases[i].writes);
    }
  }
};
template <const KernelPlan& kPlan>
SOLITON_CONSTANT StreamTable<kPlan> kStreamTable{};

/// How the experts of a matrix phase stand in its matrix, by its number.
template <const KernelPlan& kPlan>
struct ExpertAxes {
  ExpertAxis of[PhaseOrder<kPlan>::kMatrices] = {};
  constexpr ExpertAxes() {
    int next = 0;
    for (int i = 0; i < kPlan.num_phases; ++i) {
      if (kPlan.phases[i].kind == PhaseKind::kMatrix)
        of[next++] = kPlan.matrices[kPlan.phases[i].matrix].experts.axis;
    }
  }
};
template <const KernelPlan& kPlan>
SOLITON_CONSTANT ExpertAxes<kPlan> kExpertAxes{};

/// Calls the role's function for phase kIndex and the phases of attention behind it.
template <const KernelPlan& kPlan, int kIndex, class Role>
SOLITON_DEVICE void walk_attention(Role& role, int layer) {
  if constexpr (kIndex < PhaseOrder<kPlan>::kFirstOther + PhaseOrder<kPlan>::kOthers) {
    constexpr PhaseKind kKind = kPlan.phases[kIndex].kind;
    if constexpr (kKind == PhaseKind::kAttention) {
      role.template attend<kIndex>(layer);
    } else {
      role.norm_heads(layer);
    }
    walk_attention<kPlan, kIndex + 1>(role, layer);
  }
}

/// Where there are several kinds of layers: the matrix phases of a step, in order.
template <const KernelPlan& kPlan>
struct StepTable {
  struct Entry {
    int16_t phase = 0;  // in the table of matrix phases
    int16_t layer = 0;
    bool attends = false;  // are the phases of attention before it?
  };
  Entry entries[PhaseOrder<kPlan>::kStepMatrices] = {};
  constexpr StepTable() {
    int next = 0;
    bool attends = false;
    kPlan.for_each_step_phase([&](int i, int layer) {
      if (is_beside_matrix(kPlan.phases[i].kind)) return;
      if (kPlan.phases[i].kind != PhaseKind::kMatrix) {
        attends = true;
        return;
      }
      const int phase = PhaseOrder<kPlan>::count(true, i);
      entries[next++] = {static_cast<int16_t>(phase), static_cast<int16_t>(layer), attends};
      attends = false;
    });
  }
};
template <const KernelPlan& kPlan>
SOLITON_CONSTANT StepTable<kPlan> kStepTable{};

/// Where all layers are alike, what comes next is worked out.
template <const KernelPlan& kPlan, class Role>
SOLITON_DEVICE void walk(Role& role) {
  using Order = PhaseOrder<kPlan>;
  constexpr bool kEven = Order::kKinds == 1;
  constexpr int kPerLayer = Order::kPerLayer;
  constexpr int kLast = Order::kStepMatrices - 1;
  const auto matrix = [](int i) -> MatrixInstance {
    if constexpr (kEven) {
      const int layer = i == kLast ? 0 : i / kPerLayer;
      return {kMatrixTable<kPlan>.phases[i == kLast ? kPerLayer : i % kPerLayer], layer};
    } else {
      const auto& at = kStepTable<kPlan>.entries[i];
      return {kMatrixTable<kPlan>.phases[at.phase], at.layer};
    }
  };
  static_assert(Order::kFirstOther > 0, "attention has an input");
  const auto attend = [&](int i) {  // before matrix phase i
    // A condition in two parts: with one for both ways nvcc makes other code of the even one.
    const auto table_attends = [&] {
      if constexpr (!kEven) return kStepTable<kPlan>.entries[i].attends;
      return false;
    };
    if ((kEven && i % kPerLayer == Order::kFirstOther && i < kLast) || table_attends())
      walk_attention<kPlan, Order::kFirstOther>(role, kEven ? i / kPerLayer : matrix(i).layer);
  };
  // Where its code stands. Of several rows behind what matrix phases run through again and again: for code behind a jump that
  // far all wait. One row of 4 bits takes up to 2% longer so.
  constexpr bool kAttendsLast = kPlan.rows > 1;
  while (role.begin_step()) {
    for (int i = 0; i <= kLast; ++i) {
      if (!kAttendsLast) attend(i);
      if constexpr (Order::kGroups) {
        if (kExpertAxes<kPlan>.of[matrix(i).phase.number] == ExpertAxis::kRows) {
          role.choose(matrix(i));
          role.group(matrix(i));
        }
      }
      role.matrix(matrix(i), matrix(i == kLast ? 0 : i + 1));
      if constexpr (Order::kUngroups) {
        if (kExpertAxes<kPlan>.of[matrix(i).phase.number] == ExpertAxis::kColumns) role.ungroup(matrix(i));
      }
      if constexpr (Order::kNormsBlocks) {
        if (matrix(i).phase.output == OutputKind::kResidual) role.norm_block(matrix(i));
      }
      if (kAttendsLast && i < kLast) attend(i + 1);
    }
    role.end_step();
  }
}

}  // namespace soliton
