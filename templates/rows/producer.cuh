// The producer of the kernels for several rows: this CTA's page stream, across phases, layers and steps.
#pragma once

#include "formats/formats.cuh"
#include "machine/ring_producer.cuh"
#include "rows/context.cuh"
#include "rows/integer_slot.cuh"

namespace soliton::rows {

/// Walks the slots of a run of tiles, in the order in which the workers want them: a few tiles at a time;
/// of all of these one chunk of columns after the other; tiles_per_slot tiles side by side. Of integers a slot
/// holds a page of one tile.
template <const KernelPlan& kPlan>
class SlotCursor {
 public:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;

  SlotCursor() = default;
  /// `matrix`: where tile 0 begins; `run`: of all cards' tiles, of which this card has one in num_cards.
  SOLITON_DEVICE SlotCursor(const char* matrix, WeightType type, int padded, const TileRun& run)
      : type_(type),
        first_tile_(matrix + static_cast<int64_t>(run.first / kPlan.num_cards) * weight_bytes(padded)),
        stride_(static_cast<int64_t>(run.stride / kPlan.num_cards) * weight_bytes(padded)),
        end_column_(padded),
        tiles_left_(run.count) {}

  SOLITON_DEVICE bool at_end() const { return tiles_left_ <= 0; }
  /// Copies the tiles' columns into the slot.
  template <class Producer>
  SOLITON_DEVICE void push(const Producer& producer) const {
    const int bytes = tile_piece_bytes();
    const int tiles = num_tiles();
    producer.expect(tiles * bytes);
    const char* piece = address(0);
    SOLITON_UNROLL
    for (int i = 0; i < kRowsShape.tiles_per_slot; ++i) {
      if (i < tiles) producer.copy(i * (kPageBytes / kRowsShape.tiles_per_slot), piece, bytes);
      piece += stride_;
    }
  }
  template <class Copies>
  SOLITON_DEVICE void prefetch(const Copies& copies) const {
    for (int i = 0; i < num_tiles(); ++i) copies.prefetch_page(address(i), tile_piece_bytes());
  }
  SOLITON_DEVICE void advance() {
    tile_ += tiles_per_slot();
    if (tile_ < at_once()) return;
    tile_ = 0;
    column_ += columns();
    if (column_ < end_column_) return;
    column_ = 0;
    first_tile_ += kTilesAtOnce<kPlan> * stride_;
    tiles_left_ -= kTilesAtOnce<kPlan>;
  }

 private:
  SOLITON_DEVICE int num_tiles() const {
    const int rest = at_once() - tile_;
    return rest < tiles_per_slot() ? rest : tiles_per_slot();
  }
  SOLITON_DEVICE const char* address(int tile) const {
    return first_tile_ + (tile_ + tile) * stride_ + weight_bytes(column_);
  }
  SOLITON_DEVICE int tile_piece_bytes() const { return weight_bytes(columns()); }
  SOLITON_DEVICE int at_once() const {
    return tiles_left_ < kTilesAtOnce<kPlan> ? tiles_left_ : kTilesAtOnce<kPlan>;
  }

  SOLITON_DEVICE int weight_bytes(int columns) const { return known_weight_bytes<kPlan>(type_, columns); }
  SOLITON_DEVICE int tiles_per_slot() const {
    return has_scales<kPlan>(type_) ? 1 : kRowsShape.tiles_per_slot;
  }
  SOLITON_DEVICE int columns() const {
    const int rest = end_column_ - column_;
    if (has_scales<kPlan>(type_)) return page_columns(kPlan.model.integers, rest);
    return rest < kRowsShape.chunk_columns() ? rest : kRowsShape.chunk_columns();
  }

