// One row's products with weights that are integers, see layout/weight_format.h: how lanes have the weights is in
// formats/integer_words.cuh, and their scales in formats/integer_scales.cuh. All sums are of integers, and exact.
//
// x is rounded to 23 bits relative to the greatest magnitude of a warp's slice, and these are written as three
// signed digits of 8 bits: three columns of the mma's B operand, beside a fourth whose sums nobody reads. The two strips
// of a unit are its two halves: an mma multiplies weights of a strip by x of both, and of the sums only the half that
// belongs to the strip is wanted. So a register of x serves two mma; lane l = 4 g + j ends up with two digits'
// sums for strip j / 2 of rows g and g + 8, or one's, and only has to know that strip's scales.
#pragma once

#include "formats/integer_units.cuh"

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

  /// Byte offset in the warp's part of x of what lane `lane` multiplies step `step` of its unit `unit` with; for the columns of B
  /// that have no digit that is anything, the third's, and nobody reads their sums.
  static SOLITON_DEVICE int multiplied_offset(int unit, int step, int lane) {
    return input_offset(unit, step, lane / 4 % kDigits == kDigits - 1 ? lane - 4 : lane);
  }
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
    SOLITON_UNROLL
    for (int digit = 0; digit < 3; ++digit) {
      const int lane = (at.strip * kDigits + digit) * 4 + at.quad;
      uint32_t* place =
          reinterpret_cast<uint32_t*>(part + input_offset(at.unit, at.step, lane) + at.word * 4);
      if (is_there) store_shared(place, own[digit]);
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

  template <int kColumns>
  using Unit = IntegerUnit<kFormat, kColumns / kMinIntegerColumns>;  // of a page of so many columns
  /// Lanes that put down columns of one scale, of a page of `kColumns`.
  template <int kColumns>
  static constexpr int kSharingLanes = Unit<kColumns>::kScaledSteps*(kStepColumns / 4);
  /// Are sums of x, of all columns of a scale, worked out as x is put down?
  static constexpr bool kHoldsSums = Unit<kMinIntegerColumns>::kSumsInput && kFormat.group >= kStepColumns;

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
    constexpr int kScaled = Unit<kColumns>::kScaledSteps;
    const int first = at.unit * Part::kSteps + at.step / kScaled * kScaled;
    return {Part::store(x + page * 4 * kXColumnBytes, within, v, down, is_there),
            page / 4 + first * 4 + at.strip * 2, kSharingLanes<kColumns>};
  }

  /// Adds them up, of each load, and puts the sums down in `sums`. Collective; is_there(load): has the lane put anything down?
  /// kWhole: do all lanes share a scale?
  template <bool kWhole, int kLoads, class IsThere>
  static SOLITON_DEVICE void put_sums(int32_t* sums, const InputSum (&own)[kLoads], int lane,
                                      const IsThere& is_there) {
    if constexpr (!kHoldsSums) return;
    if constexpr (kWhole) {  // lane i has the i-th load's
      static_assert(kLoads <= kWarpLanes);
      int32_t all = 0;
      int place = 0;
      bool is_own = false;
      SOLITON_UNROLL
      for (int i = 0; i < kLoads; ++i) {
        const int32_t sum = warp_sum(own[i].numbers);
        if (lane != i) continue;
        all = sum;
        place = own[i].place;
        is_own = is_there(i);
      }
      if (is_own) put_sum(sums + place, all);
    } else {
      SOLITON_UNROLL
      for (int i = 0; i < kLoads; ++i) {
        int32_t all = own[i].numbers;
        SOLITON_UNROLL
        for (int mask = 1; mask < kWarpLanes; mask *= 2) {
          const int32_t other = shuffle_xor(all, mask);
          if (mask < own[i].lanes) all += other;
        }
        if (is_there(i) && lane % own[i].lanes == 0) put_sum(sums + own[i].place, all);
      }
    }
  }

  /// The sum of x in some steps: what a lane has of it, of the two digits whose products it has.
  template <int kCount, class X>
  static SOLITON_DEVICE int32_t sum_steps(const X& x, int lane) {
    constexpr uint32_t kOnes = 0x01010101u;
    int32_t inputs[4] = {};
    MmaBatch batch;
    SOLITON_UNROLL
    for (int step = 0; step < kCount; ++step)
      mma_u8_s8(inputs, make_uint4(kOnes, kOnes, kOnes, kOnes), x(step));
    batch.end();
    return inputs[0] + second_digit(lane) * inputs[1];
  }

  /// What the lane multiplies unit `own` of its warp's by.
  template <int kWarps, int kColumns>
  static SOLITON_DEVICE typename Unit<kColumns>::Input load_input(const GemvPage& at, int own) {
    using Part = IntegerPart<kWarps, kColumns>;
    using Own = Unit<kColumns>;
    const int lane = known_lane(at);
    typename Own::Input input;
    SOLITON_UNROLL
    for (int step = 0; step < Part::kSteps; step += Part::kPair) {
      const unsigned char* digits = at.x + Part::multiplied_offset(own, step, lane);
      if constexpr (Part::kPair == 2) {
        const uint4 two = load_shared(reinterpret_cast<const uint4*>(digits));
        input.x[step] = make_uint2(two.x, two.y);
        input.x[step + 1] = make_uint2(two.z, two.w);
      } else {
        input.x[step] = load_shared(reinterpret_cast<const uint2*>(digits));
      }
    }
    if constexpr (Own::kSumsInput) {
      SOLITON_UNROLL
      for (int group = 0; group < Own::kGroups; ++group) {
        const int first = Own::first_step(group);
        if constexpr (kHoldsSums) {
          input.sums[group] = load_shared(at.input_sums + (own * Part::kSteps + first) * 4 + lane % 4);
        } else {
          input.sums[group] = sum_steps<Own::kScaledSteps>(
              [&](int step) { return Own::own_x(input.x[first + step], group, lane); }, lane);
        }
      }
    }
    return input;
  }
  template <int kWarps, int kColumns>
  static SOLITON_DEVICE typename Unit<kColumns>::Weights load_weights(const GemvPage& at, int own) {
    using Own = Unit<kColumns>;
    constexpr int kSteps = kColumns / kMinIntegerColumns;
    const int lane = known_lane(at);
    const unsigned char* words = at.page + unit_of<kWarps>(at, own) * kSteps * kFormat.step_bytes();
    typename Own::Weights weights;
    SOLITON_UNROLL
    for (int step = 0; step < kSteps; ++step)
      weights.words[step] = StepWords<kFormat>::load(words + step * kFormat.step_bytes(), lane);
    if constexpr (kFormat.block == 0) {
      SOLITON_UNROLL
      for (int group = 0; group < Own::kGroups; ++group) {
        weights.scales[group] =
            load_scale_words<kFormat>(at.page + scale_offset(kFormat, kColumns, lane / 4,
                                                             first_group<kWarps, kColumns>(at, own) + group));
      }
    }
    return weights;
  }

  /// Those of strip lane % 4 / 2, of two digits.
  template <int kWarps, int kColumns>
  static SOLITON_DEVICE void multiply(const GemvPage& at, Sums& sums) {
    using Own = Unit<kColumns>;
    const int lane = known_lane(at);
    SOLITON_UNROLL
    for (int own = 0; own < IntegerPart<kWarps, kColumns>::kOwnUnits; ++own) {
      const auto input = load_input<kWarps, kColumns>(at, own);
      const auto products = Own::multiply(load_weights<kWarps, kColumns>(at, own), input, lane);
      if constexpr (kFormat.block > 0) {
        const BlockScales<kFormat> block(at.page, kColumns, lane,
                                         strip_of<kWarps>(at, own) * (kColumns / kUnits / kStrips));
        Own::add(products, input, lane, at.up, block, first_group<kWarps, kColumns>(at, own), sums);
      } else {
        Own::add(products, input, lane, at.up, sums);
      }
    }
  }

 private:
  /// The third digit's part, behind the rest, which may exceed what two digits hold.
  static SOLITON_DEVICE void put_sum(int32_t* to, int32_t sum) {
    constexpr int kShift = 2 * kDigitBits;
    const int32_t high = (sum + (1 << (kShift - 1))) >> kShift;
    store_shared(reinterpret_cast<uint2*>(to),
                 make_uint2(static_cast<uint32_t>(sum - (high << kShift)), static_cast<uint32_t>(high)));
  }
  /// Small, as the compiler knows.
  static SOLITON_DEVICE int known_lane(const GemvPage& at) {
    return static_cast<int>(static_cast<uint32_t>(at.lane) % kWarpLanes);
  }
  template <int kWarps>
  static SOLITON_DEVICE int unit_of(const GemvPage& at, int own) {
    return at.warp * (kUnits / kWarps) + own;
  }
  /// The strip that the lane adds up.
  template <int kWarps>
  static SOLITON_DEVICE int strip_of(const GemvPage& at, int own) {
    return unit_of<kWarps>(at, own) * kStrips + (known_lane(at) % 4 >= 2 ? 1 : 0);
  }
  /// Its first group of the page.
  template <int kWarps, int kColumns>
  static SOLITON_DEVICE int first_group(const GemvPage& at, int own) {
    constexpr int kStripColumns = kColumns / kUnits / kStrips;
    return strip_of<kWarps>(at, own) * kStripColumns / kFormat.group;
  }
};

}  // namespace soliton
