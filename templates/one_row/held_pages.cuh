// Which tiles of integers a consumer warp multiplies out of registers: it holds x of a page or two while one tile after another is
// multiplied by it, and adds up a tile's products while the next one's are made, or its words are on their way.
#pragma once

#include "one_row/input.cuh"

namespace soliton::one_row {

/// Are pages multiplied two by two? With one at a time a warp waits most of the time, for a sum or out of shared memory. Where
/// they take so many instructions that these are fetched while they are multiplied, it is slower: with blocks of scales (8B as
/// Q4_K_M, H100: 1863 us a token one by one, 2357 two by two), and of E2M1 where chunks of the input come in between. Where lanes
/// copy, before compute capability 9.0, there are no registers for two.
template <const KernelPlan& kPlan, Width kWidth>
SOLITON_HOST_DEVICE constexpr bool takes_pairs() {
  constexpr bool kIsBulk = kPlan.copies == CopyKind::kBulk;
  if (kWidth.format.takes_digits()) return kWidth.format.block == 0 && kIsBulk;
  const bool takes =
      kWidth.format.type == WeightType::kE2m1 || (kWidth.format.type == WeightType::kE4m3 && kIsBulk);
  return takes && InputSlice<kPlan, kWidth>::kChunks == 1;
}

/// `kDigits`: a partial specialisation with a constraint that asks the plan is passed over by nvcc.
template <const KernelPlan& kPlan, Width kWidth,
          bool kDigits = takes_pairs<kPlan, kWidth>() && kWidth.format.takes_digits()>
struct HeldPages {
  /// Of a tile, or of a chunk of it.
  static constexpr int kPages = 0;
};

/// Not where a unit has sums of several groups, for which there are no registers.
template <const KernelPlan& kPlan, Width kWidth>
struct HeldPages<kPlan, kWidth, true> {
  using Slice = InputSlice<kPlan, kWidth>;
  static constexpr int kColumns = kWidth.format.page_columns();  // of a page
  static constexpr int kOwnUnits = kUnits / kPlan.consumer_warps;
  using Unit = typename Gemv<kWidth.format>::template Unit<kColumns>;

  static constexpr int kWholePages = Slice::kChunks > 1 ? Slice::kChunkPages
                                     : Slice::kRest > 0 ? 0
                                                        : Slice::kFullPages;
  static constexpr int kPages = kWholePages <= 2 && Unit::kGroups == 1 ? kWholePages : 0;
  /// Chunks that have so many: all, or all but the last.
  static constexpr int kChunks =
      Slice::kGroups == Slice::kChunks * Slice::kChunkGroups ? Slice::kChunks : Slice::kChunks - 1;

  struct Input {
    typename Unit::Input unit[kPages][kOwnUnits];
  };
  struct Words {
    int slots[kPages];
    typename Unit::Weights unit[kPages][kOwnUnits];
  };
  struct Products {
    typename Unit::Products unit[kPages][kOwnUnits];
  };

  /// Calls body(page, the warp's unit of it).
  template <class Body>
  static SOLITON_DEVICE void for_each(const Body& body) {
    SOLITON_UNROLL
    for (int page = 0; page < kPages; ++page) {
      SOLITON_UNROLL
      for (int own = 0; own < kOwnUnits; ++own) body(page, own);
    }
  }
};

}  // namespace soliton::one_row
