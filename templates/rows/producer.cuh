// The producer: one lane that walks this CTA's page stream and keeps the ring filled, across phases, layers
// and steps.
#pragma once

#include "ops/known_format.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

/// Walks the slots of a run of tiles, in the order in which the workers want them: a few tiles at a time;
/// of all of these one chunk of columns after the other; tiles_per_slot tiles side by side. Of integers a slot
/// holds a page of one tile.
template <class Plan>
class SlotCursor {
 public:
  static constexpr RowsShape kRowsShape = kShape<Plan>;

  SlotCursor() = default;
  /// `matrix`: where tile 0 begins.
  SOLITON_DEVICE SlotCursor(const char* matrix, WeightType type, int padded, const TileRun& run)
      : type_(type),
        first_tile_(matrix + static_cast<int64_t>(run.first) * weight_bytes(padded)),
        stride_(static_cast<int64_t>(run.stride) * weight_bytes(padded)),
        padded_(padded),
        tiles_left_(run.count) {}

  SOLITON_DEVICE bool at_end() const { return tiles_left_ <= 0; }
  SOLITON_DEVICE int num_tiles() const {
    const int rest = at_once() - tile_;
    return rest < tiles_per_slot() ? rest : tiles_per_slot();
  }
  SOLITON_DEVICE const char* address(int tile) const {
    return first_tile_ + (tile_ + tile) * stride_ + weight_bytes(column_);
  }
  SOLITON_DEVICE int tile_piece_bytes() const { return weight_bytes(columns()); }
  SOLITON_DEVICE void advance() {
    tile_ += tiles_per_slot();
    if (tile_ < at_once()) return;
    tile_ = 0;
    column_ += columns();
    if (column_ < padded_) return;
    column_ = 0;
    first_tile_ += kTilesAtOnce * stride_;
    tiles_left_ -= kTilesAtOnce;
  }

 private:
  SOLITON_DEVICE int at_once() const { return tiles_left_ < kTilesAtOnce ? tiles_left_ : kTilesAtOnce; }

  SOLITON_DEVICE int weight_bytes(int columns) const { return known_weight_bytes<Plan>(type_, columns); }
  SOLITON_DEVICE int tiles_per_slot() const {
    return is_integer<Plan>(type_) ? 1 : kRowsShape.tiles_per_slot;
  }
  SOLITON_DEVICE int columns() const {
    const int rest = padded_ - column_;
    if (is_integer<Plan>(type_)) return page_columns(Plan::kIntegers, rest);
    return rest < kRowsShape.chunk_columns() ? rest : kRowsShape.chunk_columns();
  }

  WeightType type_ = WeightType::kBf16;
  const char* first_tile_ = nullptr;  // of those at a time
  int64_t stride_ = 0;
  int padded_ = 0;
  int tiles_left_ = 0;
  int tile_ = 0;
  int column_ = 0;
};

template <class Plan>
class Producer {
 public:
  SOLITON_DEVICE explicit Producer(Context<Plan>& context) : context_(context) {}

  SOLITON_DEVICE bool begin_step() {
    if (stopped_ || context_.step >= context_.params.num_steps) return false;
    context_.begin_phase();
    context_.end_phase();  // the tokens' embedding
    return true;
  }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  SOLITON_DEVICE void matrix(const MatrixInstance& at, const MatrixInstance& next) {
    context_.begin_phase();
    bool in_next = false;  // ahead_ has come to the next phase
    SOLITON_NO_UNROLL
    for (SlotCursor<Plan> slot = slots(at); !slot.at_end() && !stopped_; slot.advance()) {
      // While the ring is full, L2 takes some of the next slots: see ops/producer.cuh.
      if (begin_slot(Plan::kWindow, [&] {
            if (num_ahead_ == Plan::kPrefetchPages || !pace()) return;
            if (num_ahead_ == 0) ahead_ = slot;
            if (ahead_.at_end() && !in_next) {
              ahead_ = slots(next);
              in_next = true;
            }
            if (ahead_.at_end()) return;
            for (int i = 0; i < ahead_.num_tiles(); ++i)
              prefetch_page(ahead_.address(i), ahead_.tile_piece_bytes());
            ahead_.advance();
            ++num_ahead_;
          })) {
        const int bytes = slot.tile_piece_bytes();
        const int tiles = slot.num_tiles();
        barrier_arrive_expect(full(), tiles * bytes);
        for (int i = 0; i < tiles; ++i)
          copy(i * (kPageBytes / kShape<Plan>.tiles_per_slot), slot.address(i), bytes);
        end_slot();
      }
      if (num_ahead_ > 0) --num_ahead_;
    }
    context_.end_phase();
  }

