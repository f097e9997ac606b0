// What a layer has beside its matrices, in LaunchParams::layer_biases: biases of linear layers but those of q, k and v, scores
// of sinks, and what sums of its linear layers are multiplied by. Behind those of all layers may be biases of logits. Shared by
// who loads them and kernels.
#pragma once

#include "layout/page.h"

namespace soliton {

/// Linear layers whose sums have a factor in formats that have one beside the scales of groups (NVFP4), kNvfp4Unit times the
/// checkpoint's; of those in bf16 it is 1. Rows of a tile belong to one, or the upper half of them to up and the others to gate.
enum FactorOf : int {
  kFactorOfQ,
  kFactorOfK,
  kFactorOfV,
  kFactorOfO,
  kFactorOfGate,
  kFactorOfUp,
  kFactorOfDown
};
constexpr int kNumFactors = 8;  // with one to fill whole loads of 4

/// The same of each expert of a layer, with one to fill a load of 4. Of a mixture kFactorOfGate, kFactorOfUp and kFactorOfDown are 1.
enum ExpertFactor : int { kExpertGateFactor, kExpertUpFactor, kExpertDownFactor };
constexpr int kNumExpertFactors = 4;

/// How many floats there are of each, one behind the other in this order; 0: the model has none. Whole loads of 4.
struct LayerBiases {
  int num_sinks = 0;           // [heads]: scores in base 2
  int num_o = 0;               // [hidden]
  int num_gate_up = 0;         // [experts][packed rows of one], or [packed rows] of a layer without experts
  int num_down = 0;            // [experts][hidden], or [hidden]
  int num_factors = 0;         // kNumFactors, by FactorOf
  int num_expert_factors = 0;  // [experts][kNumExpertFactors], by ExpertFactor

  SOLITON_HOST_DEVICE constexpr int sinks() const { return 0; }
  SOLITON_HOST_DEVICE constexpr int o() const { return round_up(num_sinks, 4); }
  SOLITON_HOST_DEVICE constexpr int gate_up() const { return o() + num_o; }
  SOLITON_HOST_DEVICE constexpr int down() const { return gate_up() + num_gate_up; }
  SOLITON_HOST_DEVICE constexpr int factors() const { return down() + num_down; }
  SOLITON_HOST_DEVICE constexpr int expert_factors() const { return factors() + num_factors; }
  /// Of a layer.
  SOLITON_HOST_DEVICE constexpr int words() const { return expert_factors() + num_expert_factors; }
  /// Are there others than sinks and factors?
  SOLITON_HOST_DEVICE constexpr bool has_biases() const { return factors() > o(); }
};

}  // namespace soliton
