// Products with weights that are integers, see layout/weight_format.h.
//
// All sums are of integers, and exact. Bytes of 8 bits are multiplied as they stand; those of 5 and 6 bits are put together of
// two parts. Of 4 bits the bytes of `word &
// 0x0f0f0f0f` are four weights of row g; those of `word` are that and 16 times four weights of row g + 8. Both are multiplied
// as they are, and the difference of the sums is 16 times that of row g + 8: 8 weights cost one mask.
//
// x is rounded to 23 bits relative to the greatest magnitude of a warp's slice, and these are written as three
// signed digits of 8 bits: three columns of the mma's B operand, a fourth being 0. The two strips of a unit are
// its two halves: an mma multiplies the weights of one strip by x of both, and of the sums only the half that
// belongs to the strip is wanted. So a register of x serves two mma; lane l = 4 g + j ends up with two digits'
// sums for strip j / 2 of rows g and g + 8; and only has to know that strip's scales.
#pragma once

#include <type_traits>

#include "formats/digits.cuh"
#include "formats/e4m3_pairs.cuh"
#include "formats/gemv.cuh"
#include "ops/split.cuh"

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

  /// Puts the digits of 4 columns of x, scaled by `down`, where they are multiplied.
  static SOLITON_DEVICE void store(unsigned char* part, int group, float4 v, float down) {
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
      store_shared(reinterpret_cast<uint32_t*>(part + input_offset(at.unit, at.step, lane) + at.word * 4),
                   digits[digit]);
    }
  }

 private:
  using Numbers = DigitNumbers<3>;
};

constexpr uint32_t kLowerIntegers = 0x0f0f0f0fu;

/// A operand of one strip and step out of its two words: rows g of the product get row g's sum, rows g + 8 the sum
/// of both.
SOLITON_DEVICE uint4 spread_integers(uint32_t first, uint32_t second) {
  return make_uint4(first & kLowerIntegers, first, second & kLowerIntegers, second);
}

/// The same where rows g + 8 get 16 times their own sum.
SOLITON_DEVICE uint4 divide_integers(uint32_t first, uint32_t second) {
  return make_uint4(first & kLowerIntegers, first & ~kLowerIntegers, second & kLowerIntegers,
                    second & ~kLowerIntegers);
}

/// A operand of the mma of 16 columns, in bf16, out of a word: integers less their rows' zeros, exactly. Columns are
/// in the order in which a lane has x: neighbours side by side.
SOLITON_DEVICE uint4 spread_to_bf16(uint32_t word, const int32_t (&zeros)[2]) {
  constexpr uint32_t kIntegers = 0x000f000fu;
  constexpr uint32_t k128 = 0x43004300u;  // two bf16 whose last bits count 1
  const uint32_t lower = k128 + static_cast<uint32_t>(zeros[0]) * 0x00010001u;
  const uint32_t upper = k128 + static_cast<uint32_t>(zeros[1]) * 0x00010001u;
  return make_uint4(subtract_bf16(and_or(word, kIntegers, k128), lower),
                    subtract_bf16(and_or(word >> 4, kIntegers, k128), upper),
                    subtract_bf16(and_or(word >> 8, kIntegers, k128), lower),
                    subtract_bf16(and_or(word >> 12, kIntegers, k128), upper));
}

/// The same times the rows' scales, two bf16 each, and rounded to bf16.
SOLITON_DEVICE uint4 scale_to_bf16(uint32_t word, const int32_t (&zeros)[2], const uint32_t (&scales)[2]) {
  const uint4 differences = spread_to_bf16(word, zeros);
  return make_uint4(multiply_bf16(differences.x, scales[0]), multiply_bf16(differences.y, scales[1]),
                    multiply_bf16(differences.z, scales[0]), multiply_bf16(differences.w, scales[1]));
}

/// The same of integers of 8 bits out of a word of row g and one of row g + 8, which have no zeros.
SOLITON_DEVICE uint4 bytes_to_bf16(uint32_t lower, uint32_t upper) {
  // The seven lower bits count from 128 on, of a bf16 whose last bit counts 1; less 128, or 256 if the integer is negative.
  constexpr uint32_t k128 = 0x43004300u;
  const auto pair = [](uint32_t bytes) {
    return subtract_bf16(and_or(bytes, 0x007f007fu, k128), and_or(bytes, 0x00800080u, k128));
  };
  return make_uint4(pair(lower), pair(upper), pair(lower >> 8), pair(upper >> 8));
}

/// A operand of codes in E4M3 out of a word of row g and one of row g + 8, 2^-120 times as large.
SOLITON_DEVICE uint4 spread_e4m3(uint32_t lower, uint32_t upper) {
  return make_uint4(first_e4m3(lower), first_e4m3(upper), second_e4m3(lower), second_e4m3(upper));
}

