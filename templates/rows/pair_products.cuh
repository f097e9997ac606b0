// How integers of a tile are multiplied with the digits of an expert's pairs (layout/expert_pairs.h): with those of up to four
// pairs, two by one mma, or all four where there are two digits; or of eight, by an mma a digit. The bits of a sum are the same
// either way.
#pragma once

#include <type_traits>

#include "formats/integer_scales.cuh"
#include "rows/pair_digits.cuh"

namespace soliton::rows {

/// Pairs of an expert that its tiles are multiplied by at once: as many are columns of a product.
constexpr int kPairsAtOnce = 8;
constexpr int kPairGroups = kPairsAtOnce / 2;

template <const KernelPlan& kPlan>
constexpr int kSetColumns = kPlan.pair_lines(0).set_columns;

/// What lane 4 g + j has of a tile: of pairs j / 2, 2 + j / 2, ... row g if j is even, or row g + 8.
using PairSums = float[kPairGroups];

/// Some pairs of an expert, and their lines.
template <const KernelPlan& kPlan>
struct ExpertLines {
  const ExpertSlot<kPlan>& slot;
  int first_pair;
  int count;
  const unsigned char* at;  // where lines stand,
  int first;                // theirs one after the other from this one on; -1: they have those of their rows
  int columns;

  SOLITON_DEVICE PairLines layout() const {
    constexpr int kDigits = pair_digits(kPlan.rows);
    return {columns, kSetColumns<kPlan>, kDigits};
  }
  /// Where the digits of a pair's line stand; of a pair that is not there those of another: sums are numbers.
  SOLITON_DEVICE const unsigned char* line(int rank) const {
    const int own = rank < count ? rank : 0;
    return at + (first >= 0 ? first + own : slot.row_of(first_pair + own)) * layout().bytes();
  }
  SOLITON_DEVICE const float2* scales_of(const unsigned char* line) const {
    return reinterpret_cast<const float2*>(line + layout().scales_offset());
  }
};

/// What both ways to multiply have in common.
template <const KernelPlan& kPlan>
struct PairProducts {
  static constexpr int kDigits = pair_digits(kPlan.rows);
  static constexpr int kDigit = 1 << kDigitBits;
  static constexpr float kUpperRows = 1.0f / 16;  // what their products count

  static constexpr int kDigitBytes = kPlan.pair_lines(0).digit_offset(0, 1);

  /// Offset in a line of what a lane multiplies a set's step `k` of 32 columns with; `column`: the set's first.
  static SOLITON_DEVICE int step_offset(int column, int k) {
    if constexpr (kDigits == 2 && kPlan.set_steps() % 2 == 0) {
      return column * kDigits + kPlan.pair_lines(0).digit_offset(k, 0);
    } else {
      return kPlan.pair_lines(0).digit_offset(column / kStepColumns + k, 0);
    }
  }
  static SOLITON_DEVICE uint2 load_digits(const unsigned char* from) {
    return load_shared(reinterpret_cast<const uint2*>(from));
  }
  /// Adds what a set's products give, of the first two digits or of the third; `input`: of the pair's columns, see PairLines. Sums
  /// of the third digit are apart until all sets have been added, whoever has them: bits do not depend on who else goes through an
  /// expert.
  template <WeightFormat kFormat>
  static SOLITON_DEVICE void add(float& sum, int32_t product, float2 input, float scale, int32_t zero,
                                 float weight) {
    const float zeros = kFormat.has_zeros ? static_cast<float>(zero) * input.y : input.y;
    sum += scale * (input.x * weight * static_cast<float>(product) - zeros);
  }
  /// For the third digit: zeros are taken off the others.
  static SOLITON_DEVICE float2 of_third(float2 input) {
    constexpr float kThird = 1 << 2 * kDigitBits;
    return make_float2(input.x * kThird, 0.0f);
  }
};

/// Up to four pairs, two by two: columns of the product are the digits of two, and of a fourth digit nothing counts.
template <const KernelPlan& kPlan, int kGroups>
class FewPairs {
  using Common = PairProducts<kPlan>;

