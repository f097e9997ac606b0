// The products of one row (GEMV): what a consumer warp adds up of the pages of a tile.
#pragma once

#include "one_row/consumer.cuh"

namespace soliton::one_row {

/// Adds the products of this warp's columns of one chunk of a tile; `ends`: it is the phase's last.
template <const KernelPlan& kPlan>
template <Width kWidth>
SOLITON_DEVICE void Consumer<kPlan>::multiply_chunk(int chunk, TileSums<kWidth.format>& sums, bool ends) {
  using Slice = InputSlice<kPlan, kWidth>;
  constexpr int kLastPages = Slice::kFullPages - (Slice::kChunks - 1) * Slice::kChunkPages;
  const int num_pages = chunk < Slice::kChunks - 1 ? Slice::kChunkPages : kLastPages;
  constexpr int kPageColumns = Slice::kPageWidth / kWarps;
  if constexpr (takes_pairs<kPlan, kWidth>()) {
    SOLITON_NO_UNROLL
    for (int pair = 0; pair < num_pages / 2; ++pair) {
      if (ends && pair * 2 >= num_pages - 2) announce_wait();
      multiply_pair<kWidth.format, Slice::kPageWidth>(pair * 2 * kPageColumns, sums);
    }
    if (ends && num_pages == 1) announce_wait();
    if (num_pages % 2 != 0)
      multiply_page<kWidth.format, Slice::kPageWidth>((num_pages - 1) * kPageColumns, sums);
  } else {
    SOLITON_NO_UNROLL
    for (int page = 0; page < num_pages; ++page) {
      if (ends && (page == num_pages - 2 || num_pages == 1)) announce_wait();
      multiply_page<kWidth.format, Slice::kPageWidth>(page * kPageColumns, sums);
    }
  }
  if constexpr (Slice::kRest > 0) {
    if (ends && num_pages == 0) announce_wait();
    if (chunk == Slice::kChunks - 1)
      multiply_rest<kWidth.format, Slice::kRest>(kLastPages * kPageColumns, sums);
  }
}

/// The same of a slice of a router's columns: whole pages, of an input that shared memory holds all of.
template <const KernelPlan& kPlan>
template <Width kWidth>
SOLITON_DEVICE void Consumer<kPlan>::multiply_slice(int slice, TileSums<kWidth.format>& sums) {
  using Slice = InputSlice<kPlan, kWidth>;
  constexpr int kPages = Slice::kFullPages / RouterSlices<kPlan>::kCount;
  SOLITON_NO_UNROLL
  for (int page = slice * kPages; page < (slice + 1) * kPages; ++page) {
    multiply_page<kWidth.format, Slice::kPageWidth>(page * (Slice::kPageWidth / kWarps), sums);
  }
}

/// The short pages that `kRest` columns stand in.
template <const KernelPlan& kPlan>
template <WeightFormat kFormat, int kRest>
SOLITON_DEVICE void Consumer<kPlan>::multiply_rest(int column, TileSums<kFormat>& sums) {
  constexpr int kColumns = page_columns(kFormat, kRest);
  multiply_page<kFormat, kColumns>(column, sums);
  if constexpr (kColumns < kRest) multiply_rest<kFormat, kRest - kColumns>(column + kColumns / kWarps, sums);
}

/// The same of two neighbouring pages: instructions of one fill the waits of the other's.
template <const KernelPlan& kPlan>
template <WeightFormat kFormat, int kColumns>
SOLITON_DEVICE void Consumer<kPlan>::multiply_pair(int column, TileSums<kFormat>& sums) {
  constexpr int kOwnColumns = kColumns / kWarps;
  int slots[2];
  wait_pair(slots);
  SOLITON_UNROLL
  for (int i = 0; i < 2; ++i) {
    Gemv<kFormat>::template multiply<kWarps, kColumns>(
        page_of<kFormat>(column + i * kOwnColumns, page_bytes(slots[i])), sums);
  }
  SOLITON_UNROLL
  for (int i = 0; i < 2; ++i) release_page(slots[i]);
}

/// A page of integers, or of codes with scales, and this warp's columns of x from `column` on.
template <const KernelPlan& kPlan>
template <WeightFormat kFormat>
SOLITON_DEVICE GemvPage Consumer<kPlan>::page_of(int column, const unsigned char* page) const {
  return {.x = x() + column * kXColumnBytes,
          .page = page,
          .input_sums = input_sums() + column / (kStrips * kStepColumns) * 4,
          .warp = warp_,
          .lane = context_.lane,
          .up = input_up_,
          .zeros = context_.region(RegionId::kZeros)};
}

/// Adds the products of this warp's columns of one page; in x they begin with the warp's column `column`.
template <const KernelPlan& kPlan>
template <WeightFormat kFormat, int kColumns>
SOLITON_DEVICE void Consumer<kPlan>::multiply_page(int column, TileSums<kFormat>& sums) {
  const int slot = wait_page();
  if constexpr (kTakesPages<kFormat>) {
    Gemv<kFormat>::template multiply<kWarps, kColumns>(page_of<kFormat>(column, page_bytes(slot)), sums);
  } else {
    using Format = Gemv<kFormat>;
    constexpr int kBlocks = kColumns / kWarps / kColumnBlock;
    constexpr int kBytes = kFormat.block_bytes();
    const unsigned char* weights = page_bytes(slot) + warp_ * kBlocks * kBytes;
    const unsigned char* x_slice = x() + column * kXColumnBytes +
                                   (context_.lane / 4 == 1 ? Format::kLowOffset : 0) + context_.lane % 4 * 16;
    const MmaBatch batch;
    SOLITON_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      const uint4 values = load_shared(reinterpret_cast<const uint4*>(x_slice + block * Format::kBlockBytes));
      Format::multiply_block(sums, weights + block * kBytes, values, context_.lane);
    }
  }
  release_page(slot);
}

