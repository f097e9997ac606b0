// What the rows of a tile add to their sums beside biases of q, k and v: biases of o, of feed-forward networks and of experts. They are loaded a tile
// ahead, since device memory is slow to answer while it streams.
#pragma once

#include "one_row/context.cuh"
#include "ops/expert_table.cuh"

namespace soliton::one_row {

/// Nothing of a model that has none.
template <const KernelPlan& kPlan>
class TileBias {
  static constexpr LayerBiases kBiases = kPlan.model.biases();
  static constexpr Mixture kMixture = kPlan.model.mixture;
  static constexpr int kHalves =
      kWarpLanes / kTileRows;  // of the warp, each with some of the token's experts
  static constexpr int kOwn = kMixture.expert_bias ? ceil_divide(kMixture.used(), kHalves) : 1;

 public:
  static constexpr bool kIsThere = kBiases.has_biases() || kPlan.model.logit_biases;

  /// Of tile `tile` of a phase, if there is such a tile. Of experts once they are chosen.
  SOLITON_DEVICE void load(const Context<kPlan>& context, const MatrixPhase& phase, int layer, int tile) {
    if constexpr (kIsThere) {
      SOLITON_UNROLL
      for (int i = 0; i < kOwn; ++i) values_[i] = 0.0f;
      if (tile >= phase.num_tiles) return;
      const float* biases = context.params.layer_biases + static_cast<int64_t>(layer) * kBiases.words();
      const int row = context.lane % kTileRows;
      if (phase.output == OutputKind::kResidual && phase.appends) {
        if (kBiases.num_o > 0) values_[0] = load_constant(biases + kBiases.o() + tile * kTileRows + row);
        return;
      }
      if constexpr (kPlan.model.down_bias) {
        if (phase.output == OutputKind::kResidual)
          values_[0] = load_constant(biases + kBiases.down() + tile * kTileRows + row);
      }
      if constexpr (kPlan.model.logit_biases) {
        if (phase.output == OutputKind::kLogits) {
          const float* logits =
              context.params.layer_biases + static_cast<int64_t>(kPlan.model.num_layers) * kBiases.words();
          values_[0] = load_constant(logits + tile * kTileRows + row);
        }
      }
      if constexpr (kPlan.model.up_biases > 0) {
        if (phase.output == OutputKind::kSwiglu)
          values_[0] = load_constant(biases + kBiases.gate_up() + tile * kTileRows + row);
      }
      if constexpr (kMixture.expert_bias) {
        const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
        if (experts.axis == ExpertAxis::kRows) {
          const int number = tile / experts.tiles;
          const int of_expert = (tile - number * experts.tiles) * kTileRows + row;
          values_[0] = load_constant(biases + kBiases.gate_up() +
                                     load_shared(context.experts() + number) * 2 * kMixture.ffn + of_expert);
        } else if (experts.axis == ExpertAxis::kColumns) {
          load_down(context, biases + kBiases.down() + tile * kTileRows + row);
        }
      }
    }
  }

  /// Of row `lane` % kTileRows.
  SOLITON_DEVICE float of_row() const { return values_[0]; }
  /// The same of down of all experts that the token goes through, each times its weight, which lane i has of the i-th.
  SOLITON_DEVICE float of_experts(int lane, float weights) const {
    float sum = 0.0f;
    SOLITON_UNROLL
    for (int i = 0; i < kOwn; ++i) sum += shuffle(weights, number(lane, i) % kWarpLanes) * values_[i];
    return sum + shuffle_xor(sum, kTileRows);
  }

 private:
  static SOLITON_DEVICE int number(int lane, int own) { return lane / kTileRows * kOwn + own; }

  SOLITON_DEVICE void load_down(const Context<kPlan>& context, const float* biases) {
    SOLITON_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int of_token = number(context.lane, i);
      if (of_token < kMixture.used())
        values_[i] = load_constant(biases + load_shared(context.experts() + of_token) * kPlan.model.hidden);
    }
  }

  float values_[kOwn] = {};
};

}  // namespace soliton::one_row
