// Weights in E2M1 with a power of two for each row and 32 columns (MXFP4), or with an E4M3 for each row and 16 columns (NVFP4):
// they become bf16, which holds them exactly, and are multiplied as such; see layout/weight_format.h.
#pragma once

#include "formats/bf16.cuh"

namespace soliton {

/// Four pairs of codes as bf16, 2^-126 times what they stand for: exponents are as if they were bf16's. Of the last the bits
/// stand apart, so that one product moves each to where it belongs and no two to one place: the sign by 4, the exponent's upper
/// bit by 14, its lower one and the mantissa by 9, these three from one half into the other, or out of the word.
SOLITON_DEVICE uint4 spread_e2m1(uint32_t word) {
  constexpr uint32_t kCodes = 0x81c081c0u;
  constexpr uint32_t kLast = 0x6c006c00u;
  constexpr uint32_t kMoves = 1u << 4 | 1u << 9 | 1u << 14;
  const uint64_t last = static_cast<uint64_t>(word & kLast) * kMoves;
  return make_uint4(word & kCodes, word << 3 & kCodes, word << 6 & kCodes,
                    (static_cast<uint32_t>(last) | static_cast<uint32_t>(last >> 32)) & kCodes);
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

/// One row. Columns that share a scale are a group; of its products a lane of a quad has those of one group. Of the eight columns
/// of the mma's B operand four groups have two each, of high and low parts of x, and zeros stand in those of the others:
///
///   lane / 4    0      1      2      3      4      5      6      7
///   x of group  0 high 0 low  1 high 1 low  2 high 2 low  3 high 3 low
///
/// So the products of four groups gather in the same registers, in a lane those of group lane % 4, and are multiplied by their
/// scales at once.
template <WeightFormat kFormat>
requires(kFormat.type == WeightType::kE2m1) struct Gemv<kFormat> {
  using Bf16 = Gemv<WeightFormat{}>;

  /// x is so many times as large as it is, and codes 2^-126 times, so that neither their products nor these times a scale
  /// leave the range of floats.
  static constexpr float kInputScale = 0x1p64f;
  static constexpr float kSumScale = kFormat.has_factors() ? 0x1p62f / kNvfp4Unit : 0x1p62f;

  struct Sums : QuadSums {
    SOLITON_DEVICE float2 rows() const {
      const float2 sums = QuadSums::rows();
      return make_float2(sums.x * kSumScale, sums.y * kSumScale);
    }
  };

  template <int kWarps, int kColumns>
  static SOLITON_DEVICE void store(unsigned char* x, int group, int within, float4 v) {
    Bf16::template store<kWarps, kColumns>(
        x, group, within,
        make_float4(v.x * kInputScale, v.y * kInputScale, v.z * kInputScale, v.w * kInputScale));
  }

  template <int kWarps, int kColumns>
  static SOLITON_DEVICE void multiply(const GemvPage& at, Sums& sums) {
    constexpr int kBlocks = kColumns / kWarps / kColumnBlock;
    constexpr int kBytes = kFormat.block_bytes();
    const int lane =
        static_cast<int>(static_cast<uint32_t>(at.lane) % kWarpLanes);  // small, as the compiler knows
    const unsigned char* weights = at.page + at.warp * kBlocks * kBytes;
    const unsigned char* x[kTogether];
    SOLITON_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      const bool is_own = lane / 8 / kBlockGroups == i && (kBlockGroups == 1 || lane % 4 / 2 == lane / 8 % 2);
      x[i] = is_own ? at.x + (lane / 4 % 2 == 1 ? Bf16::kLowOffset : 0) + lane % 4 * 16 : at.zeros;
    }
    SOLITON_UNROLL
    for (int first = 0; first < kBlocks; first += kTogether) {
      float products[4] = {};
      MmaBatch batch;
      SOLITON_UNROLL
      for (int i = 0; i < kTogether && first + i < kBlocks; ++i) {
        const int block = first + i;
        const uint2 codes = load_shared(reinterpret_cast<const uint2*>(weights + block * kBytes) + lane);
        const uint4 v = load_shared(reinterpret_cast<const uint4*>(x[i] + block * Bf16::kBlockBytes));
        mma_bf16(products, spread_e2m1(codes.x), make_uint2(v.x, v.y));
        mma_bf16(products, spread_e2m1(codes.y), make_uint2(v.z, v.w));
      }
      batch.end();
      const int own = first + lane % 4 / kBlockGroups;
      const uint32_t scales =
          load_scales(weights + (own < kBlocks ? own : first) * kBytes, lane % kBlockGroups, lane);
      SOLITON_UNROLL
      for (int half = 0; half < 2; ++half)
        sums.value[half] += scale(scales, half) * (products[2 * half] + products[2 * half + 1]);
    }
  }

  /// Operands of kernels of several rows: exact, scales included. A lane's eight columns are of one group: of NVFP4 quads 0 and 1
  /// have the first.
  static SOLITON_DEVICE BlockOperands load(const unsigned char* block, int lane) {
    const uint32_t scales = load_scales(block, lane % 4 / (4 / kBlockGroups), lane);
    if constexpr (kFormat.has_factors()) {
      return scaled_e2m1(block, lane, nvfp4_scale_pair(scales & 0xff), nvfp4_scale_pair(scales >> 8));
    } else {
      return scaled_e2m1(block, lane, e2m1_scale(scales & 0xff), e2m1_scale(scales >> 8));
    }
  }

 private:
  static constexpr int kBlockGroups = kFormat.has_factors() ? kColumnBlock / kNvfp4Group : 1;
  static constexpr int kTogether = 4 / kBlockGroups;  // blocks

  /// Of rows lane / 4 and lane / 4 + 8, a byte each.
  static SOLITON_DEVICE uint32_t load_scales(const unsigned char* block, int group, int lane) {
    return load_shared(reinterpret_cast<const uint16_t*>(block + kE2m1CodeBytes) + group * (kTileRows / 2) +
                       lane / 4);
  }
  /// Of NVFP4 see nvfp4_scale().
  static SOLITON_DEVICE float scale(uint32_t scales, int half) {
    if constexpr (kFormat.has_factors()) {
      constexpr uint32_t kByte = 0x0ff00000u;
      constexpr uint32_t kLeastExponent = 127 - 9;
      return float_from_bits((scales << (half == 0 ? 20 : 12) & kByte) + (kLeastExponent << 23));
    } else {
      constexpr uint32_t kExponent = 0x7f800000u;
      return float_from_bits(scales << (half == 0 ? 23 : 15) & kExponent);
    }
  }
};

}  // namespace soliton
