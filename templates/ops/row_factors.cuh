// What sums of a tile are multiplied by, of formats whose linear layers have a factor beside the scales of groups (NVFP4): see
// FactorOf. Of a model that has none nothing is compiled.
#pragma once

#include "layout/matrix_phase.h"
#include "primitives/primitives.h"

namespace soliton {

template <const KernelPlan& kPlan>
struct RowFactors {
  static constexpr LayerBiases kBiases = kPlan.model.biases();
  static constexpr bool kIsThere = kBiases.num_factors > 0;
  static constexpr bool kOfExperts = kBiases.num_expert_factors > 0;

  /// Those of a layer, by FactorOf.
  static SOLITON_DEVICE const float* of_layer(const float* layer_biases, int layer) {
    return layer_biases + static_cast<int64_t>(layer) * kBiases.words() + kBiases.factors();
  }

  /// Those of an expert of it, by ExpertFactor. What down gives is a sum over experts, so activations are multiplied with its.
  static SOLITON_DEVICE float4 of_expert(const float* layer_biases, int layer, int expert) {
    return load_constant(
        reinterpret_cast<const float4*>(layer_biases + static_cast<int64_t>(layer) * kBiases.words() +
                                        kBiases.expert_factors() + expert * kNumExpertFactors));
  }

  /// Has a phase's matrix one? Neither lm_head nor a router has.
  static SOLITON_DEVICE bool are_of(const MatrixPhase& phase) {
    return phase.output != OutputKind::kLogits && phase.output != OutputKind::kRouter;
  }
  /// Of rows 0..7 of a tile of such a phase, or of its rows 8..15.
  static SOLITON_DEVICE int number(const MatrixPhase& phase, int tile, bool upper) {
    constexpr int kQueryTiles = kPlan.model.num_heads * kPlan.model.head_dim / kTileRows;
    constexpr int kRotaryTiles = kPlan.model.rotary_heads() * kPlan.model.head_dim / kTileRows;
    if (phase.output == OutputKind::kRotary)
      return tile < kQueryTiles ? kFactorOfQ : tile < kRotaryTiles ? kFactorOfK : kFactorOfV;
    if (phase.output == OutputKind::kSwiglu) return upper ? kFactorOfUp : kFactorOfGate;
    return phase.appends ? kFactorOfO : kFactorOfDown;
  }
};

}  // namespace soliton
