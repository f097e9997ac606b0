// The producer: one lane that walks this CTA's page stream and keeps the ring filled, across phases, layers
// and tokens.
#pragma once

#include "kernel.cuh"
#include "ops/known_format.cuh"
#include "ops/timeline.cuh"

namespace soliton {

/// For waits with nothing to do meanwhile.
SOLITON_DEVICE void nothing() {}

/// Walks the pages of a run of tiles: tile by tile; if the input comes in chunks, kTilesAtOnce tiles at a
/// time, of all of them one chunk after the other.
template <class Plan>
class PageCursor {
 public:
  PageCursor() = default;
  /// `matrix`: where tile 0 begins.
  SOLITON_DEVICE PageCursor(const char* matrix, WeightType type, int padded, const TileRun& run)
      : type_(type),
        first_tile_(matrix + static_cast<int64_t>(run.first) * weight_bytes(padded)),
        stride_(static_cast<int64_t>(run.stride) * weight_bytes(padded)),
        padded_(padded),
        tiles_left_(run.count),
        tile_(first_tile_) {}

  SOLITON_DEVICE bool at_end() const { return tiles_left_ == 0; }
  SOLITON_DEVICE const char* address() const { return tile_ + weight_bytes(column_); }
  SOLITON_DEVICE int bytes() const { return weight_bytes(columns()); }
  SOLITON_DEVICE void advance() {
    column_ += columns();
    const int end = chunk_ + Plan::kChunkColumns < padded_ ? chunk_ + Plan::kChunkColumns : padded_;
    if (column_ < end) return;
    const bool in_chunks = padded_ > Plan::kChunkColumns;
    const int tiles = in_chunks && tiles_left_ > 1
                          ? (tiles_left_ < kTilesAtOnce<Plan> ? tiles_left_ : kTilesAtOnce<Plan>)
                          : 1;
    tile_ += stride_;
    if (++done_ == tiles) {
      done_ = 0;
      chunk_ = end;
      if (chunk_ >= padded_) {
        chunk_ = 0;
        first_tile_ = tile_;
        tiles_left_ -= tiles;
      }
      tile_ = first_tile_;
    }
    column_ = chunk_;
  }

 private:
  SOLITON_DEVICE int weight_bytes(int columns) const { return known_weight_bytes<Plan>(type_, columns); }
  SOLITON_DEVICE int columns() const { return known_page_columns<Plan>(type_, padded_ - column_); }

  WeightType type_ = WeightType::kBf16;
  const char* first_tile_ = nullptr;  // of those at a time
  int64_t stride_ = 0;
  int padded_ = 0;
  int tiles_left_ = 0;
  const char* tile_ = nullptr;
  int done_ = 0;   // tiles of the chunk before this one
  int chunk_ = 0;  // its first column
  int column_ = 0;
};

template <class Plan>
class Producer {
 public:
  SOLITON_DEVICE explicit Producer(Context<Plan>& context) : context_(context) {}

