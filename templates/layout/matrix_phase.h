// A matrix phase as the kernel has it in constant memory: what its code for all of them reads.
#pragma once

#include <cstdint>

#include "layout/kernel_plan.h"

namespace soliton {

/// A matrix phase as the kernel has it in constant memory. Offsets in bytes.
struct MatrixPhase {
  int number = 0;  // among the matrix phases of all kinds of layers
  // Of its kind's first layer, and from one to the next, where there is one kind of layers; else in a layer.
  int64_t weights = 0;
  int64_t layer_stride = 0;
  int columns = 0;
  int padded = 0;  // padded_columns(format, columns)
  WeightFormat format = {};
  int rows = 0;
  int num_tiles = 0;
  int first_cta = 0;
  int window = 0;
  InputKind input = InputKind::kVector;
  Vector input_vector = {};
  int first_norm = kNone;  // like weights
  int norm_stride = 0;
  OutputKind output = OutputKind::kResidual;
  Vector output_vector = {};
  bool appends = false;
  int column_slices = 1;
};

/// Of phase `index` of the plan.
SOLITON_HOST_DEVICE constexpr MatrixPhase matrix_phase(const KernelPlan& plan, int index) {
  const Phase& phase = plan.phases[index];
  const PackedMatrix& matrix = plan.matrices[phase.matrix];
  int number = 0;
  for (int i = 0; i < index; ++i) number += plan.phases[i].kind == PhaseKind::kMatrix ? 1 : 0;
  const bool is_even = plan.model.num_kinds() == 1;
  const bool is_once = phase.layer_kind == plan.model.num_kinds();
  const Layer* layers = plan.model.layers;
  const Layer first = is_even ? layers[is_once ? plan.model.num_layers : 0] : Layer{};
  const Layer next = is_even && !is_once ? layers[1] : first;
  const bool has_norm = phase.norm != kNone;
  return {.number = number,
          .weights = first.weights + matrix.offset,
          .layer_stride = next.weights - first.weights,
          .columns = matrix.columns,
          .padded = plan.warpgroups ? matrix.padded_columns : matrix.padded_columns / phase.column_slices,
          .format = matrix.format,
          .rows = matrix.rows,
          .num_tiles = plan.warpgroups ? matrix.num_tiles : matrix.num_tiles * phase.column_slices,
          .first_cta = phase.first_cta,
          .window = plan.window_of(phase),
          .input = phase.input,
          .input_vector = plan.vector(phase.reads),
          .first_norm = has_norm ? first.first_norm + phase.norm : kNone,
          .norm_stride = has_norm ? next.first_norm - first.first_norm : 0,
          .output = phase.output,
          .output_vector = plan.vector(phase.writes),
          .appends = phase.appends,
          .column_slices = phase.column_slices};
}

}  // namespace soliton
