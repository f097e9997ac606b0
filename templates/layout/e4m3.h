// E4M3, a float of 8 bits: sign, 4 bits of exponent, 3 of mantissa, from 2^-9 to 448, without infinities. A cache of 8 bits
// holds keys and values in it, each key and each value (of a token and a KV head) with a power of two of its own.
//
// A value is rounded to f16, then to 4 significant bits. Powers are such that f16 has every value that results, so kernels
// may hold it as f16 too, and to round it again changes nothing.
#pragma once

#include <cstdint>

#include "layout/target.h"

namespace soliton {

constexpr float kE4m3Largest = 448.0f;
constexpr uint32_t kE4m3Nan = 0x7f;

/// Powers of two as they are stored: with the bias of a float's exponent. The smallest keeps multiples of 2^-24, f16's least.
constexpr int kLeastExponent = 127 - 15;
constexpr int kMostExponent = 127 + 7;

namespace e4m3 {

SOLITON_HOST_DEVICE constexpr uint32_t bits_of(float value) {
  return __builtin_bit_cast(uint32_t, value);
}
SOLITON_HOST_DEVICE constexpr float float_of(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

}  // namespace e4m3

/// The stored power of two for values up to `largest`, which is not negative: the least by which none exceeds kE4m3Largest.
SOLITON_HOST_DEVICE constexpr int e4m3_exponent(float largest) {
  constexpr uint32_t kAbove = 0x1fffff;  // what mantissas beyond that of 448, 1.75, carry into the exponent
  const int exponent = static_cast<int>((e4m3::bits_of(largest) + kAbove) >> 23) - 8;
  return exponent < kLeastExponent ? kLeastExponent : exponent > kMostExponent ? kMostExponent : exponent;
}

/// The power of two that is stored as `exponent`.
SOLITON_HOST_DEVICE constexpr float e4m3_scale(int exponent) {
  return e4m3::float_of(static_cast<uint32_t>(exponent) << 23);
}

/// The nearest E4M3, of two the even one; what is larger becomes the largest, and NaN stays NaN.
SOLITON_HOST_DEVICE constexpr uint32_t float_to_e4m3(float value) {
  constexpr float kUnits = 16384.0f;  // a float of this size has the least E4M3, 2^-9, in its last place
  constexpr uint32_t kNormal = (127 - 6) << 23;
  const uint32_t bits = e4m3::bits_of(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t code = 0;
  if (magnitude > 0x7f800000u) {
    code = kE4m3Nan;
  } else if (magnitude >= e4m3::bits_of(kE4m3Largest)) {
    code = kE4m3Nan - 1;
  } else if (magnitude < kNormal) {
    code = e4m3::bits_of(e4m3::float_of(magnitude) + kUnits) - e4m3::bits_of(kUnits);
  } else {
    const uint32_t rounded = magnitude + 0x7ffffu + (magnitude >> 20 & 1);
    code = (rounded >> 20) - ((127 - 7) << 3);
  }
  return code | (bits >> 24 & 0x80u);
}

SOLITON_HOST_DEVICE constexpr float e4m3_to_float(uint32_t code) {
  constexpr float kExponents = 0x1p120f;  // between the least of E4M3 and of float
  const uint32_t magnitude = (code & 0x7fu) << 20;
  const float value =
      (code & 0x7fu) == kE4m3Nan ? e4m3::float_of(0x7fc00000u) : e4m3::float_of(magnitude) * kExponents;
  return e4m3::float_of(e4m3::bits_of(value) | (code & 0x80u) << 24);
}

/// What a cache of 8 bits makes of a value that is an f16 already.
SOLITON_HOST_DEVICE constexpr float round_to_e4m3(float value, int exponent) {
  const float scale = e4m3_scale(exponent);
  return e4m3_to_float(float_to_e4m3(value * e4m3_scale(2 * 127 - exponent))) * scale;
}

}  // namespace soliton
