// The producer of the kernel for one row: this CTA's page stream, across phases, layers and tokens.
#pragma once

#include "formats/formats.cuh"
#include "machine/ring_producer.cuh"
#include "one_row/context.cuh"

namespace soliton::one_row {

/// Walks the pages of a run of tiles: tile by tile; if the input comes in chunks, kTilesAtOnce tiles at a
/// time, of all of them one chunk after the other.
template <const KernelPlan& kPlan>
class PageCursor {
 public:
  PageCursor() = default;
  /// `matrix`: where tile 0 begins.
  /// `run`: of all cards' tiles, of which this card has one in num_cards.
  SOLITON_DEVICE PageCursor(const char* matrix, WeightType type, int padded, const TileRun& run)
      : type_(type),
        first_tile_(matrix + static_cast<int64_t>(run.first / kPlan.num_cards) * weight_bytes(padded)),
        stride_(static_cast<int64_t>(run.stride / kPlan.num_cards) * weight_bytes(padded)),
        padded_(padded),
        tiles_left_(run.count),
        tile_(first_tile_) {}

  SOLITON_DEVICE bool at_end() const { return tiles_left_ == 0; }
  /// Copies the page into the ring.
  template <class Producer>
  SOLITON_DEVICE void push(const Producer& producer) const {
    producer.expect(bytes());
    producer.copy(0, address(), bytes());
  }
  template <class Copies>
  SOLITON_DEVICE void prefetch(const Copies& copies) const {
    copies.prefetch_page(address(), bytes());
  }
  SOLITON_DEVICE void advance() {
    column_ += columns();
    const int end = chunk_ + kPlan.chunk_columns < padded_ ? chunk_ + kPlan.chunk_columns : padded_;
    if (column_ < end) return;
    const bool in_chunks = padded_ > kPlan.chunk_columns;
    const int tiles = in_chunks && tiles_left_ > 1
                          ? (tiles_left_ < kTilesAtOnce<kPlan> ? tiles_left_ : kTilesAtOnce<kPlan>)
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
  SOLITON_DEVICE const char* address() const { return tile_ + weight_bytes(column_); }
  SOLITON_DEVICE int bytes() const { return weight_bytes(columns()); }
  SOLITON_DEVICE int weight_bytes(int columns) const { return known_weight_bytes<kPlan>(type_, columns); }
  SOLITON_DEVICE int columns() const { return known_page_columns<kPlan>(type_, padded_ - column_); }

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

/// What the machine knows of this kernel.
template <const KernelPlan& kPlan>
struct Kernel {
  using Context = one_row::Context<kPlan>;
  using BarrierId = one_row::BarrierId;
  using RegionId = one_row::RegionId;
};

template <const KernelPlan& kPlan>
class Producer : public RingProducer<kPlan, Kernel<kPlan>, PageCursor<kPlan>> {
  using Base = RingProducer<kPlan, Kernel<kPlan>, PageCursor<kPlan>>;
  using Base::context_, Base::issued_;

 public:
  using Base::Base;

  SOLITON_DEVICE bool begin_step() { return !this->stopped() && context_.step < context_.params.num_steps; }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  SOLITON_DEVICE void matrix(const MatrixInstance& at, const MatrixInstance& next) {
    begin_phase();
    prefetch_norm(at);
    if (at.phase.output == OutputKind::kSwiglu) prefetch_qkv((at.layer + 1) % kPlan.model.num_layers);
    this->stream(pages(at), PageWindow(kPlan.window, kPlan.waiting_window), [&] { return pages(next); });
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
      int next = share.first_page < share.end_page ? physical_page(share.first_page) : 0;
      SOLITON_NO_UNROLL
      for (int page = share.first_page; page < share.end_page; ++page) {
        const int physical = next;
        if (page + 1 < share.end_page) next = physical_page(page + 1);  // on its way while this one is copied
        const char* keys = static_cast<const char*>(context_.params.kv_pool) +
                           kKv.page_offset(physical, layer, heads.kv_slot);
        for (int slot = 0; slot < kSlots; ++slot) {
          this->push(keys + slot * kSlotBytes, kSlotBytes, kWindow);
          this->push(keys + kKv.half_bytes() + slot * kSlotBytes, kSlotBytes, kWindow);
        }
      }
    }
    end_phase();
  }

 private:
  SOLITON_DEVICE PageCursor<kPlan> pages(const MatrixInstance& at) const {
    return {layer_weights<kPlan>(context_.params, at.phase, at.layer), at.phase.format.type, at.phase.padded,
            context_.tiles(at.phase)};
  }

  /// Brings the weights of the norm behind this phase's into L2, one CTA for all: out of device memory they
  /// would come later than the vector that they scale. Norms lie in the order of their use.
  SOLITON_DEVICE void prefetch_norm(const MatrixInstance& at) const {
    if (at.phase.input == InputKind::kVector) return;
    const int next = (norm_row<kPlan>(at.phase, at.layer) + 1) % kPlan.num_norms;
    if (next % kPlan.num_ctas != context_.cta) return;
    prefetch(context_.params.norms + static_cast<int64_t>(next) * kPlan.model.hidden, kPlan.model.hidden * 2);
  }

  /// The same of what q, k and v of a layer are finished with.
  SOLITON_DEVICE void prefetch_qkv(int layer) const {
    if (layer % kPlan.num_ctas != context_.cta) return;
    if constexpr (kPlan.model.qkv_bias) {
      prefetch(context_.params.qkv_biases + static_cast<int64_t>(layer) * kPlan.model.qkv_rows(),
               kPlan.model.qkv_rows() * 4);
    }
    if constexpr (kPlan.model.head_norm) {
      constexpr int kWeights = 2 * kPlan.model.head_dim;
      prefetch(context_.params.head_norms + layer * kWeights, kWeights * 2);
    }
  }

  SOLITON_DEVICE void prefetch(const void* memory, int bytes) const {
    if (this->is_first()) this->copies_.prefetch_vector(memory, bytes);
  }

  SOLITON_DEVICE int physical_page(int page) const {
    return load_constant(context_.params.page_table + page);
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
};

}  // namespace soliton::one_row
