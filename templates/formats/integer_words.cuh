// A lane's words of weights that are integers, or bytes of E4M3, as operands of mma: as they stand, or as bf16.
//
// Bytes of 8 bits are multiplied as they stand; those of 5 and 6 bits are put together of two parts. Of 4 bits the bytes of
// `word & 0x0f0f0f0f` are four weights of row g; those of `word` are that and 16 times four weights of row g + 8. Both are
// multiplied as they are, and the difference of the sums is 16 times that of row g + 8: 8 weights cost one mask. For one row the
// four words that a load brings are an operand as they stand, rows g + 8 of which are the second strip's, and their masks another: in
// one operand a word would have to be copied beside its mask.
#pragma once

#include "formats/e4m3_pairs.cuh"
#include "layout/weight_format.h"
#include "primitives/primitives.h"

namespace soliton {

constexpr uint32_t kLowerIntegers = 0x0f0f0f0fu;

/// Word `index` of a strip of 4 bits, of a lane's four of a step.
SOLITON_DEVICE uint32_t word_of_strip(const uint4& both, int strip, int index) {
  return strip == 0 ? (index == 0 ? both.x : both.z) : (index == 0 ? both.y : both.w);
}

/// A operand of one strip of a step: rows g of the product get row g's sum, rows g + 8 get 16 times their own.
SOLITON_DEVICE uint4 divide_integers(const uint4& both, int strip) {
  const uint32_t first = word_of_strip(both, strip, 0);
  const uint32_t second = word_of_strip(both, strip, 1);
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

/// Bytes 0 and 2, signed integers, as bf16 side by side, exactly.
SOLITON_DEVICE uint32_t signed_bytes_to_bf16(uint32_t bytes) {
  // The seven lower bits count from 128 on, of a bf16 whose last bit counts 1; less 128, or 256 if the integer is negative.
  constexpr uint32_t k128 = 0x43004300u;
  return subtract_bf16(and_or(bytes, 0x007f007fu, k128), and_or(bytes, 0x00800080u, k128));
}

/// Of integers of 8 bits out of a word of row g and one of row g + 8, which have no zeros.
SOLITON_DEVICE uint4 bytes_to_bf16(uint32_t lower, uint32_t upper) {
  return make_uint4(signed_bytes_to_bf16(lower), signed_bytes_to_bf16(upper),
                    signed_bytes_to_bf16(lower >> 8), signed_bytes_to_bf16(upper >> 8));
}

/// A operand of codes in E4M3 out of a word of row g and one of row g + 8, 2^-120 times as large.
SOLITON_DEVICE uint4 spread_e4m3(uint32_t lower, uint32_t upper) {
  return make_uint4(first_e4m3(lower), first_e4m3(upper), second_e4m3(lower), second_e4m3(upper));
}

/// What a lane's mma add up of both strips of a unit: of 4 bits by the masked words and by the words as they stand, else strip by
/// strip.
template <WeightFormat kFormat>
struct StripProducts {
  int32_t sums[2][4] = {};

  /// By the first or second (`column`) of a lane's digits of a strip's x, kFormat.unit() times as large, of row g or (`half`)
  /// g + 8; of 4 bits what rows g + 8 have is 16 times their own and what rows g have.
  SOLITON_DEVICE int32_t of(int strip, int half, int column) const {
    return kFormat.bits() == 4 ? sums[half][2 * strip + column] : sums[strip][2 * half + column];
  }
};

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

  /// Adds the products of both strips' 32 columns by x, of which each strip has its own columns of B.
  SOLITON_DEVICE void multiply(StripProducts<kFormat>& products, uint2 x) const {
    if constexpr (kBits == 4) {
      const uint4 words = loads[0];
      const uint4 lower = make_uint4(words.x & kLowerIntegers, words.y & kLowerIntegers,
                                     words.z & kLowerIntegers, words.w & kLowerIntegers);
      mma_u8_s8(products.sums[0], lower, x);
      mma_u8_s8(products.sums[1], words, x);
    } else {
      mma_s8_s8(products.sums[0], bytes(0), x);
      mma_s8_s8(products.sums[1], bytes(1), x);
    }
  }

  /// Operand A of a strip's 32 columns of 4 bits, where rows g + 8 get 16 times their own sum.
  SOLITON_DEVICE uint4 divided(int strip) const {
    static_assert(kBits == 4);
    return divide_integers(loads[0], strip);
  }

  /// The same as they stand; of formats with minima without a sign, as a checkpoint's values begin with 0.
  SOLITON_DEVICE uint4 operand(int strip) const {
    if constexpr (kBits == 4) {
      return divided(strip);
    } else {
      constexpr uint32_t kSigns = kFormat.has_minima ? 0x80808080u : 0;
      const uint4 own = bytes(strip);
      return make_uint4(own.x ^ kSigns, own.y ^ kSigns, own.z ^ kSigns, own.w ^ kSigns);
    }
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

  /// The same of 5 and 6 bits as large as they are; of formats with minima as a checkpoint's values, which begin with 0.
  SOLITON_DEVICE uint4 whole_to_bf16(int strip, int half) const {
    static_assert(kLowBits > 0);
    constexpr uint32_t k128 = 0x43434343u;  // the upper bytes of bf16 whose last bits count 1
    constexpr uint32_t kLess = (0x4300u + (kFormat.has_minima ? 0 : kFormat.bias())) * 0x00010001u;
    const auto pair = [](uint32_t bytes, uint32_t choice) {
      return subtract_bf16(choose_bytes(bytes, k128, choice), kLess);
    };
    const uint32_t lower = whole(strip, 2 * half);
    const uint32_t upper = whole(strip, 2 * half + 1);
    return make_uint4(pair(lower, 0x4240), pair(upper, 0x4240), pair(lower, 0x4341), pair(upper, 0x4341));
  }

  /// Of E4M3, 2^-120 times as large as to_bf16().
  SOLITON_DEVICE uint4 codes(int strip, int half) const {
    static_assert(kFormat.type == WeightType::kE4m3);
    const uint4 own = loads[strip];
    return half == 0 ? spread_e4m3(own.x, own.y) : spread_e4m3(own.z, own.w);
  }

 private:
  SOLITON_DEVICE uint32_t nibbles(int strip, int index) const {
    return word_of_strip(loads[0], strip, index);
  }
  /// Operand A, signed.
  SOLITON_DEVICE uint4 bytes(int strip) const {
    if constexpr (kLowBits == 0) {
      return loads[strip];
    } else {
      return make_uint4(joined(strip, 0), joined(strip, 1), joined(strip, 2), joined(strip, 3));
    }
  }
  /// Of a register bytes as a checkpoint has them.
  SOLITON_DEVICE uint32_t whole(int strip, int reg) const {
    constexpr uint32_t kBytes = 0x01010101u;
    constexpr uint32_t kUpper = kBytes * (0xf << kLowBits);
    constexpr uint32_t kFirst = kBytes << (kBits - 1);
    constexpr uint32_t kLower = kBytes * ((1 << kLowBits) - 1);
    const uint32_t four = nibbles(strip, reg / 2);
    const uint32_t upper = ((reg % 2 == 0 ? four << kLowBits : four >> (4 - kLowBits)) & kUpper) ^ kFirst;
    const int place = kLowBits == 1 ? strip * 4 + reg : reg * 2;
    return and_or(low[kLowBits == 2 ? strip : 0] >> place, kLower, upper);
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

}  // namespace soliton
