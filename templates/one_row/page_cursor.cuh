// Where the producer of the kernel for one row stands among the pages of a matrix.
#pragma once

#include "formats/formats.cuh"
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
        tile_(first_tile_) {
    begin_tile();
    set_page();
  }

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
  /// One lane has to do this faster than memory is: what the next page is, is known before it is waited for.
  SOLITON_DEVICE void advance() {
    column_ += columns_;
    address_ += bytes_;
    if (column_ >= end_) return next_tile();
    if constexpr (!kFullPages) set_page();
  }

 protected:
  /// Of the page that comes next.
  SOLITON_DEVICE const char* address() const { return address_; }
  SOLITON_DEVICE int bytes() const { return bytes_; }
  SOLITON_DEVICE int column() const { return column_; }
  SOLITON_DEVICE int columns() const { return columns_; }
  SOLITON_DEVICE const char* tile() const { return tile_; }
  SOLITON_DEVICE WeightType type() const { return type_; }

 private:
  /// Pages put together of several experts are none of a matrix.
  static constexpr bool kFullPages = kPlan.has_only_full_pages() && kPlan.model.mixture.experts == 0;

  SOLITON_DEVICE int weight_bytes(int columns) const { return known_weight_bytes<kPlan>(type_, columns); }

  SOLITON_DEVICE void next_tile() {
    const bool in_chunks = padded_ > kPlan.chunk_columns;
    const int tiles = in_chunks && tiles_left_ > 1
                          ? (tiles_left_ < kTilesAtOnce<kPlan> ? tiles_left_ : kTilesAtOnce<kPlan>)
                          : 1;
    tile_ += stride_;
    if (++done_ == tiles) {
      done_ = 0;
      chunk_ = end_;
      if (chunk_ >= padded_) {
        chunk_ = 0;
        first_tile_ = tile_;
        tiles_left_ -= tiles;
      }
      chunk_bytes_ = weight_bytes(chunk_);
      tile_ = first_tile_;
    }
    begin_tile();
    if constexpr (!kFullPages) set_page();
  }
  SOLITON_DEVICE void begin_tile() {
    column_ = chunk_;
    end_ = chunk_ + kPlan.chunk_columns < padded_ ? chunk_ + kPlan.chunk_columns : padded_;
    address_ = tile_ + chunk_bytes_;
  }
  SOLITON_DEVICE void set_page() {
    columns_ = known_page_columns<kPlan>(type_, padded_ - column_);
    bytes_ = weight_bytes(columns_);
  }

  WeightType type_ = WeightType::kBf16;
  const char* first_tile_ = nullptr;  // of those at a time
  int64_t stride_ = 0;
  int padded_ = 0;
  int tiles_left_ = 0;
  const char* tile_ = nullptr;
  int done_ = 0;         // tiles of the chunk before this one
  int chunk_ = 0;        // its first column
  int end_ = 0;          // and that behind its last
  int chunk_bytes_ = 0;  // of a tile, before the chunk
  // Of the page that comes next:
  int column_ = 0;
  int columns_ = 0;
  int bytes_ = 0;
  const char* address_ = nullptr;
};

}  // namespace soliton::one_row
