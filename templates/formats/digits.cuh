// Inputs as signed digits of 8 bits, by which weights that are integers are multiplied exactly: for formats that take digits
// (FormatTraits).
#pragma once

#include "primitives/primitives.h"

namespace soliton {

constexpr int kDigitBits = 8;

/// The bits of |value|: ordered as the magnitudes are.
SOLITON_DEVICE uint32_t magnitude(float value) {
  return float_bits(value) & 0x7fffffffu;
}
SOLITON_DEVICE uint32_t larger(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

/// Numbers that kCount signed digits hold: below 2^(kExponent + 1), plus kBias each digit plus 0x80.
template <int kCount>
struct DigitNumbers {
  static constexpr uint32_t kExponent = kCount * kDigitBits - 3;
  static constexpr uint32_t kBias = kCount == 3 ? 0x808080u : 0x8080u;
  static_assert(kCount == 2 || kCount == 3);

  /// The nearest integer to value * down plus kBias.
  static SOLITON_DEVICE uint32_t of(float value, float down) {
    constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to an integer
    return float_bits(value * down + kShift) - 0x4b400000u + kBias;
  }
  /// The digits of four numbers, each digit's in a word.
  static SOLITON_DEVICE void divide(const uint32_t (&numbers)[4], uint32_t (&digits)[kCount]) {
    constexpr uint32_t kByteBias = 0x80808080u;
    const uint32_t low[2] = {choose_bytes(numbers[0], numbers[1], 0x5140),
                             choose_bytes(numbers[2], numbers[3], 0x5140)};
    digits[0] = choose_bytes(low[0], low[1], 0x5410) ^ kByteBias;
    digits[1] = choose_bytes(low[0], low[1], 0x7632) ^ kByteBias;
    if constexpr (kCount == 3) {
      digits[2] = choose_bytes(choose_bytes(numbers[0], numbers[1], 0x0062),
                               choose_bytes(numbers[2], numbers[3], 0x0062), 0x5410) ^
                  kByteBias;
    }
  }
};

/// The power of two that takes a slice of x, of which `largest` is the greatest magnitude's bits, to integers
/// below 2^(kExponent + 1); and what takes products with them back.
struct InputScale {
  static constexpr uint32_t kBias = 127;
  static constexpr uint32_t kNotFinite = 255;
  static constexpr int kMantissaBits = 23;

  float down;  // to multiply x with
  float up;    // to multiply products with

  template <uint32_t kExponent>
  SOLITON_DEVICE static InputScale of(uint32_t largest) {
    constexpr uint32_t kLeast = kExponent + 1;  // smaller slices count as this, and are rounded to 0
    const uint32_t exponent = larger(largest >> kMantissaBits, kLeast);
    const float down = float_from_bits((2 * kBias + kExponent - exponent) << kMantissaBits);
    const float up = float_from_bits((exponent - kExponent) << kMantissaBits);
    return {down, exponent == kNotFinite ? float_from_bits(0x7fffffffu) : up};
  }
  /// Of a slice of which each lane of a warp has some groups of four values.
  template <uint32_t kExponent, int kCount>
  SOLITON_DEVICE static InputScale of_warp(const float4 (&x)[kCount]) {
    float largest = 0;
    SOLITON_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const float two = larger_or_nan(fabsf(x[i].x), fabsf(x[i].y));
      largest = larger_or_nan(largest, larger_or_nan(two, larger_or_nan(fabsf(x[i].z), fabsf(x[i].w))));
    }
    return of<kExponent>(warp_max(float_bits(largest)));
  }
};

}  // namespace soliton
