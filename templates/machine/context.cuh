// What every thread of a kernel knows, whatever its role: the plan's shared memory and barriers, where it stands in the
// step, and how it waits.
#pragma once

#include "layout/matrix_phase.h"
#include "layout/order.h"
#include "machine/delay.cuh"
#include "machine/peers.cuh"
#include "machine/ring.cuh"
#include "primitives/primitives.h"

namespace soliton {

/// Word offsets in the counter area of the workspace, one cache line each.
constexpr int kStallClaimWord = 0;
constexpr int kCardCounterWord =
    16;  // several rows over several cards: beside the claim, which seldom is looked at
constexpr int kGridCounterWord = 32;
constexpr int kPartialCounterWords = 64;  // one row: one line per head block
constexpr int kRoutesCounterWord = 64;    // several rows: of those who put out logits of a mixture's experts
constexpr int kCounterLineWords = 32;

/// What the kernel needs of layers of several kinds, in constant memory. Where there is one kind all of it is worked out.
template <const KernelPlan& kPlan>
struct LayerTable {
  int64_t weights[kPlan.model.num_layers + 1] = {};
  int norms[kPlan.model.num_layers + 1] = {};
  int before[kPlan.model.num_layers + 1] = {};    // layers of its kind
  int of_kind[kPlan.model.num_kinds() + 1] = {};  // layers
  int mixtures[kPlan.model.num_layers + 1] = {};  // layers before it that choose experts; at last all that do
  static constexpr bool chooses(int kind) {
    for (int i = 0; i < kPlan.num_phases; ++i) {
      if (kPlan.phases[i].layer_kind == kind && kPlan.phases[i].routes != kNone) return true;
    }
    return false;
  }
  constexpr LayerTable() {
    int chosen = 0;
    for (int i = 0; i <= kPlan.model.num_layers; ++i) {
      before[i] = of_kind[kPlan.model.layers[i].kind]++;
      weights[i] = kPlan.model.layers[i].weights;
      norms[i] = kPlan.model.layers[i].first_norm;
      mixtures[i] = chosen;
      if (chooses(kPlan.model.layers[i].kind)) ++chosen;
    }
  }
};
template <const KernelPlan& kPlan>
SOLITON_CONSTANT LayerTable<kPlan> kLayerTable{};

/// Where the weights of a matrix phase begin in a layer, and its row of the norms.
template <const KernelPlan& kPlan>
SOLITON_DEVICE const char* layer_weights(const LaunchParams& params, const MatrixPhase& phase, int layer) {
  const char* weights = static_cast<const char*>(params.weights) + phase.weights;
  if constexpr (kPlan.model.num_kinds() > 1) return weights + kLayerTable<kPlan>.weights[layer];
  return weights + layer * phase.layer_stride;
}
template <const KernelPlan& kPlan>
SOLITON_DEVICE int norm_row(const MatrixPhase& phase, int layer) {
  if constexpr (kPlan.model.num_kinds() > 1) return kLayerTable<kPlan>.norms[layer] + phase.first_norm;
  return phase.first_norm + layer * phase.norm_stride;
}

/// `step` and `phase` say where the thread stands. RegionId and BarrierId are those of the kernel's layout.
template <const KernelPlan& kPlan, class RegionId, class BarrierId>
struct MachineContext {
  static constexpr int kNumCtas = kPlan.num_ctas;
  static constexpr int kCards = kPlan.num_cards;
  static constexpr int kNumWarps = kPlan.working_warps();
  static_assert(kPlan.num_regions == static_cast<int>(RegionId::kCount) &&
                    kPlan.num_barriers == static_cast<int>(BarrierId::kCount),
                "plan.h was generated for other templates: generate it again");

  /// Offsets in shared memory, found by the compiler.
  struct RegionOffset {
    int bytes;
    consteval RegionOffset(RegionId id) : bytes(kPlan.regions[static_cast<int>(id)].offset) {}
  };
  struct BarrierOffset {
    int bytes;
    consteval BarrierOffset(BarrierId id) : bytes(kPlan.barrier_offset(static_cast<int>(id))) {}
  };

  const LaunchParams& params;
  unsigned char* shared;
  int cta;
  int lane;
  int step = 0;
  int phase = 0;             // within the step
  uint32_t phases_done = 0;  // since the launch began

  SOLITON_DEVICE int card() const { return kCards == 1 ? 0 : params.card; }
  /// This CTA's number among those of all cards.
  SOLITON_DEVICE int global_cta() const { return number_of_all<kPlan>(params, cta); }
  /// Is this the CTA that tells the host, and is told by it?
  SOLITON_DEVICE bool is_first_cta() const { return cta == 0 && card() == 0; }

  /// Of the lanes that copy together, the one that waits and arrives for all.
  SOLITON_DEVICE bool leads() const { return kPlan.copy_lanes() == 1 || lane == 0; }

  template <class T = unsigned char>
  SOLITON_DEVICE T* region(RegionOffset offset) const {
    return reinterpret_cast<T*>(shared + offset.bytes);
  }
  SOLITON_DEVICE Barrier& barrier(BarrierOffset first, int slot = 0) const {
    return reinterpret_cast<Barrier*>(shared + first.bytes)[slot];
  }

  template <class T>
  SOLITON_DEVICE T* workspace(int64_t offset) const {
    return reinterpret_cast<T*>(static_cast<unsigned char*>(params.workspace) + offset);
  }
  SOLITON_DEVICE uint32_t* counter(int word) const {
    return workspace<uint32_t>(kPlan.counter_offset) + word;
  }

  /// Where who reads element `element` has it: of what a norm scales, or of what attention puts out; see layout/order.h.
  SOLITON_DEVICE int normed_place(int norm, int element) const {
    return place(kPlan.order_tables().of_norm(norm), element);
  }
  SOLITON_DEVICE int attention_place(int layer, int element) const {
    return place(kPlan.order_tables().of_attention(layer), element);
  }
  SOLITON_DEVICE int place(int64_t table, int element) const {
    if constexpr (kPlan.model.ordered) return load_constant(params.positions + table + element);
    return element;
  }

  /// Made where it is needed: registers are few.
  SOLITON_DEVICE WaitBound bound() const { return make_wait_bound(region<WarpStatus>(RegionId::kStatus)); }
  SOLITON_DEVICE WaitSite site(WaitKind kind, uint32_t index, uint32_t expected = 0,
                               uint32_t seen = 0) const {
    return {kind, static_cast<uint32_t>(step), static_cast<uint32_t>(phase), index, expected, seen};
  }
  SOLITON_DEVICE void wait(Barrier& barrier, uint32_t parity, WaitKind kind, uint32_t index) const {
    wait_barrier(&barrier, parity, site(kind, index, parity, parity ^ 1), bound());
  }

  /// Where a producer wants to know it.
  SOLITON_DEVICE bool consumers_wait(const RingPosition<kPlan.ring_slots>& /*page*/) const { return false; }

  /// Registers must not fill with addresses of all phases, computed once for the launch.
  SOLITON_DEVICE void begin_phase() {
    lane = opaque(lane);
    cta = opaque(cta);
    set_status(bound(), step, phase);
    hold_up(params.delay_seed, phases_done, global_cta());
  }
  SOLITON_DEVICE void end_phase() {
    ++phase;
    ++phases_done;
  }
  SOLITON_DEVICE void end_step() {
    ++step;
    phase = 0;
  }
};

/// A matrix phase as it happens in a step.
struct MatrixInstance {
  const MatrixPhase& phase;
  int layer;  // of the lm_head any, but num_layers where there are several kinds of layers
};

}  // namespace soliton