 public:
  SOLITON_DEVICE FewPairs(const ExpertLines<kPlan>& lines, int lane) : third_(lane % 2 != 0) {
    static_assert(Common::kDigits == 3);
    const int digit = lane / 4 % 4 < Common::kDigits ? lane / 4 % 4 : 0;
    SOLITON_UNROLL
    for (int n = 0; n < kGroups; ++n) {
      operands_[n] = lines.line(2 * n + lane / 16) + digit * Common::kDigitBytes + lane % 4 * 8;
      scales_[n] = lines.scales_of(lines.line(2 * n + lane % 4 / 2));
    }
  }
  SOLITON_DEVICE void begin_set() {
    SOLITON_UNROLL
    for (int i = 0; i < kGroups * kStrips * 4; ++i) products_[i / (kStrips * 4)][i / 4 % kStrips][i % 4] = 0;
  }
  SOLITON_DEVICE void multiply(int strip, uint4 weights, int column, int k) {
    const MmaBatch batch;
    SOLITON_UNROLL
    for (int n = 0; n < kGroups; ++n)
      mma_u8_s8(products_[n][strip], weights,
                Common::load_digits(operands_[n] + Common::step_offset(column, k)));
  }
  template <WeightFormat kFormat>
  SOLITON_DEVICE void scale(int strip, const RowScales& rows, int column) {
    const int32_t second = third_ ? 0 : Common::kDigit;  // what the second of a lane's columns counts
    SOLITON_UNROLL
    for (int n = 0; n < kGroups; ++n) {
      const int32_t(&own)[4] = products_[n][strip];
      const float2 of_pair = load_shared(scales_[n] + column / kSetColumns<kPlan>);
      const float2 input = third_ ? Common::of_third(of_pair) : of_pair;
      SOLITON_UNROLL
      for (int half = 0; half < 2; ++half)
        Common::template add<kFormat>(sums_[n][half], own[2 * half] + second * own[2 * half + 1], input,
                                      rows.scale[half], rows.zero[half],
                                      half == 0 ? 1.0f : Common::kUpperRows);
    }
  }
  /// A lane that has the third digit of both rows gives what it has of the first to its neighbour, for what this has of the second.
  SOLITON_DEVICE void put(int /*lane*/, PairSums& sums) const {
    SOLITON_UNROLL
    for (int n = 0; n < kGroups; ++n)
      sums[n] = (third_ ? sums_[n][1] : sums_[n][0]) + shuffle_xor(third_ ? sums_[n][0] : sums_[n][1], 1);
  }

 private:
  bool third_;                              // of a lane's columns of products, one is the third digit
  const unsigned char* operands_[kGroups];  // of the columns' pairs
  const float2* scales_[kGroups];           // of those whose sums the lane has
  int32_t products_[kGroups][kStrips][4];
  float sums_[kGroups][2] = {};  // of two rows
};

/// The same of two digits: columns of the product are those of four pairs.
template <const KernelPlan& kPlan>
class FourPairs {
  using Common = PairProducts<kPlan>;

 public:
  SOLITON_DEVICE FourPairs(const ExpertLines<kPlan>& lines, int lane)
      : operand_(lines.line(lane / 8) + lane / 4 % 2 * Common::kDigitBytes + lane % 4 * 8),
        scales_(lines.scales_of(lines.line(lane % 4))) {
    static_assert(Common::kDigits == 2);
  }
  SOLITON_DEVICE void begin_set() {
    SOLITON_UNROLL
    for (int i = 0; i < kStrips * 4; ++i) products_[i / 4][i % 4] = 0;
  }
  SOLITON_DEVICE void multiply(int strip, uint4 weights, int column, int k) {
    const MmaBatch batch;
    mma_u8_s8(products_[strip], weights, Common::load_digits(operand_ + Common::step_offset(column, k)));
  }
  template <WeightFormat kFormat>
  SOLITON_DEVICE void scale(int strip, const RowScales& rows, int column) {
    const float2 input = load_shared(scales_ + column / kSetColumns<kPlan>);
    SOLITON_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int32_t(&own)[4] = products_[strip];
      Common::template add<kFormat>(sums_[half], own[2 * half] + Common::kDigit * own[2 * half + 1], input,
                                    rows.scale[half], rows.zero[half], half == 0 ? 1.0f : Common::kUpperRows);
    }
  }
  /// Lane j of a quad has pair j.
  SOLITON_DEVICE void put(int lane, PairSums& sums) const {
    SOLITON_UNROLL
    for (int n = 0; n < 2; ++n) {
      const int from = lane / 4 * 4 + 2 * n + lane % 4 / 2;
      const float lower = shuffle(sums_[0], from);
      const float upper = shuffle(sums_[1], from);
      sums[n] = lane % 2 == 0 ? lower : upper;
    }
  }