  WeightType type_ = WeightType::kBf16;
  const char* first_tile_ = nullptr;  // of those at a time
  int64_t stride_ = 0;
  int end_column_ = 0;
  int tiles_left_ = 0;
  int tile_ = 0;
  int column_ = 0;
};

/// What the machine knows of these kernels.
template <const KernelPlan& kPlan>
struct Kernel {
  using Context = rows::Context<kPlan>;
  using BarrierId = rows::BarrierId;
  using RegionId = rows::RegionId;
};

template <const KernelPlan& kPlan>
class Producer : public RingProducer<kPlan, Kernel<kPlan>, SlotCursor<kPlan>> {
  using Base = RingProducer<kPlan, Kernel<kPlan>, SlotCursor<kPlan>>;
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
    if constexpr (kPlan.warpgroups) {
      stream_groups(at);
    } else {
      if constexpr (kMixes<kPlan>) {
        if (stream_experts(at)) return context_.end_phase();
      }
      this->stream(slots(at), at.phase.window, [&] { return known_slots(next); });
    }
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
      context_.limit_to_window(item, i, variant);
      // Of the last page what is there: tiles of tokens, of keys and of values.
      int tiles = ceil_divide(cached_tokens(item, context_.step), kTailTokens);
      SOLITON_NO_UNROLL
      for (int page = 0; tiles > 0; ++page, tiles -= kPageTiles) {
        const int physical = load_constant(context_.params.tree.pages + item.first_page + page);
        const char* keys = static_cast<const char*>(context_.params.kv_pool) +
                           kKv.page_offset(physical, layer, item.kv_head);
        for (int slot = 0; slot < 2 * kSlots; ++slot) {  // all keys, then all values
          const int left = tiles - slot % kSlots * kSlotTiles;
          const int there = left < 0 ? 0 : left < kSlotTiles ? left : kSlotTiles;
          if (!this->push(keys + slot * kSlotTiles * kKv.tile_bytes(), there * kKv.tile_bytes(), kWindow))
            return;
        }
      }
    }
    // Attention takes longer than the ring takes to fill: the weights behind it come when what everybody waits for has.
    if (!wait_attending()) return;
    context_.end_phase();
  }
  SOLITON_DEVICE void norm_heads(int /*layer*/) { context_.end_phase(); }

 private:
  SOLITON_DEVICE SlotCursor<kPlan> slots(const MatrixInstance& at) const {
    return {layer_weights<kPlan>(context_.params, at.phase, at.layer), at.phase.format.type, at.phase.padded,
            context_.tiles(at.phase)};
  }
  /// Slots of experts are others, and while these are not known they can't be looked at.
  SOLITON_DEVICE SlotCursor<kPlan> known_slots(const MatrixInstance& next) const {
    if (expert_axis<kPlan>(next.phase) != ExpertAxis::kNone) return {};
    return slots(next);
  }

  /// Pages of experts; false if the phase has none. Slots hold one tile each. One lane has to do this faster than memory is:
  /// what can be is found before the loops over pages.
  SOLITON_DEVICE bool stream_experts(const MatrixInstance& at) {
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[at.phase.number];
    if (experts.axis == ExpertAxis::kNone) return false;
    if (experts.axis == ExpertAxis::kRows) {
      if (wait_experts(at.layer)) stream_rows(at, experts);
    } else {
      stream_columns(at, experts);
      release_experts();
    }
    return true;
  }
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
      const int columns = expert_slot_columns<kPlan>(expert.pairs());
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
          stream_parts(phase, own, stride, tiles);
        } else {
          stream_slots(phase, own, kFfn, stride, tiles, expert_slot_columns<kPlan>(expert.pairs()));
        }
      }
      tile += kTilesAtOnce<kPlan> * stride;
    }
  }
  /// Of some tiles of bf16 `columns` columns after the others.
  SOLITON_DEVICE void stream_slots(const MatrixPhase& phase, const char* tile, int all_columns, int stride,
                                   int tiles, int columns) {
    constexpr int kColumnBytes = kTileRows * 2;
    SOLITON_NO_UNROLL
    for (int column = 0; column < all_columns; column += columns) {
      const int rest = all_columns - column;
      const int bytes = (rest < columns ? rest : columns) * kColumnBytes;
      const char* piece = tile + column * kColumnBytes;
      SOLITON_NO_UNROLL
      for (int i = 0; i < tiles; ++i, piece += stride) this->push(piece, bytes, phase.window);
    }
  }
  /// The same of integers: page after page,
  SOLITON_DEVICE void stream_pages(const MatrixPhase& phase, const char* tile, int stride, int tiles) {
    SOLITON_NO_UNROLL
    for (int column = 0; column < phase.padded;) {
      const int columns = page_columns(kPlan.model.integers, phase.padded - column);
      const int bytes = known_weight_bytes<kPlan>(phase.format.type, columns);
      const char* page = tile + known_weight_bytes<kPlan>(phase.format.type, column);
      SOLITON_NO_UNROLL
      for (int i = 0; i < tiles; ++i, page += stride) this->push(page, bytes, phase.window);
      column += columns;
    }
  }
  /// or of an expert whose columns stand beside those of others, and its scales behind all of them.
  SOLITON_DEVICE void stream_parts(const MatrixPhase& phase, const char* tile, int stride, int tiles) {
    constexpr WeightFormat kFormat = kPlan.model.integers;
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
    if constexpr (kPlan.model.integers.has_scales()) {
      if (has_scales<kPlan>(phase.format.type)) return stream_integers(phase, block, tiles, stride);
    }
    tiles += bytes_of(block.first_column);
    SOLITON_NO_UNROLL
    for (int count = block.tiles.count; count > 0; count -= kTilesAtOnce<kPlan>) {
      SOLITON_NO_UNROLL
      for (int i = 0; i < block.num_chunks; ++i) {
        if (this->stopped()) return;
        const char* group = tiles + block.chunk(i) * kPieceBytes;
        const int end =
            -round_up(count < kTilesAtOnce<kPlan> ? count : kTilesAtOnce<kPlan>, kWarpgroups * kGroupTiles);
        SOLITON_NO_UNROLL
        for (int tile = 0; tile > end; tile -= kGroupTiles) {
          this->add_page(phase.window, nothing, [&] { fill(group, stride, count + tile); });
          group += kGroupTiles * stride;
        }
      }
      tiles += kTilesAtOnce<kPlan> * stride;
    }
  }
  SOLITON_DEVICE void fill(const char* group, int64_t stride, int tiles) const {
    if (tiles >= kGroupTiles) {
      this->expect(kGroupTiles * kPieceBytes);
      SOLITON_UNROLL
      for (int i = 0; i < kGroupTiles; ++i) this->copy(i * kPieceBytes, group + i * stride, kPieceBytes);
      return;
    }
    this->expect((tiles < 0 ? 0 : tiles) * kPieceBytes);
    SOLITON_NO_UNROLL
    for (int i = 0; i < tiles; ++i) this->copy(i * kPieceBytes, group + i * stride, kPieceBytes);
  }

  /// The same of integers: a slot holds the tiles of all groups of a warpgroup, words and then scales. Warpgroups that share
  /// a group have a slot of it in turn, and as many of them.
  SOLITON_DEVICE void stream_integers(const MatrixPhase& phase, const TileBlock& block, const char* tiles,
                                      int64_t stride) {
    constexpr int kColumns = kShape<kPlan>.slot_columns(kPlan.model.integers);
    SOLITON_NO_UNROLL
    for (int count = block.tiles.count; count > 0; count -= kTilesAtOnce<kPlan>) {
      const bool shares = shares_group<kPlan>(count);
      SOLITON_NO_UNROLL
      for (int i = 0; i < block.num_chunks; ++i) {
        if (this->stopped()) return;
        const int column = block.first_column + block.chunk(i) * kColumns;
        const PageSpan page = page_of(kPlan.model.integers, phase.padded, column);
        const int within = column - page.first_column;
        const int begin = known_weight_bytes<kPlan>(phase.format.type, page.first_column);
        const int words = begin + within * (kTileRows / 2);
        const int scales = begin + scale_offset(kPlan.model.integers, page.columns, 0, 0) +
                           within / kColumns * Integers::kScaleBytes;
        SOLITON_NO_UNROLL
        for (int tile = 0; tile < (shares ? 1 : kWarpgroups) * kGroupTiles; tile += kGroupTiles) {
          this->add_page(phase.window, nothing, [&] {
            fill_integers(tiles, {words, scales}, stride, tile, count);
          });
        }
      }
      if (shares && block.num_chunks % kWarpgroups != 0)
        this->add_page(phase.window, nothing, [&] { this->expect(0); });
      tiles += kTilesAtOnce<kPlan> * stride;
    }
  }
  /// Offsets in a tile.
  struct IntegerPieces {
    int words;
    int scales;
  };
  /// Of tiles `first` to `first` + 3, and of a second group, if there is one, the same further on, what is there of `count`.
  SOLITON_DEVICE void fill_integers(const char* tiles, IntegerPieces pieces, int64_t stride, int first,
                                    int count) const {
    constexpr int kNext = kWarpgroups * kGroupTiles;  // from one group of a warpgroup to the next
    const auto tiles_from = [&](int tile) {
      const int left = count - tile;
      return left < 0 ? 0 : left < kGroupTiles ? left : kGroupTiles;
    };
    const int second = Integers::kGroups > 1 ? tiles_from(first + kNext) : 0;
    this->expect((tiles_from(first) + second) * (Integers::kWordBytes + Integers::kScaleBytes));
    tiles += first * stride;
    fill_group(0, tiles, pieces, stride, count - first);
    if (second > 0) fill_group(kGroupTiles, tiles + kNext * stride, pieces, stride, count - first - kNext);
  }
  /// A group of the slot's tiles, from `place` on, of which `count` or all are there.
  SOLITON_DEVICE void fill_group(int place, const char* tile, IntegerPieces pieces, int64_t stride,
                                 int count) const {
    const auto fill_tile = [&](int i) {
      this->copy((place + i) * Integers::kWordBytes, tile + pieces.words, Integers::kWordBytes);
      this->copy(Integers::scales_of(place + i), tile + pieces.scales, Integers::kScaleBytes);
      tile += stride;
    };
    int i = 0;
    SOLITON_NO_UNROLL
    for (; i + 1 < count && i < kGroupTiles; i += 2) {  // what more registers would be for
      fill_tile(i);
      fill_tile(i + 1);
    }
    if (i < count && i < kGroupTiles) fill_tile(i);
  }
  using Integers = IntegerSlot<kPlan>;

  static constexpr int kPieceBytes = kPageBytes / kGroupTiles;
  static constexpr int kChunk = kShape<kPlan>.chunk_columns();

  /// Pairs with the input loader's arrival at the same phase of attention; false once the launch has stopped.
  SOLITON_DEVICE bool wait_attending() {
    this->wait_unless_stopped(context_.barrier(BarrierId::kAttending), attended_ & 1, WaitKind::kAttending,
                              attended_, nothing);
    ++attended_;
    return !this->stopped();
  }

  uint32_t attended_ = 0;  // phases of attention
};

}  // namespace soliton::rows
