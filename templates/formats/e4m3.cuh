// Weights in E4M3 with a float for each row and group of columns (fp8), in pages as integers of 8 bits have them: they become
// bf16, which holds them exactly, and are multiplied as such; sums of a group are multiplied by its scale.
#pragma once

#include "formats/bf16.cuh"
#include "formats/integers.cuh"

namespace soliton {

/// One row: x as two parts, as bf16 has it.
template <WeightFormat kFormat>
requires(kFormat.type == WeightType::kE4m3) struct Gemv<kFormat> : Gemv<WeightFormat{}> {
  using Bf16 = Gemv<WeightFormat{}>;

  static constexpr float kInputScale = kE4m3InputScale;
  static constexpr float kSumScale = kE4m3Unit / kInputScale;

  /// As of bf16, to which each group is added, times its rows' scales.
  struct Sums : Bf16::Sums {
    SOLITON_DEVICE float2 rows() const {
      const float2 sums = Bf16::Sums::rows();
      return make_float2(sums.x * kSumScale, sums.y * kSumScale);
    }
  };

  template <int kWarps, int kColumns>
  static SOLITON_DEVICE int column(int begin, int warp, int group) {
    return begin + IntegerPart<kWarps, kColumns>::column(warp, group);
  }
  template <int kWarps, int kColumns>
  static SOLITON_DEVICE void store(unsigned char* x, int group, int within, float4 v) {
    Bf16::template store<kWarps, kColumns>(
        x, group, within,
        make_float4(v.x * kInputScale, v.y * kInputScale, v.z * kInputScale, v.w * kInputScale));
  }

  template <int kWarps, int kColumns>
  static SOLITON_DEVICE void multiply(const GemvPage& at, Sums& sums) {
    using Part = IntegerPart<kWarps, kColumns>;
    constexpr int kUnitColumns = kStrips * Part::kSteps * kStepColumns;
    static_assert(kFormat.group % kUnitColumns == 0, "a unit has one scale");
    const int lane =
        static_cast<int>(static_cast<uint32_t>(at.lane) % kWarpLanes);  // small, as the compiler knows
    const unsigned char* x = at.x + (lane / 4 == 1 ? Bf16::kLowOffset : 0) + lane % 4 * 16;
    SOLITON_UNROLL
    for (int own = 0; own < Part::kOwnUnits; ++own) {
      const int unit = at.warp * Part::kOwnUnits + own;
      const unsigned char* words = at.page + unit * Part::kSteps * kFormat.step_bytes();
      float products[kStrips][4] = {};
      MmaBatch batch;
      SOLITON_UNROLL
      for (int step = 0; step < Part::kSteps; ++step) {
        const StepWords<kFormat> weights =
            StepWords<kFormat>::load(words + step * kFormat.step_bytes(), lane);
        SOLITON_UNROLL
        for (int strip = 0; strip < kStrips; ++strip) {
          const int block = (own * kStrips + strip) * Part::kSteps + step;
          const uint4 v = load_shared(reinterpret_cast<const uint4*>(x + block * Bf16::kBlockBytes));
          mma_bf16(products[strip], weights.codes(strip, 0), make_uint2(v.x, v.y));
          mma_bf16(products[strip], weights.codes(strip, 1), make_uint2(v.z, v.w));
        }
      }
      batch.end();
      const RowScales scales = BlockScales<kFormat>(at.page, kColumns, lane, unit * kUnitColumns)
                                   .of(unit * kUnitColumns / kFormat.group);
      SOLITON_UNROLL
      for (int strip = 0; strip < kStrips; ++strip) {
        SOLITON_UNROLL
        for (int i = 0; i < 4; ++i) sums.value[strip][i] += scales.scale[i / 2] * products[strip][i];
      }
    }
  }
};

}  // namespace soliton