/// What a lane has of one step of both strips of a unit: of register r of a strip's operand A the four bytes of word(strip, r).
template <WeightFormat kFormat>
struct StepWords {
  static constexpr int kBits = kFormat.bits();
  static constexpr int kLowBits =
      kBits == 4 || kBits == 8 ? 0 : kBits - 4;  // behind the words of the upper four
  static constexpr int kLoads = kBits == 8 ? kStrips : 1;
  static constexpr int kLoadBytes = kWarpLanes * 16;
  static_assert(kFormat.step_bytes() == kLoads * kLoadBytes + kLowBits * kWarpLanes * 4);

  uint4 loads[kLoads];
  uint32_t low[kLowBits == 0 ? 1 : kLowBits];

  /// `step`: where it begins in a page.
  SOLITON_DEVICE static StepWords load(const unsigned char* step, int lane) {
    StepWords words;
    SOLITON_UNROLL
    for (int i = 0; i < kLoads; ++i)
      words.loads[i] = load_shared(reinterpret_cast<const uint4*>(step) + i * kWarpLanes + lane);
    if constexpr (kLowBits == 1) {
      words.low[0] = load_shared(reinterpret_cast<const uint32_t*>(step + kLoadBytes) + lane);
    } else if constexpr (kLowBits == 2) {
      const uint2 both = load_shared(reinterpret_cast<const uint2*>(step + kLoadBytes) + lane);
      words.low[0] = both.x;
      words.low[1] = both.y;
    }
    return words;
  }

  /// Adds the products of a strip's 32 columns, kFormat.unit() times as large; of 4 bits those of rows g + 8 are 16 times these,
  /// and those of rows g.
  SOLITON_DEVICE void multiply(int strip, int32_t (&products)[4], uint2 x) const {
    if constexpr (kBits == 4) {
      mma_u8_s8(products, spread_integers(nibbles(strip, 0), nibbles(strip, 1)), x);
    } else {
      mma_s8_s8(products, bytes(strip), x);
    }
  }

  /// Operand A of a strip's 32 columns of 4 bits, where rows g + 8 get 16 times their own sum.
  SOLITON_DEVICE uint4 divided(int strip) const {
    static_assert(kBits == 4);
    return divide_integers(nibbles(strip, 0), nibbles(strip, 1));
  }

  /// A operand of the mma of columns 8 j + 4 `half` .. + 3 of a strip's step, in bf16: integers less their rows' zeros, exactly,
  /// kFormat.unit() times as large. Columns are in the order in which a lane has x: neighbours side by side.
  SOLITON_DEVICE uint4 to_bf16(int strip, int half, const int32_t (&zeros)[2]) const {
    if constexpr (kFormat.type == WeightType::kE4m3) {
      const uint4 own = codes(strip, half);
      return make_uint4(unscaled_e4m3(own.x), unscaled_e4m3(own.y), unscaled_e4m3(own.z),
                        unscaled_e4m3(own.w));
    } else if constexpr (kBits == 4) {
      return spread_to_bf16(nibbles(strip, half), zeros);
    } else {
      const uint4 own = bytes(strip);
      return half == 0 ? bytes_to_bf16(own.x, own.y) : bytes_to_bf16(own.z, own.w);
    }
  }

  /// The same times the rows' scales, of which `scales` has scale_pair(), and rounded to bf16.
  SOLITON_DEVICE uint4 to_scaled_bf16(int strip, int half, const int32_t (&zeros)[2],
                                      const uint32_t (&scales)[2]) const {
    uint4 own;
    if constexpr (kFormat.type == WeightType::kE4m3) {
      own = codes(strip, half);
    } else {
      own = to_bf16(strip, half, zeros);
    }
    return make_uint4(multiply_bf16(own.x, scales[0]), multiply_bf16(own.y, scales[1]),
                      multiply_bf16(own.z, scales[0]), multiply_bf16(own.w, scales[1]));
  }

  /// A scale as two bf16; of E4M3 2^120 times as large: kMostE4m3Scale.
  SOLITON_DEVICE static uint32_t scale_pair(float scale) {
    if constexpr (kFormat.type == WeightType::kE4m3) scale *= kE4m3Unit;
    return pack_bf16(scale, scale);
  }

  /// Of E4M3, 2^-120 times as large as to_bf16().
  SOLITON_DEVICE uint4 codes(int strip, int half) const {
    static_assert(kFormat.type == WeightType::kE4m3);
    const uint4 own = loads[strip];
    return half == 0 ? spread_e4m3(own.x, own.y) : spread_e4m3(own.z, own.w);
  }

