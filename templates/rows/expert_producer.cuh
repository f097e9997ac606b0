// What the producer of the kernels for several rows has of experts: their pages, in the order in which workers want them. Slots
// hold one tile each. One lane has to do this faster than memory is: what can be is found before the loops over pages.
#pragma once

#include "machine/ring_producer.cuh"
#include "rows/expert_slot.cuh"
#include "rows/slot_cursor.cuh"

namespace soliton::rows {

/// What the machine knows of these kernels.
template <const KernelPlan& kPlan>
struct Kernel {
  using Context = rows::Context<kPlan>;
  using BarrierId = rows::BarrierId;
  using RegionId = rows::RegionId;
};

template <const KernelPlan& kPlan>
class ExpertProducer : public RingProducer<kPlan, Kernel<kPlan>, SlotCursor<kPlan>> {
  using Base = RingProducer<kPlan, Kernel<kPlan>, SlotCursor<kPlan>>;

 public:
  using Base::Base;

 protected:
  using Base::context_;

  /// Pages of experts; false if the phase has none.
  SOLITON_DEVICE bool stream_experts(const MatrixInstance& at) {
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[at.phase.number];
    if (experts.axis == ExpertAxis::kNone) return false;
    if constexpr (kPairs<kPlan>) {
      if (experts.axis == ExpertAxis::kColumns || wait_experts(at.layer)) stream_whole_slots(at, experts);
      if (experts.axis == ExpertAxis::kColumns) release_experts();
      return true;
    }
    if (experts.axis == ExpertAxis::kRows) {
      if (wait_experts(at.layer)) stream_rows(at, experts);
    } else {
      stream_columns(at, experts);
      release_experts();
    }
    return true;
  }

  /// Waits until the layer's experts are known; false once the launch has stopped. Pairs with the first worker's arrival in
  /// choose().
  SOLITON_DEVICE bool wait_experts(int layer) {
    if (this->stopped()) return false;
    const uint32_t before = context_.choices(layer);
    this->wait_unless_stopped(context_.barrier(BarrierId::kExpertsChosen), before & 1,
                              WaitKind::kExpertsChosen, before, nothing);
    return !this->stopped();
  }
  /// Says that this producer needs them no more. Pairs with the first worker's wait in choose().
  SOLITON_DEVICE void release_experts() {
    Barrier* taken = &context_.barrier(BarrierId::kExpertsTaken);
    if constexpr (kPlan.copies == CopyKind::kBulk) {
      barrier_arrive(taken);
    } else {
      warp_arrive(taken);
    }
  }