/// Takes x of the pages of a chunk, as tiles are multiplied by it one after another.
template <const KernelPlan& kPlan>
template <Width kWidth, class Input>
SOLITON_DEVICE void Consumer<kPlan>::load_held(Input& x) const {
  constexpr int kColumns = Held<kWidth>::kColumns;
  Held<kWidth>::for_each([&](int page, int own) {
    const GemvPage at = page_of<kWidth.format>(page * (kColumns / kWarps), nullptr);
    x.unit[page][own] = Gemv<kWidth.format>::template load_input<kWarps, kColumns>(at, own);
  });
}

/// Waits for the pages of a chunk of the next tile, and takes this warp's words of them.
template <const KernelPlan& kPlan>
template <Width kWidth, class Words>
SOLITON_DEVICE void Consumer<kPlan>::load_words(Words& words) {
  constexpr int kColumns = Held<kWidth>::kColumns;
  if constexpr (Held<kWidth>::kPages == 2) {
    wait_pair(words.slots);
  } else {
    words.slots[0] = wait_page();
  }
  Held<kWidth>::for_each([&](int page, int own) {
    const GemvPage at = page_of<kWidth.format>(page * (kColumns / kWarps), page_bytes(words.slots[page]));
    words.unit[page][own] = Gemv<kWidth.format>::template load_weights<kWarps, kColumns>(at, own);
  });
}

/// Once they are there, what comes next in the stream may take their place.
template <const KernelPlan& kPlan>
template <Width kWidth, class Words>
SOLITON_DEVICE void Consumer<kPlan>::release_words(const Words& words) {
  SOLITON_UNROLL
  for (const int slot : words.slots) release_page(slot);
}

template <const KernelPlan& kPlan>
template <Width kWidth, class Input, class Words, class Products>
SOLITON_DEVICE void Consumer<kPlan>::multiply_held(const Input& x, const Words& words,
                                                   Products& products) const {
  Held<kWidth>::for_each([&](int page, int own) {
    products.unit[page][own] =
        Held<kWidth>::Unit::multiply(words.unit[page][own], x.unit[page][own], known_lane());
  });
}

/// Adds them, times their scales.
template <const KernelPlan& kPlan>
template <Width kWidth, class Input, class Products>
SOLITON_DEVICE void Consumer<kPlan>::add_held(const Input& x, const Products& products,
                                              TileSums<kWidth.format>& sums) const {
  Held<kWidth>::for_each([&](int page, int own) {
    Held<kWidth>::Unit::add(products.unit[page][own], x.unit[page][own], known_lane(), input_up_, sums);
  });
}

