// The walk over the phases of all steps of a launch: every role of every CTA takes the same one.
//
// Matrix phases are a table in constant memory, so that each role has one piece of code for all of them. Between two of
// them stand the phases of attention, one after another.
#pragma once

#include "machine/context.cuh"

namespace soliton {

/// The order of a plan's phases: those of a layer, in order, then the one that happens once.
template <const KernelPlan& kPlan>
struct PhaseOrder {
  static constexpr int count(bool matrix, int end) {
    int found = 0;
    for (int i = 0; i < end; ++i) found += (kPlan.phases[i].kind == PhaseKind::kMatrix) == matrix ? 1 : 0;
    return found;
  }
  static constexpr int first_other() {
    int i = 0;
    while (kPlan.phases[i].kind == PhaseKind::kMatrix) ++i;
    return i;
  }
  static constexpr int kMatrices = count(true, kPlan.num_phases);  // in the table
  static constexpr int kPerLayer = kMatrices - 1;
  static constexpr int kFirstOther = first_other();  // so many matrix phases of a layer come before attention
  static constexpr int kOthers = count(false, kPlan.num_phases);
  static_assert(count(false, kFirstOther + kOthers) == kOthers, "the phases of attention follow one another");
  static_assert(!kPlan.phases[kPlan.num_phases - 1].every_layer, "the last phase happens once");
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

template <const KernelPlan& kPlan, class Role>
SOLITON_DEVICE void walk(Role& role) {
  using Order = PhaseOrder<kPlan>;
  constexpr int kPerLayer = Order::kPerLayer;
  constexpr int kLast = kPlan.model.num_layers * kPerLayer;
  const auto matrix = [](int i) -> MatrixInstance {
    const int layer = i == kLast ? 0 : i / kPerLayer;
    return {kMatrixTable<kPlan>.phases[i == kLast ? kPerLayer : i % kPerLayer], layer};
  };
  while (role.begin_step()) {
    for (int i = 0; i <= kLast; ++i) {
      if (i % kPerLayer == Order::kFirstOther && i < kLast) {
        walk_attention<kPlan, Order::kFirstOther>(role, i / kPerLayer);
      }
      role.matrix(matrix(i), matrix(i == kLast ? 0 : i + 1));
    }
    role.end_step();
  }
}

}  // namespace soliton