  SOLITON_DEVICE bool begin_step() { return !stopped_ && context_.step < context_.params.num_steps; }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  SOLITON_DEVICE void matrix(const MatrixInstance& at, const MatrixInstance& next) {
    begin_phase();
    prefetch_norm(at);
    if (at.phase.output == OutputKind::kSwiglu) prefetch_qkv((at.layer + 1) % Plan::kNumLayers);
    bool in_next = false;  // ahead_ has come to the next phase
    SOLITON_NO_UNROLL
    for (PageCursor<Plan> page = pages(at); !page.at_end(); page.advance()) {
      // While the ring is full, memory would be idle: L2 takes some of the next pages, slowly enough for the
      // vectors that everyone waits for to get through.
      push<Plan::kWindow>(page.address(), page.bytes(), [&] {
        if (num_ahead_ == Plan::kPrefetchPages || !pace()) return;
        if (num_ahead_ == 0) ahead_ = page;
        if (ahead_.at_end() && !in_next) {
          ahead_ = pages(next);
          in_next = true;
        }
        if (ahead_.at_end()) return;
        prefetch_page(ahead_.address(), ahead_.bytes());
        ahead_.advance();
        ++num_ahead_;
      });
      if (num_ahead_ > 0) --num_ahead_;
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
    constexpr KvShape kKv = Plan::kKv;
    constexpr int kSlots = kKv.slots_per_half();
    constexpr int kSlotBytes = kKv.half_bytes() / kSlots;
    constexpr int kSameBytes = Plan::kWindow * kPageBytes / kSlotBytes;  // in flight as in the other phases
    constexpr int kInFlight = kSameBytes < Plan::kRingSlots ? kSameBytes : Plan::kRingSlots;
    const AttentionShare share = context_.attention_share();
    for (int unit = 0; unit < share.count; ++unit) {
      const HeadBlock<Plan> heads(share.first_block + unit * Plan::kNumCtas);
      int next = share.first_page < share.end_page ? physical_page(share.first_page) : 0;
      SOLITON_NO_UNROLL
      for (int page = share.first_page; page < share.end_page; ++page) {
        const int physical = next;
        if (page + 1 < share.end_page) next = physical_page(page + 1);  // on its way while this one is copied
        const char* keys = static_cast<const char*>(context_.params.kv_pool) +
                           kKv.page_offset(physical, layer, heads.kv_head);
        for (int slot = 0; slot < kSlots; ++slot) {
          push<kInFlight>(keys + slot * kSlotBytes, kSlotBytes, nothing);
          push<kInFlight>(keys + kKv.half_bytes() + slot * kSlotBytes, kSlotBytes, nothing);
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
  SOLITON_DEVICE PageCursor<Plan> pages(const MatrixInstance& at) const {
    return {static_cast<const char*>(context_.params.weights) + at.phase.weights +
                at.layer * at.phase.layer_stride,
            at.phase.format.type, at.phase.padded, context_.tiles(at.phase)};
  }

  /// Brings the weights of the norm behind this phase's into L2, one CTA for all: out of device memory they
  /// would come later than the vector that they scale. Norms lie in the order of their use.
  SOLITON_DEVICE void prefetch_norm(const MatrixInstance& at) const {
    constexpr int kNorms = 2 * Plan::kNumLayers + 1;
    if (at.phase.input == InputKind::kVector) return;
    const int next = (at.phase.first_norm + at.layer * at.phase.norm_stride + 1) % kNorms;
    if (next % Plan::kNumCtas != context_.cta) return;
    prefetch_vector(context_.params.norms + static_cast<int64_t>(next) * Plan::kHidden, Plan::kHidden * 2);
  }

  /// The same of what q, k and v of a layer are finished with.
  SOLITON_DEVICE void prefetch_qkv(int layer) const {
    if (layer % Plan::kNumCtas != context_.cta) return;
    if constexpr (Plan::kQkvBias) {
      prefetch_vector(context_.params.qkv_biases + static_cast<int64_t>(layer) * Plan::kQkvRows,
                      Plan::kQkvRows * 4);
    }
    if constexpr (Plan::kHeadNorm) {
      constexpr int kWeights = 2 * Plan::kHeadDim;
      prefetch_vector(context_.params.head_norms + layer * kWeights, kWeights * 2);
    }
  }

  /// Is it time for another prefetch?
  SOLITON_DEVICE bool pace() {
    const uint32_t now = time_ns();
    if (now - last_prefetch_ < Plan::kPrefetchNs) return false;
    last_prefetch_ = now;
    return true;
  }

  SOLITON_DEVICE void begin_phase() {
    set_status(context_.bound, context_.step, context_.phase);
    hold_up(context_.params.delay_seed, context_.phases_done, context_.cta);
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

  /// Issues one copy. Waits until fewer than kInFlight copies are in flight and the slot is free.
  template <int kInFlight, class Idle>
  SOLITON_DEVICE void push(const char* source, int bytes, const Idle& idle) {
    if (stopped_) return;
    if (issued_ - landed_ >= kInFlight) {
      window_waits_.begin();
      while (issued_ - landed_ >= kInFlight) wait_landed();
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
    copy_page(context_.shared + SharedMap<Plan>::kPages + slot_ * Plan::kSlotBytes, source, bytes, full);
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
  PageCursor<Plan> ahead_;  // what comes into L2 next,
  int num_ahead_ = 0;       // this many pages ahead of the ring
  uint32_t last_prefetch_ = 0;
  uint32_t phase_begin_ = 0;  // issued_ at the beginning of the phase
  WaitClock slot_waits_;
  WaitClock window_waits_;
};

}  // namespace soliton
