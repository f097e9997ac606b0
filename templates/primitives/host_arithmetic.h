// The primitives' arithmetic and conversions on the host, a part of host.h.
#pragma once

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "layout/f16.h"

namespace soliton {

inline float exp2_fast(float x) {
  return std::exp2(x);
}
inline float larger_of(float a, float b) {
  return std::fmax(a, b);
}
inline float larger_or_nan(float a, float b) {
  return a > b || a != a ? a : b;
}
inline float log2_fast(float x) {
  return std::log2(x);
}
inline float divide_fast(float a, float b) {
  return a / b;
}
inline float exp_fast(float x) {
  return std::exp(x);
}
inline float rsqrt_fast(float x) {
  return 1.0f / std::sqrt(x);
}

inline int count_bits(uint32_t value) {
  return std::popcount(value);
}

inline uint32_t time_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// The emulator draws who runs next: there is no order that a delay would bring about.
inline void sleep_ns(uint32_t /*ns*/) {}

inline uint32_t float_bits(float value) {
  return std::bit_cast<uint32_t>(value);
}
inline float float_from_bits(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

inline uint32_t and_or(uint32_t a, uint32_t mask, uint32_t bits) {
  return (a & mask) | bits;
}
inline uint32_t choose_bytes(uint32_t low, uint32_t high, uint32_t choice) {
  const uint64_t bytes = static_cast<uint64_t>(high) << 32 | low;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t from = choice >> 4 * i & 7;
    result |= static_cast<uint32_t>(bytes >> 8 * from & 0xff) << 8 * i;
  }
  return result;
}

inline float bf16_to_float(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

/// Rounds to nearest even; NaN stays NaN.
inline uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline uint32_t pack_bf16(float low, float high) {
  return float_to_bf16(low) | static_cast<uint32_t>(float_to_bf16(high)) << 16;
}

inline uint32_t subtract_bf16(uint32_t a, uint32_t b) {
  const auto low = static_cast<uint16_t>(a);
  const auto high = static_cast<uint16_t>(a >> 16);
  return pack_bf16(bf16_to_float(low) - bf16_to_float(static_cast<uint16_t>(b)),
                   bf16_to_float(high) - bf16_to_float(static_cast<uint16_t>(b >> 16)));
}

inline uint32_t multiply_bf16(uint32_t a, uint32_t b) {
  const auto low = static_cast<uint16_t>(a);
  const auto high = static_cast<uint16_t>(a >> 16);
  return pack_bf16(bf16_to_float(low) * bf16_to_float(static_cast<uint16_t>(b)),
                   bf16_to_float(high) * bf16_to_float(static_cast<uint16_t>(b >> 16)));
}

inline uint32_t fma_bf16(uint32_t a, uint32_t b, uint32_t c) {
  const auto fma = [](uint32_t x, uint32_t y, uint32_t z) {
    return std::fma(bf16_to_float(static_cast<uint16_t>(x)), bf16_to_float(static_cast<uint16_t>(y)),
                    bf16_to_float(static_cast<uint16_t>(z)));
  };
  return pack_bf16(fma(a, b, c), fma(a >> 16, b >> 16, c >> 16));
}

/// By hand, because without an instruction for it a conversion is a call of the compiler's library.
inline float f16_to_float(uint16_t value) {
  constexpr float kExponents = 0x1p112f;  // between the least of f16 and of float
  const uint32_t magnitude = (value & 0x7fffu) << 13;
  const bool finite = (value & 0x7c00) != 0x7c00;
  const uint32_t bits =
      finite ? std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * kExponents) : magnitude | 0x7f800000;
  return std::bit_cast<float>(bits | (value & 0x8000u) << 16);
}

inline uint16_t float_to_f16(float value) {
  constexpr float kLargest = 65504.0f;
  constexpr uint16_t kNan = 0x7fff;
  if (std::isnan(value)) return kNan;
  if (value > kLargest) value = kLargest;
  if (value < -kLargest) value = -kLargest;
  return std::bit_cast<uint16_t>(static_cast<F16>(value));
}

inline uint32_t pack_f16(float low, float high) {
  return float_to_f16(low) | static_cast<uint32_t>(float_to_f16(high)) << 16;
}

inline uint32_t multiply_f16(uint32_t a, uint32_t b) {
  const auto low = static_cast<uint16_t>(a);
  const auto high = static_cast<uint16_t>(a >> 16);
  return pack_f16(f16_to_float(low) * f16_to_float(static_cast<uint16_t>(b)),
                  f16_to_float(high) * f16_to_float(static_cast<uint16_t>(b >> 16)));
}

}  // namespace soliton
