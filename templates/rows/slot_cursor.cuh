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
    if (has_scales<kPlan>(type_)) return known_page_columns<kPlan>(type_, rest);
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

}  // namespace soliton::rows