 private:
  SOLITON_DEVICE uint32_t nibbles(int strip, int index) const {
    const uint4 both = loads[0];
    return strip == 0 ? (index == 0 ? both.x : both.y) : (index == 0 ? both.z : both.w);
  }
  /// Operand A, signed.
  SOLITON_DEVICE uint4 bytes(int strip) const {
    if constexpr (kLowBits == 0) {
      return loads[strip];
    } else {
      return make_uint4(joined(strip, 0), joined(strip, 1), joined(strip, 2), joined(strip, 3));
    }
  }
  /// A register out of its upper four bits and what is behind them.
  SOLITON_DEVICE uint32_t joined(int strip, int reg) const {
    constexpr uint32_t kUpper = 0xf0f0f0f0u;
    constexpr uint32_t kLower = kLowBits == 1 ? 0x08080808u : 0x0c0c0c0cu;
    const uint32_t upper = nibbles(strip, reg / 2) << (reg % 2 == 0 ? 4 : 0) & kUpper;
    const int place =
        kLowBits == 1 ? strip * 4 + reg : reg * 2;  // of its lower bits, which go to bit 4 - kLowBits
    const int up = 4 - kLowBits - place;
    const uint32_t lower = kLowBits == 1 ? low[0] : low[kLowBits == 2 ? strip : 0];
    return and_or(up >= 0 ? lower << up : lower >> -up, kLower, upper);
  }
};

/// Scales, and zeros or minima, of rows lane / 4 and lane / 4 + 8 for one group.
struct RowScales {
  float scale[2];  // of values kFormat.unit() times as large
  int32_t zero[2];
  float minimum[2];
};

/// The same as they stand, where scales are f16, or floats.
template <WeightFormat kFormat>
using ScaleWords = std::conditional_t<kFormat.group_words() == 2, uint2, uint32_t>;

/// `words`: where those of row lane / 4 stand.
template <WeightFormat kFormat>
SOLITON_DEVICE ScaleWords<kFormat> load_scale_words(const unsigned char* words) {
  return load_shared(reinterpret_cast<const ScaleWords<kFormat>*>(words));
}

template <WeightFormat kFormat>
SOLITON_DEVICE RowScales row_scales(ScaleWords<kFormat> rows) {
  static_assert(kFormat.block == 0);
  constexpr float kUnit = 1.0f / kFormat.unit();
  constexpr int32_t kZero = kFormat.symmetric_zero();
  if constexpr (kFormat.has_float_scales()) {
    return {{float_from_bits(rows.x), float_from_bits(rows.y)}, {kZero, kZero}, {}};
  } else if constexpr (kFormat.has_minima) {
    const float2 lower = unpack_f16(rows.x);
    const float2 upper = unpack_f16(rows.y);
    return {{lower.x * kUnit, upper.x * kUnit}, {kZero, kZero}, {lower.y, upper.y}};
  } else if constexpr (kFormat.has_zeros) {
    return {{f16_to_float(static_cast<uint16_t>(rows.x)), f16_to_float(static_cast<uint16_t>(rows.y))},
            {static_cast<int32_t>(rows.x >> 16), static_cast<int32_t>(rows.y >> 16)},
            {}};
  } else {
    const float2 scales = unpack_f16(rows);
    return {{scales.x * kUnit, scales.y * kUnit}, {kZero, kZero}, {}};
  }
}

/// What a lane knows of the scales of a block of columns, or of none.
template <WeightFormat kFormat>
class BlockScales {
 public:
  /// `column`: of the page, whose columns are `columns`.
  SOLITON_DEVICE BlockScales(const unsigned char* page, int columns, int lane, int column)
      : page_(page), columns_(columns), row_(lane / 4) {
    if constexpr (kFormat.block > 0) {
      const unsigned char* head = page + block_offset(kFormat, columns, row_, column / kFormat.block);
      constexpr float kUnit = 1.0f / kFormat.unit();
      if constexpr (kFormat.has_minima) {
        const uint2 words = load_shared(reinterpret_cast<const uint2*>(head));
        const float2 lower = unpack_f16(words.x);
        const float2 upper = unpack_f16(words.y);
        scale_[0] = lower.x * kUnit;
        scale_[1] = upper.x * kUnit;
        minimum_[0] = lower.y;
        minimum_[1] = upper.y;
      } else {
        const float2 scales = unpack_f16(load_shared(reinterpret_cast<const uint32_t*>(head)));
        scale_[0] = scales.x * kUnit;
        scale_[1] = scales.y * kUnit;
      }
    }
  }

  /// Of group `group` of the page.
  SOLITON_DEVICE RowScales of(int group) const {
    if constexpr (kFormat.block == 0) {
      return row_scales<kFormat>(load_scale_words<kFormat>(words(group)));
    } else {
      const Factors own = factors(group);
      return {{scale_[0] * own.scale[0], scale_[1] * own.scale[1]},
              {kZero, kZero},
              {minimum_[0] * static_cast<float>(own.minimum[0]),
               minimum_[1] * static_cast<float>(own.minimum[1])}};
    }
  }

