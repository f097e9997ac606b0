// Weights in E2M1 with a power of two for each row and 32 columns (MXFP4), or with an E4M3 for each row and 16 columns (NVFP4):
// they become bf16, which holds them exactly, and are multiplied as such; see layout/weight_format.h.
#pragma once

#include "formats/bf16.cuh"

namespace soliton {

/// Two codes as bf16, 2^-126 times what they stand for: exponents are as if they were bf16's.
SOLITON_DEVICE uint4 spread_e2m1(uint32_t word) {
  constexpr uint32_t kCodes = 0x81c081c0u;
  constexpr uint32_t kSigns = 0x80008000u;
  constexpr uint32_t kRest = 0x01c001c0u;
  return make_uint4(word & kCodes, word << 3 & kCodes, and_or(word << 1, kSigns, word << 6 & kRest),
                    and_or(word << 2, kSigns, word >> 3 & kRest));
}

/// 2^126 times the scale whose exponent's byte is `exponent`, as two bf16. At most 128: kMostE2m1Exponent.
SOLITON_DEVICE uint32_t e2m1_scale(uint32_t exponent) {
  constexpr uint32_t kPair = 0x00800080u;  // of exponents of bf16
  return exponent * kPair + 126 * kPair;
}

/// What a lane has of 32 columns of rows lane / 4 and lane / 4 + 8, times the rows' scales: two bf16 each.
SOLITON_DEVICE BlockOperands scaled_e2m1(const unsigned char* block, int lane, uint32_t lower,
                                         uint32_t upper) {
  const uint2 codes = load_shared(reinterpret_cast<const uint2*>(block) + lane);
  const auto scaled = [&](uint32_t word) {
    const uint4 all = spread_e2m1(word);
    return make_uint4(multiply_bf16(all.x, lower), multiply_bf16(all.y, upper), multiply_bf16(all.z, lower),
                      multiply_bf16(all.w, upper));
  };
  return {scaled(codes.x), scaled(codes.y)};
}

/// 2^119 times the scale whose byte is `scale`, see nvfp4_scale(), as two bf16: so that of all codes and scales no product leaves
/// bf16's range, nor loses a bit.
SOLITON_DEVICE uint32_t nvfp4_scale_pair(uint32_t scale) {
  constexpr uint32_t kPair = 0x00100010u;  // the last bit of a byte, of mantissas of bf16
  constexpr uint32_t kExponents = (127 + 119 - 9) * 0x00800080u;
  return scale * kPair + kExponents;
}

/// NVFP4: operands are code times scale / kNvfp4Unit, exactly, in any kernel.
template <WeightFormat kFormat>
requires(kFormat.has_factors()) struct Gemv<kFormat> : Gemv<WeightFormat{}> {
  using Bf16 = Gemv<WeightFormat{}>;

  static SOLITON_DEVICE void multiply_block(Bf16::Sums& sums, int /*block*/, const unsigned char* weights,
                                            uint4 x, int lane) {
    const BlockOperands operands = load(weights, lane);
    mma_bf16(sums.value[0], operands.first, make_uint2(x.x, x.y));
    mma_bf16(sums.value[1], operands.second, make_uint2(x.z, x.w));
  }

  /// A lane's eight columns are of one group: quads 0 and 1 have the first.
  static SOLITON_DEVICE BlockOperands load(const unsigned char* block, int lane) {
    const uint32_t scales = load_shared(reinterpret_cast<const uint16_t*>(block + kE2m1CodeBytes) +
                                        lane % 4 / 2 * (kTileRows / 2) + lane / 4);
    return scaled_e2m1(block, lane, nvfp4_scale_pair(scales & 0xff), nvfp4_scale_pair(scales >> 8));
  }
};

/// MXFP4.
template <WeightFormat kFormat>
requires(kFormat.type == WeightType::kE2m1 && !kFormat.has_factors()) struct Gemv<kFormat>
    : Gemv<WeightFormat{}> {
  using Bf16 = Gemv<WeightFormat{}>;

  /// x is so many times as large as it is, and codes 2^-126 times, so that neither their products nor these times a scale
  /// leave the range of floats.
  static constexpr float kInputScale = 0x1p64f;
  static constexpr float kSumScale = 0x1p62f;

  /// As of bf16, to which each block is added, times its rows' scales.
  struct Sums : Bf16::Sums {
    SOLITON_DEVICE float2 rows() const {
      const float2 sums = Bf16::Sums::rows();
      return make_float2(sums.x * kSumScale, sums.y * kSumScale);
    }
  };

  template <int kWarps, int kColumns>
  static SOLITON_DEVICE void store(unsigned char* x, int group, int within, float4 v, float down) {
    Bf16::template store<kWarps, kColumns>(
        x, group, within,
        make_float4(v.x * kInputScale, v.y * kInputScale, v.z * kInputScale, v.w * kInputScale), down);
  }

  static SOLITON_DEVICE void multiply_block(Sums& sums, int block, const unsigned char* weights, uint4 x,
                                            int lane) {
    constexpr uint32_t kExponent = 0x7f800000u;
    const uint2 codes = load_shared(reinterpret_cast<const uint2*>(weights) + lane);
    const uint32_t exponents = load_exponents(weights, lane);
    float products[4] = {};
    mma_bf16(products, spread_e2m1(codes.x), make_uint2(x.x, x.y));
    mma_bf16(products, spread_e2m1(codes.y), make_uint2(x.z, x.w));
    const float scales[] = {float_from_bits(exponents << 23 & kExponent),
                            float_from_bits(exponents << 15 & kExponent)};
    SOLITON_UNROLL
    for (int i = 0; i < 4; ++i) sums.value[block % 2][i] += scales[i / 2] * products[i];
  }

  /// Operands of kernels of several rows: exact, scales included.
  static SOLITON_DEVICE BlockOperands load(const unsigned char* block, int lane) {
    const uint32_t exponents = load_exponents(block, lane);
    return scaled_e2m1(block, lane, e2m1_scale(exponents & 0xff), e2m1_scale(exponents >> 8));
  }

 private:
  /// Of rows lane / 4 and lane / 4 + 8, a byte each.
  static SOLITON_DEVICE uint32_t load_exponents(const unsigned char* block, int lane) {
    return load_shared(reinterpret_cast<const uint16_t*>(block + kE2m1CodeBytes) + lane / 4);
  }
};

}  // namespace soliton