 private:
  /// Gate and up: a few tiles of an expert after the other.
  SOLITON_DEVICE void stream_rows(const MatrixInstance& at, const ExpertPhase& experts) {
    const MatrixPhase& phase = at.phase;
    const TileRun run = context_.tiles(phase);
    const int tile_bytes = known_weight_bytes<kPlan>(phase.format.type, phase.padded);
    const char* matrix = layer_weights<kPlan>(context_.params, phase, at.layer);
    int slot = run.first / experts.tiles;
    int within = run.first - slot * experts.tiles;
    SOLITON_NO_UNROLL
    for (int left = run.count; left > 0; ++slot, within = 0) {
      const int rest = experts.tiles - within;
      const int count = left < rest ? left : rest;
      const ExpertSlot<kPlan> expert(context_, slot);
      const char* tile = matrix + expert.number() * experts.expert_bytes + int64_t{within} * tile_bytes;
      const int columns = expert_slot_columns<kPlan>(phase.format.type, expert.pairs());
      SOLITON_NO_UNROLL
      for (int done = 0; done < count; done += kTilesAtOnce<kPlan>) {
        const int tiles = count - done < kTilesAtOnce<kPlan> ? count - done : kTilesAtOnce<kPlan>;
        if (this->stopped()) return;
        if (has_scales<kPlan>(phase.format.type)) {
          stream_pages(phase, tile, tile_bytes, tiles);
        } else {
          stream_slots(phase, tile, phase.padded, tile_bytes, tiles, columns);
        }
        tile += tiles * tile_bytes;
      }
      left -= count;
    }
  }
  /// Where pairs are multiplied: tiles of all columns, one or a few in a slot.
  SOLITON_DEVICE void stream_whole_slots(const MatrixInstance& at, const ExpertPhase& experts) {
    const char* matrix = layer_weights<kPlan>(context_.params, at.phase, at.layer);
    const int slot_bytes = experts.slot_tiles * experts.stored_tile_bytes;
    SOLITON_NO_UNROLL
    for (int half = 0; half < Context<kPlan>::kExpertHalves; ++half) {
      const bool gates = experts.axis == ExpertAxis::kRows;
      const int first = context_.run(gates, half, ExpertsLayout::kTile);
      int slot = context_.run(gates, half, ExpertsLayout::kSlot);
      int within = first - slot * experts.tiles;
      SOLITON_NO_UNROLL
      for (int left = context_.run(gates, half, ExpertsLayout::kEndTile) - first; left > 0;
           ++slot, within = 0) {
        const int rest = experts.tiles - within;
        const int count = left < rest ? left : rest;
        const int expert = ExpertSlot<kPlan>(context_, slot).number();
        const char* tile =
            matrix + expert * experts.expert_bytes + int64_t{within} * experts.stored_tile_bytes;
        SOLITON_NO_UNROLL
        for (int done = 0; done < count; done += experts.slot_tiles, tile += slot_bytes) {
          if (!this->push(tile, slot_bytes, at.phase.window)) return;
        }
        left -= count;
      }
    }
  }
  /// Down: of a few tiles one expert after the other.
  SOLITON_DEVICE void stream_columns(const MatrixInstance& at, const ExpertPhase& experts) {
    constexpr int kFfn = kPlan.model.mixture.ffn;
    const MatrixPhase& phase = at.phase;
    const TileRun run = context_.tiles(phase);
    const int tile_bytes = known_weight_bytes<kPlan>(phase.format.type, kFfn);
    const int stride = run.stride * tile_bytes;
    const char* tile = layer_weights<kPlan>(context_.params, phase, at.layer) + run.first * tile_bytes;
    const int slots = context_.expert_slots();
    SOLITON_NO_UNROLL
    for (int left = run.count; left > 0; left -= kTilesAtOnce<kPlan>) {
      const int tiles = left < kTilesAtOnce<kPlan> ? left : kTilesAtOnce<kPlan>;
      SOLITON_NO_UNROLL
      for (int slot = 0; slot < slots; ++slot) {
        if (this->stopped()) return;
        const ExpertSlot<kPlan> expert(context_, slot);
        const char* own = tile + expert.number() * experts.expert_bytes;
        if (has_scales<kPlan>(phase.format.type)) {
          with_integers<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
            stream_parts<kFormat>(phase, own, stride, tiles);
          });
        } else {
          stream_slots(phase, own, kFfn, stride, tiles,
                       expert_slot_columns<kPlan>(phase.format.type, expert.pairs()));
        }
      }
      tile += kTilesAtOnce<kPlan> * stride;
    }
  }
  /// Of some tiles that are no integers `columns` columns after the others.
  SOLITON_DEVICE void stream_slots(const MatrixPhase& phase, const char* tile, int all_columns, int stride,
                                   int tiles, int columns) {
    SOLITON_NO_UNROLL
    for (int column = 0; column < all_columns; column += columns) {
      const int rest = all_columns - column;
      const int bytes = known_weight_bytes<kPlan>(phase.format.type, rest < columns ? rest : columns);
      const char* piece = tile + known_weight_bytes<kPlan>(phase.format.type, column);
      SOLITON_NO_UNROLL
      for (int i = 0; i < tiles; ++i, piece += stride) this->push(piece, bytes, phase.window);
    }
  }
  /// The same of integers: page after page,
  SOLITON_DEVICE void stream_pages(const MatrixPhase& phase, const char* tile, int stride, int tiles) {
    SOLITON_NO_UNROLL
    for (int column = 0; column < phase.padded;) {
      const int columns = known_page_columns<kPlan>(phase.format.type, phase.padded - column);
      const int bytes = known_weight_bytes<kPlan>(phase.format.type, columns);
      const char* page = tile + known_weight_bytes<kPlan>(phase.format.type, column);
      SOLITON_NO_UNROLL
      for (int i = 0; i < tiles; ++i, page += stride) this->push(page, bytes, phase.window);
      column += columns;
    }
  }
  /// or of an expert whose columns stand beside those of others, and its scales behind all of them.
  template <WeightFormat kFormat>
  SOLITON_DEVICE void stream_parts(const MatrixPhase& phase, const char* tile, int stride, int tiles) {
    constexpr int kFfn = kPlan.model.mixture.ffn;
    constexpr int kMost = kFormat.page_columns();
    SOLITON_NO_UNROLL
    for (int column = 0; column < kFfn; column += kMost) {
      const int columns = kFfn - column < kMost ? kFfn - column : kMost;
      const int words = kFormat.value_bytes(columns);
      const int scales = kFormat.scale_bytes(columns);
      const char* page = tile + kFormat.value_bytes(column);
      const char* page_scales = tile + kFormat.value_bytes(kFfn) + kFormat.scale_bytes(column);
      SOLITON_NO_UNROLL
      for (int i = 0; i < tiles; ++i) {
        this->add_page(phase.window, nothing, [&] {
          this->expect(words + scales);
          this->copy(0, page, words);
          this->copy(words, page_scales, scales);
        });
        page += stride;
        page_scales += stride;
      }
    }
  }
};

}  // namespace soliton::rows
