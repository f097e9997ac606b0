// The producer of the kernels for several rows: this CTA's page stream, across phases, layers and steps.
#pragma once

#include "rows/expert_producer.cuh"
#include "rows/groups.cuh"
#include "rows/weight_slot.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class Producer : public ExpertProducer<kPlan> {
  using Base = ExpertProducer<kPlan>;
  using Base::context_;

 public:
  using Base::Base;

  SOLITON_DEVICE bool begin_step() {
    if (this->stopped() || context_.step >= context_.params.num_steps) return false;
    context_.begin_phase();
    context_.end_phase();  // the tokens' embedding
    return true;
  }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  SOLITON_DEVICE void matrix(const MatrixInstance& at, const MatrixInstance& next) {
    context_.begin_phase();
    this->begin_pages();
    if constexpr (kPlan.warpgroups) {
      if (expert_axis<kPlan>(at.phase) == ExpertAxis::kNone) {
        stream_groups(at);
      } else {
        stream_experts_of_groups(at);
      }
    } else {
      if constexpr (kMixes<kPlan>) {
        if (this->stream_experts(at)) return context_.end_phase();
      }
      this->stream(slots(at), at.phase.window, [&] { return known_slots(next); });
    }
    this->end_pages();
    context_.end_phase();
  }

  template <int kPhase>
  SOLITON_DEVICE void attend(int layer) {
    context_.begin_phase();
    // Pairs with the input loader's arrival.
    if (layer == 0 && !this->wait_step_read()) return;
    constexpr KvShape kKv = kPlan.card_kv();
    constexpr int kSlots = kKv.slots_per_half();
    constexpr int kSlotTiles = kKv.slot_tokens() / kTailTokens;
    constexpr int kPageTiles = kSlots * kSlotTiles;
    constexpr int kWindow = kPlan.window_of(kPlan.phases[kPhase]);
    const int end = context_.end_item();
    const Variant<kPlan> variant(layer);
    SOLITON_NO_UNROLL
    for (int i = context_.first_item(); i < end; ++i) {
      TreeItem item = context_.item(i);
      context_.limit_to_seen(item, i, variant);
      // Of the last page what is there: tiles of tokens, of keys and of values; or all of it.
      int tiles = ceil_divide(cached_tokens(item, context_.step), kTailTokens);
      if constexpr (kPlan.streams_new_tokens()) tiles = round_up(tiles, kPageTiles);
      SOLITON_NO_UNROLL
      for (int page = 0; tiles > 0; ++page, tiles -= kPageTiles) {
        const int physical =
            physical_page<kPlan>(context_.params, context_.params.tree.pages, item.first_page + page, layer);
        const char* keys =
            reinterpret_cast<const char*>(kv_page<kPlan>(context_.params, physical, layer, item.kv_head));
        for (int slot = 0; slot < 2 * kSlots; ++slot) {  // all keys, then all values
          const int left = tiles - slot % kSlots * kSlotTiles;
          const int there = left < 0 ? 0 : left < kSlotTiles ? left : kSlotTiles;
          if (!this->push(keys + slot * kSlotTiles * kKv.tile_bytes(), there * kKv.tile_bytes(), kWindow))
            return;
        }
      }
      if constexpr (kPlan.streams_new_tokens()) {
        if (!push_new_tokens<kPhase>(item)) return;
      }
    }
    // Attention takes longer than the ring takes to fill: the weights behind it come when what everybody waits for has.
    if (!attending_ && !wait_attending()) return;
    attending_ = false;
    context_.end_phase();
  }
  SOLITON_DEVICE void norm_heads(int /*layer*/) { context_.end_phase(); }
  SOLITON_DEVICE void norm_block(const MatrixInstance& /*at*/) { context_.end_phase(); }
  SOLITON_DEVICE void choose(const MatrixInstance& /*at*/) { context_.end_phase(); }
  SOLITON_DEVICE void group(const MatrixInstance& /*at*/) { context_.end_phase(); }
  SOLITON_DEVICE void ungroup(const MatrixInstance& /*at*/) { context_.end_phase(); }

 private:
  /// Of an item the pages of the step's own tokens, once these are there; false once the launch has stopped.
  template <int kPhase>
  SOLITON_DEVICE bool push_new_tokens(const TreeItem& item) {
    constexpr QkvLayout kLayout = kQkv<kPlan>;
    constexpr int kHalfBytes = kPlan.card_kv().half_bytes();
    constexpr int kWindow = kPlan.window_of(kPlan.phases[kPhase]);
    const NewTokens pages = ItemParts<kPlan>(item, context_.step).new_pages;
    if (pages.count == 0) return true;
    if (!attending_) {
      if (!wait_attending()) return false;
      fence_async_global();
      attending_ = true;
    }
    const char* vector = context_.template workspace<char>(kPlan.vector(kPlan.phases[kPhase].reads).offset) +
                         kLayout.keys_offset(item.kv_head);
    SOLITON_NO_UNROLL
    for (int page = pages.first; page < pages.first + pages.count; ++page) {
      const char* keys = vector + page * kHalfBytes;
      if (!this->push(keys, kHalfBytes, kWindow)) return false;
      if (!this->push(keys + kLayout.tail_bytes(), kHalfBytes, kWindow)) return false;
    }
    return true;
  }

  SOLITON_DEVICE SlotCursor<kPlan> slots(const MatrixInstance& at) const {
    return {layer_weights<kPlan>(context_.params, at.phase, at.layer), at.phase.format.type, at.phase.padded,
            context_.tiles(at.phase)};
  }
  /// Slots of experts are others, and while these are not known they can't be looked at.
  SOLITON_DEVICE SlotCursor<kPlan> known_slots(const MatrixInstance& next) const {
    if (expert_axis<kPlan>(next.phase) != ExpertAxis::kNone) return {};
    return slots(next);
  }

  /// Where warpgroups multiply: of a few tiles at a time one chunk of columns after the other, of which every group of
  /// tiles fills a slot. Each warpgroup has as many slots of a chunk: the last may be empty. One lane has to do this
  /// faster than memory is: loops of their own, and a short way for slots that are full.
  SOLITON_DEVICE void stream_groups(const MatrixInstance& at) {
    const MatrixPhase& phase = at.phase;
    const TileBlock block = context_.block(phase);
    const auto bytes_of = [&](int columns) { return known_weight_bytes<kPlan>(phase.format.type, columns); };
    const int64_t tile_bytes = bytes_of(phase.padded);
    const int64_t stride = block.tiles.stride / kPlan.num_cards * tile_bytes;
    const char* tiles = layer_weights<kPlan>(context_.params, phase, at.layer) +
                        block.tiles.first / kPlan.num_cards * tile_bytes;
    with_format<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
      if constexpr (kFormat.type == WeightType::kBf16) {
        stream_pieces(phase, block, tiles + bytes_of(block.first_column), stride);
      } else {
        stream_joint_slots<kFormat>(phase, block, tiles, stride);
      }
    });
  }
  /// Of bf16.
  SOLITON_DEVICE void stream_pieces(const MatrixPhase& phase, const TileBlock& block, const char* tiles,
                                    int64_t stride) {
    constexpr int kBytes = kShape<kPlan>.slot_columns({}) / kColumnBlock * WeightFormat{}.block_bytes();
    SOLITON_NO_UNROLL
    for (int count = block.tiles.count; count > 0; count -= kTilesAtOnce<kPlan>) {
      SOLITON_NO_UNROLL
      for (int i = 0; i < block.num_chunks; ++i) {
        if (this->stopped()) return;
        this->hold_page();
        const char* group = tiles + block.chunk(i) * kBytes;
        const int end =
            -round_up(count < kTilesAtOnce<kPlan> ? count : kTilesAtOnce<kPlan>, kWarpgroups * kGroupTiles);
        SOLITON_NO_UNROLL
        for (int tile = 0; tile > end; tile -= kGroupTiles) {
          this->add_page(phase.window, nothing, [&] { fill(group, stride, count + tile, kBytes); });
          group += kGroupTiles * stride;
        }
      }
      tiles += kTilesAtOnce<kPlan> * stride;
    }
  }
  /// Of experts: of each piece one chunk of columns after the other.
  SOLITON_DEVICE void stream_experts_of_groups(const MatrixInstance& at) {
    if constexpr (kGroups<kPlan>) {
      const MatrixPhase& phase = at.phase;
      const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
      const bool gates = experts.axis == ExpertAxis::kRows;
      if (gates && !this->wait_experts(at.layer)) return;
      const char* matrix = layer_weights<kPlan>(context_.params, phase, at.layer);
      const int64_t stride = experts.stored_tile_bytes;
      if constexpr (kGroupedRows<kPlan>.integers.has_scales()) {
        stream_integers_of_groups(phase, experts, matrix);
        if (!gates) this->release_experts();
        return;
      }
      const int all = known_weight_bytes<kPlan>(phase.format.type, columns_of_groups<kPlan>(experts));
      const int piece = known_weight_bytes<kPlan>(phase.format.type, group_slot_columns(phase.format.type));
      SOLITON_NO_UNROLL
      for (GroupPieces<kPlan> pieces(context_, experts); !pieces.at_end(); pieces.next()) {
        const auto taken = *pieces;
        const char* group = matrix + taken.group.expert * experts.expert_bytes + taken.first_tile * stride;
        SOLITON_NO_UNROLL
        for (int left = all; left > 0; left -= piece, group += piece) {
          const int bytes = left < piece ? left : piece;
          if (this->stopped()) return;
          SOLITON_NO_UNROLL
          for (int tile = 0; tile < kWarpgroups * kGroupTiles; tile += kGroupTiles)
            this->add_page(phase.window, nothing,
                           [&] { fill(group + tile * stride, stride, taken.tiles - tile, bytes); });
        }
      }
      if (!gates) this->release_experts();
    }
  }
  /// The same of integers. Of gate and up pages are as of other matrices; down has of each expert the words of all columns, and
  /// behind them the scales.
  SOLITON_DEVICE void stream_integers_of_groups(const MatrixPhase& phase, const ExpertPhase& experts,
                                                const char* matrix) {
    constexpr WeightFormat kFormat = kPlan.model.integers;
    using Slot = WeightSlot<kPlan, kFormat>;
    const bool gates = experts.axis == ExpertAxis::kRows;
    const int columns = columns_of_groups<kPlan>(experts);
    SOLITON_NO_UNROLL
    for (GroupPieces<kPlan> pieces(context_, experts); !pieces.at_end(); pieces.next()) {
      const auto taken = *pieces;
      const char* tiles = matrix + taken.group.expert * experts.expert_bytes +
                          int64_t{taken.first_tile} * experts.stored_tile_bytes;
      SOLITON_NO_UNROLL
      for (int column = 0; column < columns; column += Slot::kColumns) {
        if (this->stopped()) return;
        SlotPieces own = {kFormat.value_bytes(column),
                          kFormat.value_bytes(columns) + kFormat.scale_bytes(column)};
        if (gates) own = slot_pieces<kFormat>(phase, column);
        SOLITON_NO_UNROLL
        for (int tile = 0; tile < kWarpgroups * kGroupTiles; tile += kGroupTiles) {
          this->add_page(phase.window, nothing,
                         [&] { fill_slot<Slot>(tiles, own, experts.stored_tile_bytes, tile, taken.tiles); });
        }
      }
    }
  }
  /// `bytes`: of a tile.
  SOLITON_DEVICE void fill(const char* group, int64_t stride, int tiles, int bytes) const {
    if (tiles >= kGroupTiles) {
      this->expect(kGroupTiles * bytes);
      SOLITON_UNROLL
      for (int i = 0; i < kGroupTiles; ++i) this->copy(i * kPieceBytes, group + i * stride, bytes);
      return;
    }
    this->expect((tiles < 0 ? 0 : tiles) * bytes);
    SOLITON_NO_UNROLL
    for (int i = 0; i < tiles; ++i) this->copy(i * kPieceBytes, group + i * stride, bytes);
  }

  /// The same of other formats: a slot holds the tiles of all groups of a warpgroup, words and then scales. Warpgroups that share
  /// a group have a slot of it in turn, and as many of them.
  template <WeightFormat kFormat>
  SOLITON_DEVICE void stream_joint_slots(const MatrixPhase& phase, const TileBlock& block, const char* tiles,
                                         int64_t stride) {
    using Slot = WeightSlot<kPlan, kFormat>;
    SOLITON_NO_UNROLL
    for (int count = block.tiles.count; count > 0; count -= kTilesAtOnce<kPlan>) {
      const bool shares = shares_group<kPlan, kFormat>(count);
      SOLITON_NO_UNROLL
      for (int i = 0; i < block.num_chunks; ++i) {
        if (this->stopped()) return;
        this->hold_page();
        const SlotPieces pieces =
            slot_pieces<kFormat>(phase, block.first_column + block.chunk(i) * Slot::kColumns);
        SOLITON_NO_UNROLL
        for (int tile = 0; tile < (shares ? 1 : kWarpgroups) * kGroupTiles; tile += kGroupTiles) {
          this->add_page(phase.window, nothing, [&] { fill_slot<Slot>(tiles, pieces, stride, tile, count); });
        }
      }
      if (shares && block.num_chunks % kWarpgroups != 0)
        this->add_page(phase.window, nothing, [&] { this->expect(0); });
      tiles += kTilesAtOnce<kPlan> * stride;
    }
  }
  /// Offsets in a tile.
  struct SlotPieces {
    int words;
    int scales;
  };
  /// Of a slot that begins with a column.
  template <WeightFormat kFormat>
  SOLITON_DEVICE SlotPieces slot_pieces(const MatrixPhase& phase, int column) const {
    using Slot = WeightSlot<kPlan, kFormat>;
    if constexpr (!kFormat.has_scales()) return {weight_bytes(kFormat, column), 0};
    constexpr int kColumnBytes = kFormat.value_bytes(1);
    constexpr int kFull = kFormat.page_columns();
    const PageSpan page = kPlan.has_full_pages() ? PageSpan{column / kFull * kFull, kFull}
                                                 : page_of(kFormat, phase.padded, column);
    const int within = column - page.first_column;
    const int begin = weight_bytes(kFormat, page.first_column);
    return {begin + within * kColumnBytes,
            begin + kFormat.value_bytes(page.columns) + within / Slot::kColumns * Slot::kScaleBytes};
  }
  /// Of tiles `first` to `first` + 3, and of a second group, if there is one, the same further on, what is there of `count`.
  template <class Slot>
  SOLITON_DEVICE void fill_slot(const char* tiles, SlotPieces pieces, int64_t stride, int first,
                                int count) const {
    constexpr int kNext = kWarpgroups * kGroupTiles;  // from one group of a warpgroup to the next
    const auto tiles_from = [&](int tile) {
      const int left = count - tile;
      return left < 0 ? 0 : left < kGroupTiles ? left : kGroupTiles;
    };
    const int second = Slot::kGroups > 1 ? tiles_from(first + kNext) : 0;
    this->expect((tiles_from(first) + second) * (Slot::kWordBytes + Slot::kScaleBytes));
    tiles += first * stride;
    fill_group<Slot>(0, tiles, pieces, stride, count - first);
    if (second > 0)
      fill_group<Slot>(kGroupTiles, tiles + kNext * stride, pieces, stride, count - first - kNext);
  }
  /// A group of the slot's tiles, from `place` on, of which `count` or all are there.
  template <class Slot>
  SOLITON_DEVICE void fill_group(int place, const char* tile, SlotPieces pieces, int64_t stride,
                                 int count) const {
    const auto fill_tile = [&](int i) {
      this->copy((place + i) * Slot::kWordBytes, tile + pieces.words, Slot::kWordBytes);
      if constexpr (Slot::kScaleBytes > 0)
        this->copy(Slot::scales_of(place + i), tile + pieces.scales, Slot::kScaleBytes);
      tile += stride;
    };
    if constexpr (kShape<kPlan>.digits > 0) {  // few rows leave little time, and registers for it
      if (count >= kGroupTiles) {
        SOLITON_UNROLL
        for (int i = 0; i < kGroupTiles; ++i) fill_tile(i);
        return;
      }
    }
    int i = 0;
    SOLITON_NO_UNROLL
    for (; i + 1 < count && i < kGroupTiles; i += 2) {  // what more registers would be for
      fill_tile(i);
      fill_tile(i + 1);
    }
    if (i < count && i < kGroupTiles) fill_tile(i);
  }
  static constexpr int kPieceBytes = kPageBytes / kGroupTiles;  // room for a tile, which bf16 fills
  static constexpr int kChunk = kShape<kPlan>.chunk_columns();

  /// Pairs with the input loader's arrival at the same phase of attention; false once the launch has stopped.
  SOLITON_DEVICE bool wait_attending() {
    this->wait_unless_stopped(context_.barrier(BarrierId::kAttending), attended_ & 1, WaitKind::kAttending,
                              attended_, nothing);
    ++attended_;
    return !this->stopped();
  }

  uint32_t attended_ = 0;   // phases of attention
  bool attending_ = false;  // has this one begun?
};

}  // namespace soliton::rows
