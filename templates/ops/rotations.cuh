// Where a layer finds the rotations of a position: a model may have two tables of them, and layers that rotate nothing; or
// queries may have a table of their own, which scales them.
#pragma once

#include "layout/kernel_plan.h"
#include "primitives/primitives.h"

namespace soliton {

/// Of all layers, in constant memory.
template <const KernelPlan& kPlan>
struct LayerRopes {
  int of_layer[kPlan.model.num_layers] = {};
  constexpr LayerRopes() {
    for (int i = 0; i < kPlan.model.num_layers; ++i) of_layer[i] = kPlan.model.layers[i].rope;
  }
};
template <const KernelPlan& kPlan>
SOLITON_CONSTANT LayerRopes<kPlan> kRopeOfLayer{};

/// The table of a layer; -1: its heads are not rotated. Where all layers are alike, nothing is asked.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int rope_of(int layer) {
  if constexpr (!kPlan.model.rotates_alike()) return kRopeOfLayer<kPlan>.of_layer[layer];
  return 0;
}

/// {cos, sin} of each pair of dims at a position: those of the first table, then of the next.
template <const KernelPlan& kPlan>
SOLITON_DEVICE const float* rotations_at(const LaunchParams& params, int position) {
  return params.rotary + static_cast<int64_t>(position) * (kPlan.model.rope_tables * kPlan.model.head_dim);
}

}  // namespace soliton
