// One row's products with weights that are integers, see layout/weight_format.h: how lanes have the weights is in
// formats/integer_words.cuh, and their scales in formats/integer_scales.cuh. All sums are of integers, and exact.
//
// x is rounded to 23 bits relative to the greatest magnitude of a warp's slice, and these are written as three
// signed digits of 8 bits: three columns of the mma's B operand, a fourth being 0. The two strips of a unit are
// its two halves: an mma multiplies the weights of one strip by x of both, and of the sums only the half that
// belongs to the strip is wanted. So a register of x serves two mma; lane l = 4 g + j ends up with two digits'
// sums for strip j / 2 of rows g and g + 8; and only has to know that strip's scales.
#pragma once

#include "formats/digits.cuh"
#include "formats/gemv.cuh"
#include "formats/integer_scales.cuh"
#include "formats/integer_words.cuh"

namespace soliton {

/// Which columns of a page of `kColumns` columns a consumer warp owns, a few units, and where its part of x has
/// them: neighbouring steps side by side, so that a lane loads two at a time.
template <int kWarps, int kColumns>
struct IntegerPart {
  static constexpr int kSteps = kColumns / kMinIntegerColumns;  // of a unit
  static constexpr int kOwnUnits = kUnits / kWarps;
  static constexpr int kPair = kSteps % 2 == 0 ? 2 : 1;  // steps side by side
  static constexpr int kStepInputBytes = kWarpLanes * 8;
  static_assert(kUnits % kWarps == 0, "every warp has whole units");

  /// Where 4 neighbouring columns of the warp's stand, group by group.
  struct Place {
    int quad;
    int word;
    int step;
    int strip;
    int unit;  // of this warp's
    SOLITON_DEVICE explicit Place(int group)
        : quad(group / 2 % 4),
          word(group % 2),
          step(group / 8 % kSteps),
          strip(group / 8 / kSteps % kStrips),
          unit(group / 8 / kSteps / kStrips) {}
  };

  /// First column in the page of group `group` of the warp's.
  static SOLITON_DEVICE int column(int warp, int group) {
    const Place at(group);
    const int strip = (warp * kOwnUnits + at.unit) * kStrips + at.strip;
    return (strip * kSteps + at.step) * kStepColumns + at.quad * 8 + at.word * 4;
  }

  /// Byte offset in the warp's part of x of what lane `lane` multiplies step `step` of its unit `unit` with.
  static SOLITON_DEVICE int input_offset(int unit, int step, int lane) {
    const int index = unit * kSteps + step;
    return index / kPair * kPair * kStepInputBytes + lane * 8 * kPair + index % kPair * 8;
  }

  /// Puts the digits of 4 columns of x, scaled by `down`, where they are multiplied, if they are there. Returns the sum of the
  /// numbers whose digits they are.
  static SOLITON_DEVICE int32_t store(unsigned char* part, int group, float4 v, float down, bool is_there) {
    const Place at(group);
    // In the order of the bytes of a word of weights: columns 0, 2, 1, 3.
    const uint32_t numbers[4] = {Numbers::of(v.x, down), Numbers::of(v.y, down), Numbers::of(v.z, down),
                                 Numbers::of(v.w, down)};
    uint32_t own[3];
    Numbers::divide({numbers[0], numbers[2], numbers[1], numbers[3]}, own);
    const uint32_t digits[kDigits] = {own[0], own[1], own[2], 0};
    SOLITON_UNROLL
    for (int digit = 0; digit < kDigits; ++digit) {
      const int lane = (at.strip * kDigits + digit) * 4 + at.quad;
      uint32_t* place =
          reinterpret_cast<uint32_t*>(part + input_offset(at.unit, at.step, lane) + at.word * 4);
      if (is_there) store_shared(place, digits[digit]);
    }
    return static_cast<int32_t>(numbers[0] + numbers[1] + numbers[2] + numbers[3] - 4 * Numbers::kBias);
  }

