// The producer: one lane that walks this CTA's page stream and keeps the ring filled, across phases, layers
// and tokens.
#pragma once

#include "kernel.cuh"
#include "ops/timeline.cuh"

namespace soliton {

/// For waits with nothing to do meanwhile.
SOLITON_DEVICE void nothing() {}

template <class Plan>
class Producer {
 public:
  SOLITON_DEVICE explicit Producer(Context<Plan>& context) : context_(context) {}

  SOLITON_DEVICE bool begin_step() { return !stopped_ && context_.step < context_.params.num_steps; }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  template <MatrixPhase kPhase>
  SOLITON_DEVICE void matrix(int layer) {
    begin_phase();
    constexpr int kPages = pages_per_tile(kPhase.padded);
    const TileRun run = context_.tiles(kPhase);
    const char* first = static_cast<const char*>(context_.params.weights) + kPhase.weights +
                        layer * kPhase.layer_stride +
                        static_cast<int64_t>(run.first) * tile_bytes(kPhase.padded);
    const auto address = [&](int page) {
      return first + static_cast<int64_t>(page / kPages) * run.stride * tile_bytes(kPhase.padded) +
             page % kPages * kPageBytes;
    };
    const auto bytes = [&](int page) { return page_columns(kPhase.padded, page % kPages) * kTileRows * 2; };
    const int num_pages = run.count * kPages;
    int ahead = 0;  // the next page to prefetch
    // While the ring is full, memory would be idle: L2 takes some of the next pages, slowly enough for the vectors that
    // everyone waits for to get through.
    SOLITON_NO_UNROLL
    for (int page = 0; page < num_pages; ++page) {
      if (ahead < page) ahead = page;
      push(address(page), bytes(page), [&] {
        if (ahead < num_pages && ahead < page + Plan::kPrefetchPages && pace()) {
          prefetch_page(address(ahead), bytes(ahead));
          ++ahead;
        }
      });
    }
    end_phase();
  }

  template <AttentionPhase kPhase>
  SOLITON_DEVICE void attention(int layer) {
    begin_phase();
    // Pairs with the epilogue's arrival in matrix(): the KV of earlier steps is complete and visible to this
    // CTA.
    if (layer == 0 && context_.step > 0) {
      if (!wait_unless_stopped(context_.barriers().step_read, (context_.step - 1) & 1, WaitKind::kPhaseGate,
                               0, nothing))
        return;
      fence_async();
    }
    constexpr int kSlots = kv_slots_per_half(Plan::kHeadDim);
    constexpr int kSlotBytes = kv_half_bytes(Plan::kHeadDim) / kSlots;
    const AttentionShare share = context_.attention_share();
    for (int unit = 0; unit < share.count; ++unit) {
      const HeadBlock<Plan> heads(share.first_block + unit * Plan::kNumCtas);
      int next = share.first_page < share.end_page ? physical_page(share.first_page) : 0;
      SOLITON_NO_UNROLL
      for (int page = share.first_page; page < share.end_page; ++page) {
        const int physical = next;
        if (page + 1 < share.end_page) next = physical_page(page + 1);  // on its way while this one is copied
        const char* keys = static_cast<const char*>(context_.params.kv_pool) +
                           kv_page_offset(physical, layer, heads.kv_head, Plan::kNumLayers, Plan::kNumKvHeads,
                                          Plan::kHeadDim);
        for (int slot = 0; slot < kSlots; ++slot) {
          push(keys + slot * kSlotBytes, kSlotBytes, nothing);
          push(keys + kv_half_bytes(Plan::kHeadDim) + slot * kSlotBytes, kSlotBytes, nothing);
        }
      }
    }
    end_phase();
  }

  /// Waits for the copies in flight: shared memory must outlive them.
  SOLITON_DEVICE void drain() {
    while (landed_ < issued_) wait_landed();
  }

 private:
  /// Is it time for another prefetch?
  SOLITON_DEVICE bool pace() {
    const uint32_t now = time_ns();
    if (now - last_prefetch_ < Plan::kPrefetchNs) return false;
    last_prefetch_ = now;
    return true;
  }

  SOLITON_DEVICE void begin_phase() {
    stand(context_.bound, context_.step, context_.phase);
    mark(context_, &PhaseRecord::begin);
    phase_begin_ = issued_;
  }
  SOLITON_DEVICE void end_phase() {
    mark(context_, &PhaseRecord::end);
    note(context_, &PhaseRecord::waited, slot_waits_.take());
    note(context_, &PhaseRecord::limited, window_waits_.take());
    note(context_, &PhaseRecord::pages, issued_ - phase_begin_);
    context_.end_phase();
  }

  SOLITON_DEVICE int physical_page(int page) const {
    return load_constant(context_.params.page_table + page);
  }

  /// Issues one copy. Waits until fewer than kWindow copies are in flight and the slot is free.
  template <class Idle>
  SOLITON_DEVICE void push(const char* source, int bytes, const Idle& idle) {
    if (stopped_) return;
    if (issued_ - landed_ >= Plan::kWindow) {
      window_waits_.begin();
      wait_landed();
      window_waits_.end();
    }
    if (issued_ >= Plan::kRingSlots) {
      // Pairs with the consumers' arrival in release_page(). Every use of a slot is waited for, so the parity
      // is never more than one phase behind.
      slot_waits_.begin();
      if (!wait_unless_stopped(context_.barriers().page_empty[slot_], parity_ ^ 1, WaitKind::kPageEmpty,
                               issued_, idle))
        return;
      slot_waits_.end();
    }
    Barrier* full = &context_.barriers().page_full[slot_];
    barrier_arrive_expect(full, bytes);
    copy_page(context_.shared + SharedMap<Plan>::kPages + slot_ * kPageBytes, source, bytes, full);
    ++issued_;
    if (++slot_ == Plan::kRingSlots) {
      slot_ = 0;
      parity_ ^= 1;
    }
  }

  SOLITON_DEVICE void wait_landed() {
    context_.wait(context_.barriers().page_full[landed_slot_], landed_parity_, WaitKind::kPageFull, landed_);
    ++landed_;
    if (++landed_slot_ == Plan::kRingSlots) {
      landed_slot_ = 0;
      landed_parity_ ^= 1;
    }
  }

  /// Consumers that stop release nothing any more: whoever waits for them must look for that too.
  template <class Idle>
  SOLITON_DEVICE bool wait_unless_stopped(Barrier& barrier, uint32_t parity, WaitKind kind, uint32_t index,
                                          const Idle& idle) {
    stopped_ = !wait_barrier_unless(&barrier, parity, &context_.barriers().stopped,
                                    context_.site(kind, index, parity, parity ^ 1), context_.bound, idle);
    return !stopped_;
  }

  Context<Plan>& context_;
  uint32_t issued_ = 0;  // pages since the launch began
  uint32_t landed_ = 0;  // of these, known to have landed
  int slot_ = 0;
  uint32_t parity_ = 0;  // of the page_full phase that the next page completes
  int landed_slot_ = 0;
  uint32_t landed_parity_ = 0;
  bool stopped_ = false;
  uint32_t last_prefetch_ = 0;
  uint32_t phase_begin_ = 0;  // issued_ at the beginning of the phase
  WaitClock slot_waits_;
  WaitClock window_waits_;
};

}  // namespace soliton