  SOLITON_DEVICE void attend(int layer) {
    context_.begin_phase();
    // Pairs with the input loader's arrival: the KV of earlier steps is complete and visible to this CTA.
    if (layer == 0 && context_.step > 0 && !stopped_) {
      if (!wait_unless_stopped(context_.barriers().step_read, (context_.step - 1) & 1, WaitKind::kPhaseGate,
                               0, [] {}))
        return;
      fence_async();
    }
    constexpr KvShape kKv = Plan::kKv;
    constexpr int kSlots = kKv.slots_per_half();
    constexpr int kSlotBytes = kKv.half_bytes() / kSlots;
    constexpr int kSameBytes = Plan::kWindow * kPageBytes / kSlotBytes;  // in flight as in the other phases
    constexpr int kInFlight = kSameBytes < Plan::kRingSlots ? kSameBytes : Plan::kRingSlots;
    const int end = context_.end_item();
    SOLITON_NO_UNROLL
    for (int i = context_.first_item(); i < end; ++i) {
      const TreeItem item = context_.item(i);
      const int pages = num_pages(item, context_.step);
      SOLITON_NO_UNROLL
      for (int page = 0; page < pages; ++page) {
        const int physical = load_constant(context_.params.tree.pages + item.first_page + page);
        const char* keys = static_cast<const char*>(context_.params.kv_pool) +
                           kKv.page_offset(physical, layer, item.kv_head);
        for (int half = 0; half < 2 * kSlots; ++half) {  // all keys, then all values
          if (!begin_slot(kInFlight, [] {})) return;
          barrier_arrive_expect(full(), kSlotBytes);
          copy(0, keys + half * kSlotBytes, kSlotBytes);
          end_slot();
        }
      }
    }
    context_.end_phase();
  }
  SOLITON_DEVICE void norm_heads(int /*layer*/) { context_.end_phase(); }
  SOLITON_DEVICE void merge(int /*layer*/) { context_.end_phase(); }

  /// Waits for the copies in flight: shared memory must outlive them.
  SOLITON_DEVICE void drain() {
    while (landed_ < issued_) wait_landed();
  }

 private:
  SOLITON_DEVICE SlotCursor<Plan> slots(const MatrixInstance& at) const {
    return {static_cast<const char*>(context_.params.weights) + at.phase.weights +
                at.layer * at.phase.layer_stride,
            at.phase.format.type, at.phase.padded, context_.tiles(at.phase)};
  }

  /// Is it time for another prefetch?
  SOLITON_DEVICE bool pace() {
    const uint32_t now = time_ns();
    if (now - last_prefetch_ < Plan::kPrefetchNs) return false;
    last_prefetch_ = now;
    return true;
  }

  /// Waits until fewer than `in_flight` slots are being copied and the next one is free. False once the
  /// launch has stopped.
  template <class Idle>
  SOLITON_DEVICE bool begin_slot(int in_flight, const Idle& idle) {
    if (stopped_) return false;
    while (static_cast<int>(issued_ - landed_) >= in_flight) wait_landed();
    if (issued_ < Plan::kRingSlots) return true;
    // Pairs with the workers' arrival in PageStream::release(). Every use of a slot is waited for, so the parity
    // is never more than one phase behind.
    return wait_unless_stopped(context_.barriers().page_empty[slot_], parity_ ^ 1, WaitKind::kPageEmpty,
                               issued_, idle);
  }
  SOLITON_DEVICE Barrier* full() const { return &context_.barriers().page_full[slot_]; }
  SOLITON_DEVICE void copy(int offset, const char* source, int bytes) const {
    copy_page(context_.shared + SharedMap<Plan>::kPages + slot_ * Plan::kSlotBytes + offset, source, bytes,
              full());
  }
  SOLITON_DEVICE void end_slot() {
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
                                    context_.site(kind, index, parity, parity ^ 1), context_.bound(), idle);
    return !stopped_;
  }

  Context<Plan>& context_;
  uint32_t issued_ = 0;  // slots since the launch began
  uint32_t landed_ = 0;  // of these, known to have landed
  int slot_ = 0;
  uint32_t parity_ = 0;  // of the page_full phase that the next slot completes
  int landed_slot_ = 0;
  uint32_t landed_parity_ = 0;
  bool stopped_ = false;
  SlotCursor<Plan> ahead_;  // what comes into L2 next,
  int num_ahead_ = 0;       // this many slots ahead of the ring
  uint32_t last_prefetch_ = 0;
};

}  // namespace soliton::rows
