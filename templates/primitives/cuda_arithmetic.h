// The primitives' arithmetic and conversions on an NVIDIA GPU, a part of cuda.h.
#pragma once

namespace soliton {

SOLITON_DEVICE float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
/// Of a NaN and a number the number.
SOLITON_DEVICE float larger_of(float a, float b) {
  return fmaxf(a, b);
}
/// Of a NaN and a number a NaN.
SOLITON_DEVICE float larger_or_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
SOLITON_DEVICE float log2_fast(float x) {
  return __log2f(x);
}
SOLITON_DEVICE float exp_fast(float x) {
  return __expf(x);
}
/// To two units in the last place; 0 where b is 2^126 or more.
SOLITON_DEVICE float divide_fast(float a, float b) {
  return __fdividef(a, b);
}
SOLITON_DEVICE float rsqrt_fast(float x) {
  return rsqrtf(x);
}

SOLITON_DEVICE int count_bits(uint32_t value) {
  return __popc(value);
}

SOLITON_DEVICE uint32_t pack_bf16(float low, float high) {
  uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
SOLITON_DEVICE uint32_t subtract_bf16(uint32_t a, uint32_t b) {
  uint32_t result;
#if defined(SOLITON_SM_90)
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
#else
  constexpr uint32_t kMinusOnes = 0xbf80bf80u;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(b), "r"(kMinusOnes), "r"(a));
#endif
  return result;
}
SOLITON_DEVICE uint32_t multiply_bf16(uint32_t a, uint32_t b) {
  uint32_t result;
#if defined(SOLITON_SM_90)
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
#else
  constexpr uint32_t kMinusZeros = 0x80008000u;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(kMinusZeros));
#endif
  return result;
}
SOLITON_DEVICE uint32_t fma_bf16(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
SOLITON_DEVICE float bf16_to_float(uint16_t value) {
  return __uint_as_float(static_cast<uint32_t>(value) << 16);
}
SOLITON_DEVICE uint16_t float_to_bf16(float value) {
  return static_cast<uint16_t>(pack_bf16(value, 0.0f));
}
SOLITON_DEVICE uint32_t pack_f16(float low, float high) {
  uint32_t result;
  asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
SOLITON_DEVICE float f16_to_float(uint16_t value) {
  return __half2float(__ushort_as_half(value));
}
SOLITON_DEVICE uint16_t float_to_f16(float value) {
  return static_cast<uint16_t>(pack_f16(value, 0.0f));
}
SOLITON_DEVICE uint32_t multiply_f16(uint32_t a, uint32_t b) {
  uint32_t result;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
#if defined(SOLITON_SM_89)
SOLITON_DEVICE uint32_t convert_e4m3_to_f16(uint32_t two) {
  uint32_t result;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(result) : "h"(static_cast<uint16_t>(two)));
  return result;
}
SOLITON_DEVICE uint32_t convert_f16_to_e4m3(uint32_t two) {
  uint16_t result;
  asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(result) : "r"(two));
  return result;
}
#endif
SOLITON_DEVICE uint32_t and_or(uint32_t a, uint32_t mask, uint32_t bits) {
  uint32_t result;  // the compiler by itself takes two instructions
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
  return result;
}
SOLITON_DEVICE uint32_t choose_bytes(uint32_t low, uint32_t high, uint32_t choice) {
  return __byte_perm(low, high, choice);
}
SOLITON_DEVICE uint32_t float_bits(float value) {
  return __float_as_uint(value);
}
SOLITON_DEVICE float float_from_bits(uint32_t bits) {
  return __uint_as_float(bits);
}

}  // namespace soliton
