// The products of one row (GEMV): what a consumer warp adds up of the pages of a tile.
#pragma once

#include "one_row/consumer.cuh"

namespace soliton::one_row {

/// Adds the products of this warp's columns of one chunk of a tile.
template <const KernelPlan& kPlan>
template <Width kWidth>
SOLITON_DEVICE void Consumer<kPlan>::multiply_chunk(int chunk, TileSums<kWidth.format>& sums) {
  using Slice = InputSlice<kPlan, kWidth>;
  constexpr int kLastPages = Slice::kFullPages - (Slice::kChunks - 1) * Slice::kChunkPages;
  const int num_pages = chunk < Slice::kChunks - 1 ? Slice::kChunkPages : kLastPages;
  constexpr int kPageColumns = Slice::kPageWidth / kWarps;
  if constexpr (takes_pairs<kWidth>()) {
    SOLITON_NO_UNROLL
    for (int pair = 0; pair < num_pages / 2; ++pair)
      multiply_pair<kWidth.format, Slice::kPageWidth>(pair * 2 * kPageColumns, sums);
    if (num_pages % 2 != 0)
      multiply_page<kWidth.format, Slice::kPageWidth>((num_pages - 1) * kPageColumns, sums);
  } else {
    SOLITON_NO_UNROLL
    for (int page = 0; page < num_pages; ++page)
      multiply_page<kWidth.format, Slice::kPageWidth>(page * kPageColumns, sums);
  }
  if constexpr (Slice::kRest > 0) {
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

}  // namespace soliton::one_row
