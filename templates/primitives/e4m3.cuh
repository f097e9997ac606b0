// E4M3 (layout/e4m3.h) from and to f16, several at a time: by the card's own conversions from compute capability 8.9 on, before
// that, and in emulation, by integer instructions. To f16 is exact; from f16 rounds as float_to_e4m3().
#pragma once

#include "layout/e4m3.h"
#include "primitives/primitives.h"

namespace soliton {

#if !defined(SOLITON_SM_89)
/// Two E4M3 that stand in the upper bytes of two halves. Where f16 has exponent and mantissa they are 2^-8 times what they
/// mean, also without a leading 1.
SOLITON_DEVICE uint32_t upper_e4m3_to_f16(uint32_t two) {
  constexpr uint32_t kSigns = 0x80008000u, kMagnitudes = 0x3f803f80u, k256 = 0x5c005c00u;
  return multiply_f16(and_or(two, kSigns, two >> 1 & kMagnitudes), k256);
}
/// Bytes 0 and 1, or 2 and 3, of a word to the upper bytes of two halves, with 0 below.
constexpr uint32_t kLowerToHalves = 0x1404;
constexpr uint32_t kUpperToHalves = 0x3424;
#endif

/// The two lower bytes, none of which is NaN, as f16: the first in the lower half.
SOLITON_DEVICE uint32_t two_e4m3_to_f16(uint32_t two) {
#if defined(SOLITON_SM_89)
  return convert_e4m3_to_f16(two);
#else
  return upper_e4m3_to_f16(choose_bytes(two, 0, kLowerToHalves));
#endif
}

/// Four, the first two in x.
SOLITON_DEVICE uint2 four_e4m3_to_f16(uint32_t four) {
#if defined(SOLITON_SM_89)
  return make_uint2(convert_e4m3_to_f16(four), convert_e4m3_to_f16(four >> 16));
#else
  return make_uint2(upper_e4m3_to_f16(choose_bytes(four, 0, kLowerToHalves)),
                    upper_e4m3_to_f16(choose_bytes(four, 0, kUpperToHalves)));
#endif
}

/// Two f16 as the two lower bytes; the others are 0.
SOLITON_DEVICE uint32_t two_f16_to_e4m3(uint32_t two) {
#if defined(SOLITON_SM_89)
  return convert_f16_to_e4m3(two);
#else
  return float_to_e4m3(f16_to_float(static_cast<uint16_t>(two))) |
         float_to_e4m3(f16_to_float(static_cast<uint16_t>(two >> 16))) << 8;
#endif
}

}  // namespace soliton