 private:
  using Numbers = DigitNumbers<3>;
};

/// One row: x as three digits.
template <WeightFormat kFormat>
requires(kFormat.takes_digits()) struct Gemv<kFormat> {
  using Sums = QuadSums;  // and of digits

  /// Of a scale; of half a step counts the step.
  static constexpr int kGroupSteps = kFormat.group < kStepColumns ? 1 : kFormat.group / kStepColumns;
  /// Steps of a strip of `steps` that have one scale.
  template <int kSteps>
  static constexpr int kScaledSteps = kSteps < kGroupSteps ? kSteps : kGroupSteps;
  /// Lanes that put down columns of one scale, of a page of `kColumns`.
  template <int kColumns>
  static constexpr int kSharingLanes = kScaledSteps<kColumns / kMinIntegerColumns>*(kStepColumns / 4);
  /// Are products less what weights count more than they are, times the sum of x?
  static constexpr bool kSumsInput = kFormat.has_zeros || kFormat.symmetric_zero() != 0 || kFormat.has_minima;
  /// Are these sums, of all columns of a scale, worked out as x is put down?
  static constexpr bool kHoldsSums = kSumsInput && kFormat.group >= kStepColumns;

  /// Of the numbers that a lane has put down of x: to be added up over the `lanes` lanes whose columns share a scale, for
  /// GemvPage::input_sums from `place` on.
  struct InputSum {
    int32_t numbers;
    int place;
    int lanes;
  };

  template <int kWarps, int kColumns>
  static SOLITON_DEVICE int column(int begin, int warp, int group) {
    return begin + IntegerPart<kWarps, kColumns>::column(warp, group);
  }
  template <int kWarps, int kColumns>
  static SOLITON_DEVICE InputSum store(unsigned char* x, int group, int within, float4 v, float down,
                                       bool is_there) {
    using Part = IntegerPart<kWarps, kColumns>;
    const int page = group - within;
    const typename Part::Place at(within);
    constexpr int kScaled = kScaledSteps<Part::kSteps>;
    const int first = at.unit * Part::kSteps + at.step / kScaled * kScaled;
    return {Part::store(x + page * 4 * kXColumnBytes, within, v, down, is_there),
            page / 4 + first * 4 + at.strip * 2, kSharingLanes<kColumns>};
  }

  /// Adds them up, and puts the sums down in `sums`: the third digit's part, and the rest, which may exceed what two digits
  /// hold. Collective; `is_there`: has the lane put anything down? kWhole: do all lanes share a scale?
  template <bool kWhole>
  static SOLITON_DEVICE void put_sum(int32_t* sums, InputSum own, int lane, bool is_there) {
    if constexpr (!kHoldsSums) return;
    int32_t all = own.numbers;
    if constexpr (kWhole) {
      all = warp_sum(all);
    } else {
      SOLITON_UNROLL
      for (int mask = 1; mask < kWarpLanes; mask *= 2) {
        const int32_t other = shuffle_xor(all, mask);
        if (mask < own.lanes) all += other;
      }
    }
    constexpr int kShift = 2 * kDigitBits;
    const int32_t high = (all + (1 << (kShift - 1))) >> kShift;
    if (is_there && lane % own.lanes == 0) {
      store_shared(reinterpret_cast<uint2*>(sums + own.place),
                   make_uint2(static_cast<uint32_t>(all - (high << kShift)), static_cast<uint32_t>(high)));
    }
  }

  /// The sum of x in some steps: what a lane has of it, of the two digits whose products it has.
  template <int kCount, class X>
  static SOLITON_DEVICE int32_t sum_steps(const X& x) {
    constexpr uint32_t kOnes = 0x01010101u;
    int32_t inputs[4] = {};
    MmaBatch batch;
    SOLITON_UNROLL
    for (int step = 0; step < kCount; ++step)
      mma_u8_s8(inputs, make_uint4(kOnes, kOnes, kOnes, kOnes), x(step));
    batch.end();
    return inputs[0] + (1 << kDigitBits) * inputs[1];
  }

  /// Those of strip lane % 4 / 2, of two digits.
  template <int kWarps, int kColumns>
  static SOLITON_DEVICE void multiply(const GemvPage& at, Sums& sums) {
    using Part = IntegerPart<kWarps, kColumns>;
    constexpr int kHalves =
        kFormat.group < kStepColumns ? kStepColumns / kFormat.group : 1;  // groups of a step
    constexpr int kScaledSteps = Gemv::kScaledSteps<Part::kSteps>;
    constexpr int kDigit = 1 << kDigitBits;
    constexpr bool kNibbles = kFormat.bits() == 4;
    constexpr bool kSubtracts = kFormat.has_zeros || kFormat.symmetric_zero() != 0;
    static_assert(kHalves <= 2);
    constexpr float kUpperRows = kNibbles ? 1.0f / 16 : 1.0f;
    const int lane =
        static_cast<int>(static_cast<uint32_t>(at.lane) % kWarpLanes);  // small, as the compiler knows
    const bool second_strip = lane % 4 >= 2;
    float up = at.up;
    if (lane % 2 == 1) up *= kDigit * kDigit;
    SOLITON_UNROLL
    for (int own = 0; own < Part::kOwnUnits; ++own) {
      const int unit = at.warp * Part::kOwnUnits + own;
      const unsigned char* words = at.page + unit * Part::kSteps * kFormat.step_bytes();
      StepWords<kFormat> weights[Part::kSteps];
      uint2 x[Part::kSteps];
      SOLITON_UNROLL
      for (int step = 0; step < Part::kSteps; ++step)
        weights[step] = StepWords<kFormat>::load(words + step * kFormat.step_bytes(), lane);
      SOLITON_UNROLL
      for (int step = 0; step < Part::kSteps; step += Part::kPair) {
        const unsigned char* digits = at.x + Part::input_offset(own, step, lane);
        if constexpr (Part::kPair == 2) {
          const uint4 two = load_shared(reinterpret_cast<const uint4*>(digits));
          x[step] = make_uint2(two.x, two.y);
          x[step + 1] = make_uint2(two.z, two.w);
        } else {
          x[step] = load_shared(reinterpret_cast<const uint2*>(digits));
        }
      }
      const int strip = unit * kStrips + (second_strip ? 1 : 0);
      const BlockScales<kFormat> block(at.page, kColumns, lane, strip * Part::kSteps * kStepColumns);
      float scaled[2] = {};   // in blocks: of products by their groups' integers,
      int32_t below[2] = {};  // and of the input
      SOLITON_UNROLL
      for (int i = 0; i < Part::kSteps / kScaledSteps * kHalves; ++i) {
        const int first = i / kHalves * kScaledSteps;
        // Quads 0 and 1 have the first half of a step's columns.
        const bool is_own = kHalves == 1 || lane % 4 / 2 == i % kHalves;
        const auto own_x = [&](int step) { return is_own ? x[step] : make_uint2(0, 0); };
        const int group = (strip * Part::kSteps + first) * kHalves / kGroupSteps + i % kHalves;
        int32_t products[kStrips][4] = {};
        MmaBatch batch;
        SOLITON_UNROLL
        for (int step = first; step < first + kScaledSteps; ++step) {
          weights[step].multiply(0, products[0], own_x(step));
          weights[step].multiply(1, products[1], own_x(step));
        }
        batch.end();
        int32_t input = 0;
        if constexpr (kSumsInput) {
          if constexpr (kHalves > 1) {
            input = sum_steps<kScaledSteps>([&](int step) { return own_x(first + step); });
          } else {
            input = load_shared(at.input_sums + (own * Part::kSteps + first) * 4 + lane % 4);
          }
        }
        int32_t own_products[2];
        SOLITON_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int32_t first_product = products[0][2 * half] + kDigit * products[0][2 * half + 1];
          const int32_t second_product = products[1][2 * half] + kDigit * products[1][2 * half + 1];
          own_products[half] = second_strip ? second_product : first_product;
        }
        if constexpr (kNibbles) own_products[1] -= own_products[0];
        if constexpr (kFormat.block > 0) {
          const auto factors = block.factors(group);
          SOLITON_UNROLL
          for (int half = 0; half < 2; ++half) {
            int32_t product = own_products[half];
            if constexpr (kSubtracts)
              product -= kFormat.symmetric_zero() * (kNibbles && half == 1 ? 16 * input : input);
            if constexpr (kFormat.has_minima) {
              product += kFormat.bias() * kFormat.unit() * input;
              below[half] += factors.minimum[half] * input;
            }
            scaled[half] += factors.scale[half] * static_cast<float>(product);
          }
        } else {
          const RowScales scales = block.of(group);
          SOLITON_UNROLL
          for (int half = 0; half < 2; ++half) {
            int32_t product = own_products[half];
            if constexpr (kSubtracts)
              product -= scales.zero[half] * (kNibbles && half == 1 ? 16 * input : input);
            if constexpr (kFormat.has_minima) product += kFormat.bias() * kFormat.unit() * input;
            sums.value[half] +=
                scales.scale[half] * (half == 0 ? up : up * kUpperRows) * static_cast<float>(product);
            if constexpr (kFormat.has_minima)
              sums.value[half] -= scales.minimum[half] * up * static_cast<float>(input);
          }
        }
      }
      if constexpr (kFormat.block > 0) {
        SOLITON_UNROLL
        for (int half = 0; half < 2; ++half) {
          sums.value[half] += block.scale(half) * (half == 0 ? up : up * kUpperRows) * scaled[half];
          if constexpr (kFormat.has_minima)
            sums.value[half] -= block.minimum(half) * up * static_cast<float>(below[half]);
        }
      }
    }
  }
};

}  // namespace soliton
