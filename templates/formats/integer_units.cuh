// A unit of integers, of one row's product: what a lane loads of it, multiplies by its digits of x, and adds up. The three are
// apart so that the next unit's words may be loaded before the products of the last are added up.
#pragma once

#include "formats/digits.cuh"
#include "formats/gemv.cuh"
#include "formats/integer_scales.cuh"
#include "formats/integer_words.cuh"

namespace soliton {

/// What a lane's second digit counts more than its first: odd lanes have none.
SOLITON_DEVICE int32_t second_digit(int lane) {
  return lane % 2 == 0 ? 1 << kDigitBits : 0;
}

/// A unit of two strips of kSteps steps. Lane l = 4 g + j multiplies by two digits of x, and what it adds up is of rows g and g + 8,
/// columns of strip j / 2.
template <WeightFormat kFormat, int kSteps>
struct IntegerUnit {
  static constexpr int kHalves =
      kFormat.group < kStepColumns ? kStepColumns / kFormat.group : 1;  // groups of a step
  static constexpr int kGroupSteps = kFormat.group < kStepColumns ? 1 : kFormat.group / kStepColumns;
  /// Steps of a strip that have one scale, or a step's two.
  static constexpr int kScaledSteps = kSteps < kGroupSteps ? kSteps : kGroupSteps;
  static constexpr int kGroups = kSteps / kScaledSteps * kHalves;  // of a strip
  /// Are products less what weights count more than they are, times the sum of x?
  static constexpr bool kSumsInput = kFormat.has_zeros || kFormat.symmetric_zero() != 0 || kFormat.has_minima;
  static_assert(kHalves <= 2);

  struct Input {
    uint2 x[kSteps];
    int32_t sums[kGroups] = {};  // of x, where products are less what it counts
  };
  struct Weights {
    StepWords<kFormat> words[kSteps];
    GroupScales<kFormat> scales[kGroups];
  };
  struct Products {
    StripProducts<kFormat> of[kGroups];
    GroupScales<kFormat> scales[kGroups];
  };

  static SOLITON_DEVICE Products multiply(const Weights& weights, const Input& input, int lane) {
    Products products;
    SOLITON_UNROLL
    for (int group = 0; group < kGroups; ++group) {
      products.scales[group] = weights.scales[group];
      MmaBatch batch;
      SOLITON_UNROLL
      for (int i = 0; i < kScaledSteps; ++i) {
        const int step = first_step(group) + i;
        weights.words[step].multiply(products.of[group], own_x(input.x[step], group, lane));
      }
      batch.end();
    }
    return products;
  }

  /// Adds them, times their scales; `up`: InputScale::up of the digits.
  static SOLITON_DEVICE void add(const Products& products, const Input& input, int lane, float up,
                                 QuadSums& sums) {
    static_assert(kFormat.block == 0);
    if (lane % 2 == 1) up *= kSecondDigits;
    SOLITON_UNROLL
    for (int group = 0; group < kGroups; ++group) {
      const RowScales scales = row_scales<kFormat>(products.scales[group]);
      const RowProducts own = own_products(products.of[group], lane);
      SOLITON_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int32_t product = less_zero(own.of_row[half], half, scales.zero[half], input.sums[group]);
        sums.value[half] += scales.scale[half] * of_row(up, half) * static_cast<float>(product);
        if constexpr (kFormat.has_minima)
          sums.value[half] -= scales.minimum[half] * up * static_cast<float>(input.sums[group]);
      }
    }
  }

  /// The same of a unit within a block of columns, of whose groups the first is `first_group`.
  static SOLITON_DEVICE void add(const Products& products, const Input& input, int lane, float up,
                                 const BlockScales<kFormat>& block, int first_group, QuadSums& sums) {
    if (lane % 2 == 1) up *= kSecondDigits;
    float scaled[2] = {};   // products by their groups' integers,
    int32_t below[2] = {};  // and the input
    SOLITON_UNROLL
    for (int group = 0; group < kGroups; ++group) {
      const auto factors = block.factors(first_group + group);
      const RowProducts own = own_products(products.of[group], lane);
      SOLITON_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int32_t product =
            less_zero(own.of_row[half], half, kFormat.symmetric_zero(), input.sums[group]);
        if constexpr (kFormat.has_minima) below[half] += factors.minimum[half] * input.sums[group];
        scaled[half] += factors.scale[half] * static_cast<float>(product);
      }
    }
    SOLITON_UNROLL
    for (int half = 0; half < 2; ++half) {
      sums.value[half] += block.scale(half) * of_row(up, half) * scaled[half];
      if constexpr (kFormat.has_minima)
        sums.value[half] -= block.minimum(half) * up * static_cast<float>(below[half]);
    }
  }

  static SOLITON_HOST_DEVICE constexpr int first_step(int group) { return group / kHalves * kScaledSteps; }
  /// Of a step that has two groups, quads 0 and 1 have the first's columns.
  static SOLITON_DEVICE uint2 own_x(uint2 x, int group, int lane) {
    return kHalves == 1 || lane % 4 / 2 == group % kHalves ? x : make_uint2(0, 0);
  }

 private:
  static constexpr float kSecondDigits = 1 << 2 * kDigitBits;
  static constexpr bool kNibbles = kFormat.bits() == 4;

  struct RowProducts {
    int32_t of_row[2];
  };
  /// Of the lane's strip by its two digits, of rows g and g + 8: of 4 bits these are 16 times as large.
  static SOLITON_DEVICE RowProducts own_products(const StripProducts<kFormat>& all, int lane) {
    const auto product = [&](int half) {
      const int32_t first = all.of(0, half, 0) + second_digit(lane) * all.of(0, half, 1);
      const int32_t second = all.of(1, half, 0) + second_digit(lane) * all.of(1, half, 1);
      return lane % 4 >= 2 ? second : first;
    };
    const int32_t lower = product(0);
    return {{lower, kNibbles ? product(1) - lower : product(1)}};
  }
  static SOLITON_DEVICE int32_t less_zero(int32_t product, int half, int32_t zero, int32_t input) {
    if constexpr (kFormat.has_zeros || kFormat.symmetric_zero() != 0)
      product -= zero * (kNibbles && half == 1 ? 16 * input : input);
    if constexpr (kFormat.has_minima) product += kFormat.bias() * kFormat.unit() * input;
    return product;
  }
  static SOLITON_DEVICE float of_row(float up, int half) {
    return kNibbles && half == 1 ? up * (1.0f / 16) : up;
  }
};

}  // namespace soliton
