// E4M3 (sign, four bits of exponent, three of mantissa; 448 at most, no infinity) as bf16, which holds it exactly, in integer
// instructions that every card has.
//
// A pair of codes in the 16 bits of a bf16: the first where bf16 has sign, the last four bits of its exponent and the first
// three of its mantissa; the second in the bits between.
//
//   bit     15    14..12          11    10..4            3..0
//           sign  exponent        sign  exponent and     exponent and
//           (1st) (2nd, first 3)  (2nd) mantissa (1st)   mantissa (2nd, the last 4 of 7 bits)
//
// Read as bf16, whose exponents are by 120 higher, a code stands for 2^-120 times its value, subnormal ones too.
#pragma once

#include "primitives/primitives.h"

namespace soliton {

constexpr float kE4m3Unit = 0x1p120f;  // times a code read as bf16 is its value
/// So many times as large activations are, where codes stay as they are: products stay in the range of floats.
constexpr float kE4m3InputScale = 0x1p64f;

/// A word of two pairs, in either half: the firsts, and the seconds, as two bf16 that are 2^-120 times as large.
SOLITON_DEVICE uint32_t first_e4m3(uint32_t word) {
  return word & 0x87f087f0u;
}
SOLITON_DEVICE uint32_t second_e4m3(uint32_t word) {
  return and_or(word >> 4, 0x07000700u, word << 4 & 0x80f080f0u);
}

/// Two bf16 that are 2^-120 times as large, as they should be.
SOLITON_DEVICE uint32_t unscaled_e4m3(uint32_t pair) {
  constexpr uint32_t kUnits = 0x7b807b80u;  // kE4m3Unit twice
  return multiply_bf16(pair, kUnits);
}

}  // namespace soliton
