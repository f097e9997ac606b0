// Products with weights in bf16.
//
// Activations travel as floats. A float x becomes two bf16 values, high = bf16(x) and low = bf16(x - high), which are two
// columns of the mma's B operand: one row of activations leaves seven of eight columns idle, so 16 bits of mantissa cost
// no more than 8. The sum of the two columns is the product at nearly float accuracy.
//
// In shared memory a warp's slice of x lies in blocks of 32 columns: 64 bytes of high parts, then 64 bytes of low parts.
#pragma once

#include "formats/gemv.cuh"
#include "ops/split.cuh"

namespace soliton {

/// Operands A of the two mma of a block of 32 columns.
struct BlockOperands {
  uint4 first;
  uint4 second;
};

template <WeightFormat kFormat>
requires(kFormat.type == WeightType::kBf16) struct Gemv<kFormat> {
  /// Two chains of dependent mma hide their latency. [][0] and [1] belong to row lane / 4 (high and low part of x), [2] and
  /// [3] to row lane / 4 + 8; only lanes with lane % 4 == 0 hold them.
  struct Sums {
    float value[2][4] = {};

    SOLITON_DEVICE float2 rows() const {
      return make_float2((value[0][0] + value[1][0]) + (value[0][1] + value[1][1]),
                         (value[0][2] + value[1][2]) + (value[0][3] + value[1][3]));
    }
  };

  template <int kWarps, int kColumns>
  static SOLITON_DEVICE void store(unsigned char* x, int group, int /*within*/, float4 v) {
    const int column = group * 4;
    unsigned char* block = x + column / kColumnBlock * kBlockBytes + column % kColumnBlock * 2;
    store_shared(reinterpret_cast<uint2*>(block), pack_high(v));
    store_shared(reinterpret_cast<uint2*>(block + kLowOffset), pack_low(v));
  }

  /// Adds the products of a block of this warp's, which begins at `weights`.
  static SOLITON_DEVICE void multiply_block(Sums& sums, const unsigned char* weights, uint4 x, int lane) {
    const BlockOperands operands = load(weights, lane);
    mma_bf16(sums.value[0], operands.first, make_uint2(x.x, x.y));
    mma_bf16(sums.value[1], operands.second, make_uint2(x.z, x.w));
  }

  static SOLITON_DEVICE BlockOperands load(const unsigned char* block, int lane) {
    const uint4* fragments = reinterpret_cast<const uint4*>(block) + lane;
    return {load_shared(fragments), load_shared(fragments + kWarpLanes)};
  }

  static constexpr int kBlockBytes = kColumnBlock * kXColumnBytes;
  static constexpr int kLowOffset = kColumnBlock * 2;
};

}  // namespace soliton