/// For an input that shared memory holds all of: a tile is added up and handed over while the next one is multiplied.
template <const KernelPlan& kPlan>
template <Width kWidth>
SOLITON_DEVICE void Consumer<kPlan>::multiply_tiles(int num_tiles) {
  if (num_tiles == 0) return;  // else x is complete for all lanes, since report_input()
  typename Held<kWidth>::Input x;
  load_held<kWidth>(x);
  typename Held<kWidth>::Words words;
  load_words<kWidth>(words);
  typename Held<kWidth>::Products products;
  multiply_held<kWidth>(x, words, products);
  SOLITON_NO_UNROLL
  for (int left = num_tiles - 1;; --left) {
    if (left == 0) announce_wait();
    release_words<kWidth>(words);
    const bool is_free = tile_is_free();
    typename Held<kWidth>::Products next;
    if (left > 0) {
      load_words<kWidth>(words);
      multiply_held<kWidth>(x, words, next);
    }
    TileSums<kWidth.format> sums;
    add_held<kWidth>(x, products, sums);
    hand_over_tile(sums.rows(), is_free);
    if (left == 0) return;
    products = next;
  }
}

/// For a wide input: a few tiles at a time, of all of them one chunk of columns after the other. Products of whole pages are one
/// piece of code for all tiles: a copy for each would be fetched anew for every chunk.
template <const KernelPlan& kPlan>
template <Width kWidth>
SOLITON_DEVICE void Consumer<kPlan>::multiply_in_chunks(const MatrixPhase& phase, int layer, int num_tiles) {
  using Loads = InputLoads<kPlan, kWidth>;
  constexpr int kChunks = InputSlice<kPlan, kWidth>::kChunks;
  constexpr int kTiles = kTilesAtOnce<kPlan>;
  // Weights of few bits are few bytes: their pages would not last while the next chunk is loaded.
  constexpr bool kAhead = kWidth.format.page_columns() > kPageColumns;
  const float* input = context_.vector(phase.input_vector, context_.input_use(phase, layer));
  const auto loads_of = [&](int chunk) { return Loads{warp_, known_lane(), chunk, 0, input}; };
  typename Loads::Values ahead;
  if constexpr (kAhead) {
    wait_for_grid(context_);
    loads_of(0).issue(ahead);
  }
  for (int first = 0; first == 0 || first < num_tiles; first += kTiles) {
    TileSums<kWidth.format> sums[kTiles];
    SOLITON_NO_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      if constexpr (kAhead) {
        load_input<kWidth, true>(phase, layer, chunk, &ahead);
        if (chunk + 1 < kChunks || first + kTiles < num_tiles) {
          loads_of(chunk + 1 < kChunks ? chunk + 1 : 0).issue(ahead);
        }
      } else {
        warp_sync();  // before x changes, all lanes have read it
        load_input<kWidth>(phase, layer, chunk);
      }
      warp_sync();  // x is complete for all lanes
      if (first == 0 && chunk == 0) mark_input();
      if (first == 0 && chunk == kChunks - 1) report_input();
      const auto ends = [&](int tile) { return chunk == kChunks - 1 && first + tile == num_tiles - 1; };
      const auto next_sums = [&] {  // take the place of sums[0], the one that code adds to
        const TileSums<kWidth.format> own = sums[0];
        SOLITON_UNROLL
        for (int k = 1; k < kTiles; ++k) sums[k - 1] = sums[k];
        sums[kTiles - 1] = own;
      };
      if constexpr (Held<kWidth>::kPages > 0) {
        if (chunk < Held<kWidth>::kChunks) {
          if (first < num_tiles) {
            typename Held<kWidth>::Input x;
            load_held<kWidth>(x);
            typename Held<kWidth>::Words words;
            load_words<kWidth>(words);
            release_words<kWidth>(words);
            const int last = (num_tiles - first < kTiles ? num_tiles - first : kTiles) - 1;
            SOLITON_NO_UNROLL
            for (int i = 0;; ++i) {
              typename Held<kWidth>::Products products;
              multiply_held<kWidth>(x, words, products);
              if (i < last) load_words<kWidth>(words);
              add_held<kWidth>(x, products, sums[0]);
              next_sums();
              if (i == last) break;
              release_words<kWidth>(words);
            }
            for (int i = last + 1; i < kTiles; ++i) next_sums();
          }
          continue;
        }
      }
      if constexpr (kTakesPages<kWidth.format>) {
        SOLITON_NO_UNROLL
        for (int i = 0; i < kTiles; ++i) {
          if (first + i < num_tiles) multiply_chunk<kWidth>(chunk, sums[0], ends(i));
          next_sums();
        }
      } else {
        SOLITON_UNROLL
        for (int i = 0; i < kTiles; ++i) {
          if (first + i < num_tiles) multiply_chunk<kWidth>(chunk, sums[i], ends(i));
        }
      }
    }
    SOLITON_UNROLL
    for (int i = 0; i < kTiles; ++i) {
      if (first + i < num_tiles) hand_over_tile(sums[i].rows());
    }
  }
}

}  // namespace soliton::one_row
