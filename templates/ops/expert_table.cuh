// What matrix phases of a mixture of experts are.
#pragma once

#include "machine/walk.cuh"

namespace soliton {

/// What a matrix phase of experts knows beside MatrixPhase.
struct ExpertPhase {
  ExpertAxis axis = ExpertAxis::kNone;
  int tiles = 1;              // of one expert's rows that are written
  int64_t expert_bytes = 0;   // from one expert to the next
  int tile_bytes = 0;         // of all that a token is multiplied with
  int stored_tile_bytes = 0;  // of one expert
  Vector routes = {};         // of who chooses
  int slot_tiles = 1;         // pairs are multiplied by so many tiles of a slot
};

/// By MatrixPhase::number.
template <const KernelPlan& kPlan>
struct ExpertTable {
  /// Tiles of few columns come by two: fewer copies, of as many bytes as others. Of all matrices on an axis alike.
  static constexpr int slot_tiles(ExpertAxis axis) {
    bool fits = kPlan.multiplies_pairs();
    for (int i = 0; i < kPlan.num_matrices; ++i) {
      const PackedMatrix& matrix = kPlan.matrices[i];
      if (matrix.experts.axis != axis) continue;
      fits = fits && 2 * matrix.stored_tile_bytes() <= kPlan.slot_bytes && matrix.expert_tiles() % 2 == 0;
    }
    return fits ? 2 : 1;
  }
  ExpertPhase phases[PhaseOrder<kPlan>::kMatrices] = {};
  constexpr ExpertTable() {
    int next = 0;
    for (int i = 0; i < kPlan.num_phases; ++i) {
      const Phase& phase = kPlan.phases[i];
      if (phase.kind != PhaseKind::kMatrix) continue;
      const PackedMatrix& matrix = kPlan.matrices[phase.matrix];
      phases[next++] = {matrix.experts.axis,
                        matrix.expert_tiles(),
                        matrix.expert_bytes(),
                        tile_bytes(matrix.format, matrix.padded_columns),
                        matrix.stored_tile_bytes(),
                        kPlan.vector(phase.routes),
                        slot_tiles(matrix.experts.axis)};
    }
  }
};
template <const KernelPlan& kPlan>
SOLITON_CONSTANT ExpertTable<kPlan> kExpertTable{};

/// Tiles of an expert in a matrix on an axis, of all kinds of layers alike; and of a slot, where pairs are multiplied.
template <const KernelPlan& kPlan, ExpertAxis kAxis>
constexpr int kExpertTiles = [] {
  for (int i = 0; i < kPlan.num_matrices; ++i) {
    if (kPlan.matrices[i].experts.axis == kAxis) return kPlan.matrices[i].expert_tiles();
  }
  return 1;
}();
template <const KernelPlan& kPlan, ExpertAxis kAxis>
constexpr int kSlotTiles = ExpertTable<kPlan>::slot_tiles(kAxis);

/// Has the model such layers?
template <const KernelPlan& kPlan>
constexpr bool kMixes = kPlan.model.mixture.experts > 0;

/// A router has few tiles, and all wait for them: CTAs share the columns of each, of which everyone adds up what they put
/// out, slice by slice.
template <const KernelPlan& kPlan>
struct RouterSlices {
  static constexpr int count() {
    for (int i = 0; i < (kPlan.warpgroups ? 0 : kPlan.num_phases); ++i) {
      const Phase& phase = kPlan.phases[i];
      if (phase.kind == PhaseKind::kMatrix && phase.output == OutputKind::kRouter) return phase.column_slices;
    }
    return 1;
  }
  static constexpr int kCount = count();
  static constexpr int kWords = route_words(kPlan.model.mixture.logits());  // of a slice
};

/// CTAs that have tiles of the router, of all cards: some that follow one another, and the first behind the last.
template <const KernelPlan& kPlan>
consteval TileRun router_ctas() {
  for (int i = 0; i < kPlan.num_phases; ++i) {
    const Phase& phase = kPlan.phases[i];
    if (phase.kind != PhaseKind::kMatrix || phase.output != OutputKind::kRouter) continue;
    const int tiles = kPlan.matrices[phase.matrix].num_tiles * phase.column_slices;
    return {phase.first_cta, 1, tiles < kPlan.all_ctas() ? tiles : kPlan.all_ctas()};
  }
  return {};
}

/// What the router reads, and gate and up of experts.
template <const KernelPlan& kPlan>
consteval Vector mixture_input() {
  Vector input;
  for (int i = 0; i < kPlan.num_phases; ++i) {
    if (kPlan.phases[i].routes != kNone) input = kPlan.vector(kPlan.phases[i].reads);
  }
  return input;
}

template <const KernelPlan& kPlan>
SOLITON_DEVICE ExpertAxis expert_axis(const MatrixPhase& phase) {
  if constexpr (kMixes<kPlan>) return kExpertTable<kPlan>.phases[phase.number].axis;
  return ExpertAxis::kNone;
}

}  // namespace soliton