 private:
  const unsigned char* operand_;  // of the column's pair
  const float2* scales_;          // of the pair whose sums the lane has
  int32_t products_[kStrips][4];
  float sums_[2] = {};
};

template <const KernelPlan& kPlan>
using UpToFourPairs = std::conditional_t<pair_digits(kPlan.rows) == 2, FourPairs<kPlan>, FewPairs<kPlan, 2>>;

/// All pairs that there may be: columns of the product are one digit of each.
template <const KernelPlan& kPlan>
class AllPairs {
  using Common = PairProducts<kPlan>;

 public:
  SOLITON_DEVICE AllPairs(const ExpertLines<kPlan>& lines, int lane) {
    operands_ = lines.line(lane / 4) + lane % 4 * 8;
    SOLITON_UNROLL
    for (int i = 0; i < 2; ++i) scales_[i] = lines.scales_of(lines.line(lane % 4 * 2 + i));
  }
  SOLITON_DEVICE void begin_set() {
    SOLITON_UNROLL
    for (int i = 0; i < Common::kDigits * kStrips * 4; ++i)
      products_[i / (kStrips * 4)][i / 4 % kStrips][i % 4] = 0;
  }
  SOLITON_DEVICE void multiply(int strip, uint4 weights, int column, int k) {
    const MmaBatch batch;
    SOLITON_UNROLL
    for (int digit = 0; digit < Common::kDigits; ++digit)
      mma_u8_s8(
          products_[digit][strip], weights,
          Common::load_digits(operands_ + Common::step_offset(column, k) + digit * Common::kDigitBytes));
  }
  template <WeightFormat kFormat>
  SOLITON_DEVICE void scale(int strip, const RowScales& rows, int column) {
    SOLITON_UNROLL
    for (int i = 0; i < 2; ++i) {
      const float2 input = load_shared(scales_[i] + column / kSetColumns<kPlan>);
      SOLITON_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int at = 2 * half + i;
        const auto add = [&](float& sum, int32_t product, float2 counts) {
          Common::template add<kFormat>(sum, product, counts, rows.scale[half], rows.zero[half],
                                        half == 0 ? 1.0f : Common::kUpperRows);
        };
        add(sums_[i][half], products_[0][strip][at] + Common::kDigit * products_[1][strip][at], input);
        if constexpr (Common::kDigits == 3)
          add(third_sums_[i][half], products_[2][strip][at], Common::of_third(input));
      }
    }
  }
  /// Lane j of a quad has pairs 2 j and 2 j + 1.
  SOLITON_DEVICE void put(int lane, PairSums& sums) const {
    SOLITON_UNROLL
    for (int n = 0; n < kPairGroups; ++n) {
      SOLITON_UNROLL
      for (int i = 0; i < 4; ++i) {
        float own = sums_[i / 2][i % 2];
        if constexpr (Common::kDigits == 3) own += third_sums_[i / 2][i % 2];
        const float from = shuffle(own, lane / 4 * 4 + n);
        if (lane % 4 == i) sums[n] = from;
      }
    }
  }

 private:
  const unsigned char* operands_;
  const float2* scales_[2];
  int32_t products_[Common::kDigits][kStrips][4];
  float sums_[2][2] = {};
  float third_sums_[2][2] = {};  // of third digits
};

}  // namespace soliton::rows
