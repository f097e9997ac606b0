// Where the producer of the kernels for several rows stands among the pages of a matrix, where single warps multiply.
#pragma once

#include "formats/formats.cuh"
#include "rows/context.cuh"

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

/// The same where some matrices are of experts; of those side by side one comes after the other.
template <const KernelPlan& kPlan>
class ExpertSlotCursor {
 public:
  ExpertSlotCursor() = default;
  /// `matrix`: where tile 0 begins. Experts are known by the time that their pages are looked at.
  SOLITON_DEVICE ExpertSlotCursor(const Context<kPlan>& context, const char* matrix, const MatrixPhase& phase)
      : phase_(&phase), matrix_(matrix) {
    const TileRun run = context.tiles(phase);
    next_tile_ = run.first;
    tiles_left_ = run.count;
  }

  SOLITON_DEVICE bool at_end() const { return tiles_left_ <= 0; }
  template <class Producer>
  SOLITON_DEVICE void push(const Producer& producer) const {
    const int tiles = num_tiles();
    producer.expect(tiles * weight_bytes(columns()));
    SOLITON_NO_UNROLL
    for (int i = 0; i < tiles; ++i) {
      for_each_piece(i, [&](int offset, const char* source, int bytes) {
        producer.copy(i * (kPageBytes / kRowsShape.tiles_per_slot) + offset, source, bytes);
      });
    }
  }
  template <class Copies>
  SOLITON_DEVICE void prefetch(const Copies& copies) const {
    SOLITON_NO_UNROLL
    for (int i = 0; i < num_tiles(); ++i)
      for_each_piece(i, [&](int, const char* source, int bytes) { copies.prefetch_page(source, bytes); });
  }
  SOLITON_DEVICE void advance() {
    tile_ += tiles_per_slot();
    if (tile_ < at_once()) return;
    tile_ = 0;
    column_ += columns();
    if (column_ < width()) return;
    column_ = 0;
    if (is_divided() && ++slot_ < chosen_slots()) return;
    slot_ = 0;
    next_tile_ += kTilesAtOnce<kPlan> * kPlan.all_ctas();
    tiles_left_ -= kTilesAtOnce<kPlan>;
  }

 private:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;
  static constexpr Mixture kMixture = kPlan.model.mixture;

  SOLITON_DEVICE const ExpertPhase& experts() const { return kExpertTable<kPlan>.phases[phase_->number]; }
  /// Are its experts side by side?
  SOLITON_DEVICE bool is_divided() const { return experts().axis == ExpertAxis::kColumns; }
  SOLITON_DEVICE bool of_integers() const { return has_scales<kPlan>(phase_->format.type); }
  SOLITON_DEVICE int at_once() const {
    return tiles_left_ < kTilesAtOnce<kPlan> ? tiles_left_ : kTilesAtOnce<kPlan>;
  }
  SOLITON_DEVICE int tiles_per_slot() const { return of_integers() ? 1 : kRowsShape.tiles_per_slot; }
  SOLITON_DEVICE int num_tiles() const {
    const int rest = at_once() - tile_;
    return rest < tiles_per_slot() ? rest : tiles_per_slot();
  }
  SOLITON_DEVICE int weight_bytes(int columns) const {
    return known_weight_bytes<kPlan>(phase_->format.type, columns);
  }
  /// Of a tile: of one expert, where these are side by side.
  SOLITON_DEVICE int width() const { return is_divided() ? kMixture.ffn : phase_->padded; }
  /// Scales of an expert's columns stand behind all of them: its pages need not be of a width that a page has.
  SOLITON_DEVICE int columns() const {
    const int rest = width() - column_;
    if (of_integers() && !is_divided()) return page_columns(kPlan.model.integers, rest);
    const int most = of_integers() ? kPlan.model.integers.page_columns() : kRowsShape.chunk_columns();
    return rest < most ? rest : most;
  }

  /// No register is to hold where they stand.
  static SOLITON_DEVICE const uint32_t* words(int offset) {
    constexpr int kRegion = kPlan.regions[static_cast<int>(RegionId::kExperts)].offset;
    return reinterpret_cast<const uint32_t*>(shared_memory() + kRegion) + offset;
  }
  static SOLITON_DEVICE int chosen_slots() {
    return static_cast<int>(load_shared(words(Context<kPlan>::kExpertsLayout.count())));
  }

  /// Calls body(offset, source, bytes) for what a tile has of the slot's columns.
  template <class Body>
  SOLITON_DEVICE void for_each_piece(int tile, const Body& body) const {
    int number = next_tile_ + (tile_ + tile) * kPlan.all_ctas();
    const char* source = matrix_;
    if (experts().axis != ExpertAxis::kNone) {
      const int slot = is_divided() ? slot_ : number / experts().tiles;
      if (!is_divided()) number -= slot * experts().tiles;
      source += load_shared(words(Context<kPlan>::kExpertsLayout.experts()) + slot) * experts().expert_bytes;
    }
    source += static_cast<int64_t>(number) * weight_bytes(width());
    if (!of_integers() || !is_divided())
      return body(0, source + weight_bytes(column_), weight_bytes(columns()));
    constexpr WeightFormat kIntegers = kPlan.model.integers;
    body(0, source + kIntegers.value_bytes(column_), kIntegers.value_bytes(columns()));
    body(kIntegers.value_bytes(columns()),
         source + kIntegers.value_bytes(width()) + kIntegers.scale_bytes(column_),
         kIntegers.scale_bytes(columns()));
  }

  const MatrixPhase* phase_ = nullptr;
  const char* matrix_ = nullptr;
  int next_tile_ = 0;  // the first of those at a time
  int tiles_left_ = 0;
  int slot_ = 0;  // of experts
  int tile_ = 0;
  int column_ = 0;
};

}  // namespace soliton::rows
