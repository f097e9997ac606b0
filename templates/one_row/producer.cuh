// The producer of the kernel for one row: this CTA's page stream, across phases, layers and tokens.
#pragma once

#include <type_traits>

#include "machine/ring_producer.cuh"
#include "one_row/experts.cuh"
#include "one_row/page_cursor.cuh"
#include "ops/row_factors.cuh"

namespace soliton::one_row {

/// What the machine knows of this kernel.
template <const KernelPlan& kPlan>
struct Kernel {
  using Context = one_row::Context<kPlan>;
  using BarrierId = one_row::BarrierId;
  using RegionId = one_row::RegionId;
};

template <const KernelPlan& kPlan>
using Cursor = std::conditional_t<kMixes<kPlan>, ExpertPageCursor<kPlan>, PageCursor<kPlan>>;

template <const KernelPlan& kPlan>
class Producer : public RingProducer<kPlan, Kernel<kPlan>, Cursor<kPlan>> {
  using Base = RingProducer<kPlan, Kernel<kPlan>, Cursor<kPlan>>;
  using Base::context_, Base::issued_;

 public:
  using Base::Base;

  SOLITON_DEVICE bool begin_step() { return !this->stopped() && context_.step < context_.params.num_steps; }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  SOLITON_DEVICE void matrix(const MatrixInstance& at, const MatrixInstance& next) {
    begin_phase();
    prefetch_norm(at);
    if (at.phase.output == OutputKind::kSwiglu) prefetch_qkv((at.layer + 1) % kPlan.model.num_layers);
    TileRun run = context_.tiles(at.phase);
    if constexpr (kMixes<kPlan>) {
      if (axis_of(at) == ExpertAxis::kRows) {
        stream_shared(at, run);
        if (!wait_experts()) return;
      }
    }
    this->stream(pages(at, run), PageWindow(kPlan.window, kPlan.waiting_window),
                 [&] { return known_pages(next); });
    if constexpr (kMixes<kPlan>) {
      if (axis_of(at) == ExpertAxis::kColumns) release_experts();
    }
    end_phase();
  }

  template <int kPhase>
  SOLITON_DEVICE void attend(int layer) {
    begin_phase();
    // Pairs with the epilogue's arrival in matrix().
    if (layer == 0 && !this->wait_step_read()) return;
    constexpr KvShape kKv = kPlan.card_kv();
    constexpr int kSlots = kKv.slots_per_half();
    constexpr int kSlotBytes = kKv.half_bytes() / kSlots;
    constexpr int kWindow = kPlan.window_of(kPlan.phases[kPhase]);
    const AttentionShare share = context_.attention_share(layer);
    for (int unit = 0; unit < share.count; ++unit) {
      const HeadBlock<kPlan> heads(share.first_block + unit * kPlan.num_ctas, context_.card());
      int next = share.first_page < share.end_page ? physical(share.first_page, layer) : 0;
      SOLITON_NO_UNROLL
      for (int page = share.first_page; page < share.end_page; ++page) {
        const int at = next;
        if (page + 1 < share.end_page)
          next = physical(page + 1, layer);  // on its way while this one is copied
        const char* keys =
            reinterpret_cast<const char*>(kv_page<kPlan>(context_.params, at, layer, heads.kv_slot));
        for (int slot = 0; slot < kSlots; ++slot) {
          this->push(keys + slot * kSlotBytes, kSlotBytes, kWindow);
          this->push(keys + kKv.half_bytes() + slot * kSlotBytes, kSlotBytes, kWindow);
        }
      }
    }
    end_phase();
  }

