// What the outputs of a layer's matrices add to their sums beside biases of q, k and v: biases of o, of
// feed-forward networks and of experts. Device
// memory is slow to answer while it streams, and registers are too few to hold them until they are added: so they are brought
// into L2 when a phase begins. Of what a model does not have nothing is compiled.
#pragma once

#include "ops/expert_table.cuh"
#include "rows/expert_slot.cuh"

namespace soliton::rows {

/// Of one layer. Four of a tile are those of the sums that a thread has of it, from row 2 `quarter` on.
template <const KernelPlan& kPlan>
class OutputBiases {
  static constexpr LayerBiases kBiases = kPlan.model.biases();
  static constexpr Mixture kMixture = kPlan.model.mixture;

 public:
  static constexpr bool kIsThere = kBiases.has_biases() || kPlan.model.logit_biases;

  SOLITON_DEVICE OutputBiases(const Context<kPlan>& context, int layer) : context_(context), layer_(layer) {}

  /// Brings those of this CTA's tiles into L2: the first worker does. Of experts once they are chosen.
  SOLITON_DEVICE void prefetch(const MatrixPhase& phase, const TileRun& run, int worker) const {
    if constexpr (kIsThere) {
      if (phase.output == OutputKind::kResidual && phase.appends && kBiases.num_o > 0)
        each(worker, run.count, [&](int i) { return o_tile(run.first + i * run.stride); });
      if constexpr (kPlan.model.down_bias) {
        if (phase.output == OutputKind::kResidual && !phase.appends)
          each(worker, run.count, [&](int i) { return down_tile(0, run.first + i * run.stride); });
      }
      if constexpr (kPlan.model.up_biases > 0) {
        if (phase.output == OutputKind::kSwiglu)
          each(worker, run.count, [&](int i) { return gate_up_tile(0, run.first + i * run.stride); });
      }
      if constexpr (kPlan.model.logit_biases) {
        if (phase.output == OutputKind::kLogits)
          each(worker, run.count, [&](int i) { return logits_tile(run.first + i * run.stride); });
      }
      if constexpr (kMixture.expert_bias && !kGroups<kPlan>) prefetch_experts(phase, run, worker);
    }
  }

  SOLITON_DEVICE float4 of_o(int tile, int quarter) const {
    if constexpr (kBiases.num_o == 0) return make_float4(0, 0, 0, 0);
    return four(o_tile(tile), quarter);
  }
  SOLITON_DEVICE float4 of_gate_up(int expert, int tile_of_expert, int quarter) const {
    return four(gate_up_tile(expert, tile_of_expert), quarter);
  }
  /// Of a layer without experts.
  SOLITON_DEVICE float4 of_up(int tile, int quarter) const { return four(gate_up_tile(0, tile), quarter); }
  /// Where rows are grouped: brings those of an expert's tile into L2. Then of rows `row` and `row` + 8 of one.
  SOLITON_DEVICE void prefetch_of_expert(ExpertAxis axis, int expert, int tile) const {
    prefetch_vector(of_expert(axis, expert, tile), kTileRows * 4);
  }
  SOLITON_DEVICE float2 of_expert_rows(ExpertAxis axis, int expert, int tile, int row) const {
    const float* own = of_expert(axis, expert, tile) + row;
    return make_float2(load_constant(own), load_constant(own + 8));
  }
  /// Of row `row` of a tile of that.
  SOLITON_DEVICE float of_up_row(int tile, int row) const {
    return load_constant(gate_up_tile(0, tile) + row);
  }
  SOLITON_DEVICE float4 of_logits(int tile, int quarter) const { return four(logits_tile(tile), quarter); }
  /// Of a layer without experts; of one with them, of all that a row goes through, each times its weight.
  SOLITON_DEVICE float4 of_down(int tile, int row, int quarter) const {
    constexpr ExpertsLayout kLayout = Context<kPlan>::kExpertsLayout;
    if constexpr (kPlan.model.down_bias) return four(down_tile(0, tile), quarter);
    float4 sum = make_float4(0, 0, 0, 0);
    if constexpr (kMixture.expert_bias && !kGroups<kPlan>) {
      if (row >= context_.params.tree.num_rows) return sum;  // it has chosen nothing
      SOLITON_UNROLL
      for (int i = 0; i < kMixture.used(); ++i) {
        const int pick = row * kMixture.used() + i;
        const auto expert = static_cast<int>(load_shared(context_.expert_words(kLayout.picks()) + pick));
        const float weight =
            float_from_bits(load_shared(context_.expert_words(kLayout.pick_weights()) + pick));
        const float4 bias = four(down_tile(expert, tile), quarter);
        sum = make_float4(sum.x + weight * bias.x, sum.y + weight * bias.y, sum.z + weight * bias.z,
                          sum.w + weight * bias.w);
      }
    }
    return sum;
  }

 private:
  SOLITON_DEVICE const float* of_layer(int offset) const {
    return context_.params.layer_biases + static_cast<int64_t>(layer_) * kBiases.words() + offset;
  }
  SOLITON_DEVICE const float* o_tile(int tile) const { return of_layer(kBiases.o()) + tile * kTileRows; }
  SOLITON_DEVICE const float* gate_up_tile(int expert, int tile_of_expert) const {
    return of_layer(kBiases.gate_up()) + expert * 2 * kMixture.ffn + tile_of_expert * kTileRows;
  }
  SOLITON_DEVICE const float* logits_tile(int tile) const {
    return context_.params.layer_biases + static_cast<int64_t>(kPlan.model.num_layers) * kBiases.words() +
           tile * kTileRows;
  }
  SOLITON_DEVICE const float* down_tile(int expert, int tile) const {
    return of_layer(kBiases.down()) + expert * kPlan.model.hidden + tile * kTileRows;
  }

  SOLITON_DEVICE const float* of_expert(ExpertAxis axis, int expert, int tile) const {
    return axis == ExpertAxis::kRows ? gate_up_tile(expert, tile) : down_tile(expert, tile);
  }

  static SOLITON_DEVICE float4 four(const float* tile, int quarter) {
    const float2 low = load_constant(reinterpret_cast<const float2*>(tile + quarter * 2));
    const float2 high = load_constant(reinterpret_cast<const float2*>(tile + quarter * 2 + 8));
    return make_float4(low.x, low.y, high.x, high.y);
  }

  template <class Address>
  SOLITON_DEVICE void each(int worker, int count, const Address& address) const {
    if (worker != 0) return;
    for (int i = context_.lane; i < count; i += kWarpLanes) prefetch_vector(address(i), kTileRows * 4);
  }

  SOLITON_DEVICE void prefetch_experts(const MatrixPhase& phase, const TileRun& run, int worker) const {
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
    if (experts.axis == ExpertAxis::kRows) {
      each(worker, run.count, [&](int i) {
        const int tile = run.first + i * run.stride;
        const int slot = tile / experts.tiles;
        return gate_up_tile(ExpertSlot<kPlan>(context_, slot).number(), tile - slot * experts.tiles);
      });
    }
    if (experts.axis == ExpertAxis::kColumns && run.count > 0) {
      each(worker, run.count * context_.expert_slots(), [&](int i) {
        const int expert = ExpertSlot<kPlan>(context_, i / run.count).number();
        return down_tile(expert, run.first + i % run.count * run.stride);
      });
    }
  }

  const Context<kPlan>& context_;
  int layer_;
};

}  // namespace soliton::rows