  /// What a group of a block has by itself.
  struct Factors {
    float scale[2];
    int32_t minimum[2];
  };
  SOLITON_DEVICE Factors factors(int group) const {
    static_assert(kFormat.block > 0);
    if constexpr (kFormat.has_minima) {
      const uint32_t all = load_shared(reinterpret_cast<const uint32_t*>(words(group)));
      return {
          {static_cast<float>(static_cast<int8_t>(all)), static_cast<float>(static_cast<int8_t>(all >> 16))},
          {static_cast<int8_t>(all >> 8), static_cast<int8_t>(all >> 24)}};
    } else {
      const uint32_t both = load_shared(reinterpret_cast<const uint16_t*>(words(group)));
      return {
          {static_cast<float>(static_cast<int8_t>(both)), static_cast<float>(static_cast<int8_t>(both >> 8))},
          {}};
    }
  }
  SOLITON_DEVICE float scale(int half) const { return scale_[half]; }
  SOLITON_DEVICE float minimum(int half) const { return minimum_[half]; }

 private:
  static constexpr int32_t kZero = kFormat.symmetric_zero();

  SOLITON_DEVICE const unsigned char* words(int group) const {
    return page_ + scale_offset(kFormat, columns_, row_, group);
  }

  const unsigned char* page_;
  int columns_;
  int row_;
  float scale_[2] = {};  // of the block
  float minimum_[2] = {};
};

/// One row: x as three digits.
template <WeightFormat kFormat>
requires(kFormat.takes_digits()) struct Gemv<kFormat> {
  /// Of rows lane / 4 and lane / 4 + 8, in each lane of a quad those of some columns and digits.
  struct Sums {
    float value[2] = {};

    SOLITON_DEVICE float2 rows() const {
      float2 sum = make_float2(value[0], value[1]);
      for (int mask = 1; mask < 4; mask *= 2) {
        sum = make_float2(sum.x + shuffle_xor(sum.x, mask), sum.y + shuffle_xor(sum.y, mask));
      }
      return sum;
    }
  };

  template <int kWarps, int kColumns>
  static SOLITON_DEVICE int column(int begin, int warp, int group) {
    return begin + IntegerPart<kWarps, kColumns>::column(warp, group);
  }
  template <int kWarps, int kColumns>
  static SOLITON_DEVICE void store(unsigned char* x, int group, int within, float4 v, float down) {
    IntegerPart<kWarps, kColumns>::store(x + (group - within) * 4 * kXColumnBytes, within, v, down);
  }

  /// Those of strip lane % 4 / 2, of two digits.
  template <int kWarps, int kColumns>
  static SOLITON_DEVICE void multiply(const GemvPage& at, Sums& sums) {
    using Part = IntegerPart<kWarps, kColumns>;
    constexpr int kHalves =
        kFormat.group < kStepColumns ? kStepColumns / kFormat.group : 1;  // groups of a step
    constexpr int kGroupSteps = kHalves > 1 ? 1 : kFormat.group / kStepColumns;
    constexpr int kScaledSteps = Part::kSteps < kGroupSteps ? Part::kSteps : kGroupSteps;  // with one scale
    constexpr int kDigit = 1 << kDigitBits;
    constexpr bool kNibbles = kFormat.bits() == 4;
    constexpr bool kSubtracts = kFormat.has_zeros || kFormat.symmetric_zero() != 0;
    constexpr bool kSumsInput = kSubtracts || kFormat.has_minima;
    static_assert(kHalves <= 2);
    constexpr float kUpperRows = kNibbles ? 1.0f / 16 : 1.0f;
    constexpr uint32_t kOnes = 0x01010101u;
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
        SOLITON_UNROLL
        for (int step = first; step < first + kScaledSteps; ++step) {
          weights[step].multiply(0, products[0], own_x(step));
          weights[step].multiply(1, products[1], own_x(step));
        }
        int32_t input = 0;
        if constexpr (kSumsInput) {
          const auto sum = [&] {
            int32_t inputs[4] = {};
            SOLITON_UNROLL
            for (int step = first; step < first + kScaledSteps; ++step)
              mma_u8_s8(inputs, make_uint4(kOnes, kOnes, kOnes, kOnes), own_x(step));
            return inputs[0] + kDigit * inputs[1];
          };
          int32_t* input_sum = at.input_sums + (own * Part::kSteps + first) * 4 + lane % 4;
          if (kHalves > 1) {
            input = sum();
          } else if (at.is_first_tile) {
            input = sum();
            if (lane < 4) store_shared(input_sum, input);
          } else {
            input = load_shared(input_sum);
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