 private:
  SOLITON_DEVICE Cursor<kPlan> pages(const MatrixInstance& at, const TileRun& run) const {
    const char* matrix = layer_weights<kPlan>(context_.params, at.phase, at.layer);
    if constexpr (kMixes<kPlan>) {
      return {matrix, at.phase, run, context_.experts()};
    } else {
      return {matrix, at.phase.format.type, at.phase.padded, run};
    }
  }
  SOLITON_DEVICE ExpertAxis axis_of(const MatrixInstance& at) const {
    return kExpertTable<kPlan>.phases[at.phase.number].axis;
  }
  /// While experts are not known, their pages can't be looked at, but for those of shared ones.
  SOLITON_DEVICE Cursor<kPlan> known_pages(const MatrixInstance& next) const {
    TileRun run = context_.tiles(next.phase);
    if constexpr (kMixes<kPlan>) {
      if (axis_of(next) == ExpertAxis::kRows) run.count = num_shared(next, run);
    }
    return pages(next, run);
  }
  /// Tiles of a run that are those of shared experts: the first.
  SOLITON_DEVICE int num_shared(const MatrixInstance& at, const TileRun& run) const {
    const int end = kPlan.model.mixture.shared * kExpertTable<kPlan>.phases[at.phase.number].tiles;
    const int count = run.first < end ? ceil_divide(end - run.first, run.stride) : 0;
    return count < run.count ? count : run.count;
  }
  /// Copies them before the token's own experts are known, and leaves those behind them in `run`.
  SOLITON_DEVICE void stream_shared(const MatrixInstance& at, TileRun& run) {
    if constexpr (kPlan.model.mixture.shared > 0) {
      TileRun shared = run;
      shared.count = num_shared(at, run);
      this->stream(pages(at, shared), PageWindow(kPlan.window, kPlan.waiting_window),
                   [] { return Cursor<kPlan>(); });
      run.first += shared.count * run.stride;
      run.count -= shared.count;
    }
  }
  /// Waits until the layer's experts are known; false once the launch has stopped. Pairs with the epilogue's arrival in
  /// choose().
  SOLITON_DEVICE bool wait_experts() {
    if (this->stopped()) return false;
    this->wait_unless_stopped(context_.barrier(BarrierId::kExpertsChosen), choices_ & 1,
                              WaitKind::kExpertsChosen, choices_, nothing);
    ++choices_;
    return !this->stopped();
  }
  /// Says that this producer needs them no more. Pairs with the epilogue's wait in choose().
  SOLITON_DEVICE void release_experts() {
    Barrier* taken = &context_.barrier(BarrierId::kExpertsTaken);
    if constexpr (kPlan.copies == CopyKind::kBulk) {
      barrier_arrive(taken);
    } else {
      warp_arrive(taken);
    }
  }

  /// Brings the weights of the norm behind this phase's into L2, one CTA for all: out of device memory they
  /// would come later than the vector that they scale. Norms lie in the order of their use.
  SOLITON_DEVICE void prefetch_norm(const MatrixInstance& at) const {
    if (at.phase.input == InputKind::kVector) return;
    const int next = (norm_row<kPlan>(at.phase, at.layer) + 1) % kPlan.num_norms;
    if (next % kPlan.num_ctas != context_.cta) return;
    prefetch(context_.params.norms + static_cast<int64_t>(next) * kPlan.model.hidden, kPlan.model.hidden * 2);
  }

  /// The same of what q, k and v of a layer are finished with, and what attends to them.
  SOLITON_DEVICE void prefetch_qkv(int layer) const {
    if (layer % kPlan.num_ctas != context_.cta) return;
    if constexpr (kPlan.model.qkv_bias) {
      prefetch(context_.params.qkv_biases + static_cast<int64_t>(layer) * kPlan.model.qkv_rows(),
               kPlan.model.qkv_rows() * 4);
    }
    if constexpr (kPlan.model.head_norm) {
      constexpr int kWeights = kPlan.model.head_norm_weights();
      prefetch(context_.params.head_norms + layer * kWeights, kWeights * 2);
    }
    constexpr LayerBiases kBiases = kPlan.model.biases();
    if constexpr (kBiases.gate_up() > 0) {  // sinks, and biases of o
      prefetch(context_.params.layer_biases + static_cast<int64_t>(layer) * kBiases.words(),
               kBiases.gate_up() * 4);
    }
    if constexpr (RowFactors<kPlan>::kIsThere)
      prefetch(RowFactors<kPlan>::of_layer(context_.params.layer_biases, layer), kNumFactors * 4);
  }

  SOLITON_DEVICE void prefetch(const void* memory, int bytes) const {
    if (this->is_first()) this->copies_.prefetch_vector(memory, bytes);
  }

  SOLITON_DEVICE int physical(int page, int layer) const {
    return physical_page<kPlan>(context_.params, context_.params.page_table, page, layer);
  }

  SOLITON_DEVICE void begin_phase() {
    context_.begin_phase();
    mark(context_, &PhaseRecord::begin);
    phase_begin_ = issued_;
  }
  SOLITON_DEVICE void end_phase() {
    mark(context_, &PhaseRecord::end);
    note(context_, &PhaseRecord::waited, this->slot_waits_.take());
    note(context_, &PhaseRecord::limited, this->window_waits_.take());
    note(context_, &PhaseRecord::pages, issued_ - phase_begin_);
    context_.end_phase();
  }

  uint32_t phase_begin_ = 0;  // issued_ at the beginning of the phase
  uint32_t choices_ = 0;      // of experts, since the launch began
};

}  // namespace soliton::one_row
