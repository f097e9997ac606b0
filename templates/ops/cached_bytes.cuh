// Keys and values in a cache of 8 bits (layout/e4m3.h, KvShape): the powers of two that go with them, how bytes become
// operands, and what becomes of a step's own before they are bytes. The kernels of one row and of several ask it alike.
#pragma once

#include "layout/page.h"
#include "ops/split.cuh"
#include "primitives/e4m3.cuh"

namespace soliton {

/// Weights that multiply values are so many powers of two larger than where values are f16: values' own powers make them
/// smaller, and they are f16.
constexpr float kByteHeadroom = 7.0f;

/// 16 tokens by 16 dims, or 16 dims by 16 tokens, as operand a: `first` and `second` are what ldmatrix gives of their halves.
SOLITON_DEVICE uint4 operand_of_bytes(uint32_t first, uint32_t second) {
  const uint2 a = four_e4m3_to_f16(first);
  const uint2 b = four_e4m3_to_f16(second);
  return make_uint4(a.x, b.x, a.y, b.y);
}

/// The power of two of a token (0 to 15) of a tile of keys, or of values, in shared memory.
template <KvShape kKv>
SOLITON_DEVICE float power_of(const unsigned char* tile, int token) {
  return e4m3_scale(load_shared(tile + kKv.exponent_offset(token)));
}
/// Those of two neighbouring tokens, of which the first is even.
template <KvShape kKv>
SOLITON_DEVICE float2 powers_of(const unsigned char* tile, int token) {
  const uint16_t two = load_shared(reinterpret_cast<const uint16_t*>(tile + kKv.exponent_offset(token)));
  return make_float2(e4m3_scale(two & 0xff), e4m3_scale(two >> 8));
}

/// The larger of both magnitudes and `largest`.
SOLITON_DEVICE float larger_magnitude(float largest, float2 pair) {
  return larger_of(largest, larger_of(fabsf(pair.x), fabsf(pair.y)));
}
/// The stored power of a key or value of which every lane knows the largest magnitude of some dims. Collective.
SOLITON_DEVICE int exponent_of_warp(float largest) {
  SOLITON_UNROLL
  for (int mask = 1; mask < kWarpLanes; mask *= 2) largest = larger_of(largest, shuffle_xor(largest, mask));
  return e4m3_exponent(f16_to_float(float_to_f16(largest)));
}

/// Makes bytes of two f16, each with a stored power of its own.
class PairOfBytes {
 public:
  SOLITON_DEVICE PairOfBytes(int first, int second)
      : powers_(pack_f16(e4m3_scale(first), e4m3_scale(second))),
        inverses_(pack_f16(inverse(first), inverse(second))) {}
  SOLITON_DEVICE explicit PairOfBytes(int both) : PairOfBytes(both, both) {}

  /// The two lower bytes.
  SOLITON_DEVICE uint32_t bytes(uint32_t two) const { return two_f16_to_e4m3(multiply_f16(two, inverses_)); }
  /// What they mean, as f16.
  SOLITON_DEVICE uint32_t rounded(uint32_t two) const {
    return multiply_f16(two_e4m3_to_f16(bytes(two)), powers_);
  }

 private:
  static SOLITON_DEVICE float inverse(int exponent) { return e4m3_scale(2 * 127 - exponent); }

  uint32_t powers_;
  uint32_t inverses_;
};

}  // namespace soliton
