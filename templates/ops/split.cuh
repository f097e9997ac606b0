// Floats as pairs of 16-bit values: a high part, and a low part that is what the rounding of the first left out.
#pragma once

#include "primitives/primitives.h"

namespace soliton {

SOLITON_DEVICE float4 unpack_bf16(uint2 packed) {
  return make_float4(
      bf16_to_float(static_cast<uint16_t>(packed.x)), bf16_to_float(static_cast<uint16_t>(packed.x >> 16)),
      bf16_to_float(static_cast<uint16_t>(packed.y)), bf16_to_float(static_cast<uint16_t>(packed.y >> 16)));
}

/// Low-order part of a float whose high-order part is its rounding to bf16.
SOLITON_DEVICE float low_part(float value) {
  return value - bf16_to_float(float_to_bf16(value));
}

SOLITON_DEVICE uint2 pack_high(float4 v) {
  return make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w));
}
SOLITON_DEVICE uint2 pack_low(float4 v) {
  return make_uint2(pack_bf16(low_part(v.x), low_part(v.y)), pack_bf16(low_part(v.z), low_part(v.w)));
}

/// The same with f16 as the operand type.
SOLITON_DEVICE float low_part_f16(float value) {
  return value - f16_to_float(float_to_f16(value));
}
SOLITON_DEVICE uint2 pack_high_f16(float4 v) {
  return make_uint2(pack_f16(v.x, v.y), pack_f16(v.z, v.w));
}
SOLITON_DEVICE uint2 pack_low_f16(float4 v) {
  return make_uint2(pack_f16(low_part_f16(v.x), low_part_f16(v.y)),
                    pack_f16(low_part_f16(v.z), low_part_f16(v.w)));
}

/// Two f16 in a word, the first in its lower half.
SOLITON_DEVICE float2 unpack_f16(uint32_t word) {
  return make_float2(f16_to_float(static_cast<uint16_t>(word)),
                     f16_to_float(static_cast<uint16_t>(word >> 16)));
}

}  // namespace soliton
