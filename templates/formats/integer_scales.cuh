// What integers count in a tile's rows: scales, and zeros or minima, of groups of columns, which a format may have within
// blocks.
#pragma once

#include <type_traits>

#include "formats/e4m3_pairs.cuh"
#include "layout/weight_format.h"
#include "ops/split.cuh"

namespace soliton {

/// Scales, and zeros or minima, of rows lane / 4 and lane / 4 + 8 for one group.
struct RowScales {
  float scale[2];  // of values kFormat.unit() times as large
  int32_t zero[2];
  float minimum[2];
};

/// The same as they stand, where scales are f16, or floats.
template <WeightFormat kFormat>
using ScaleWords = std::conditional_t<kFormat.group_words() == 2, uint2, uint32_t>;

/// What a unit keeps of them: nothing in blocks, whose scales are no words of their own.
struct NoScaleWords {};
template <WeightFormat kFormat>
using GroupScales = std::conditional_t<kFormat.block == 0, ScaleWords<kFormat>, NoScaleWords>;

/// `words`: where those of row lane / 4 stand.
template <WeightFormat kFormat>
SOLITON_DEVICE ScaleWords<kFormat> load_scale_words(const unsigned char* words) {
  return load_shared(reinterpret_cast<const ScaleWords<kFormat>*>(words));
}

template <WeightFormat kFormat>
SOLITON_DEVICE RowScales row_scales(ScaleWords<kFormat> rows) {
  static_assert(kFormat.block == 0);
  constexpr float kUnit = 1.0f / kFormat.unit();
  constexpr int32_t kZero = kFormat.symmetric_zero();
  if constexpr (kFormat.has_float_scales()) {
    return {{float_from_bits(rows.x), float_from_bits(rows.y)}, {kZero, kZero}, {}};
  } else if constexpr (kFormat.has_minima) {
    const float2 lower = unpack_f16(rows.x);
    const float2 upper = unpack_f16(rows.y);
    return {{lower.x * kUnit, upper.x * kUnit}, {kZero, kZero}, {lower.y, upper.y}};
  } else if constexpr (kFormat.has_zeros) {
    return {{f16_to_float(static_cast<uint16_t>(rows.x)), f16_to_float(static_cast<uint16_t>(rows.y))},
            {static_cast<int32_t>(rows.x >> 16), static_cast<int32_t>(rows.y >> 16)},
            {}};
  } else {
    const float2 scales = unpack_f16(rows);
    return {{scales.x * kUnit, scales.y * kUnit}, {kZero, kZero}, {}};
  }
}

/// What a lane knows of the scales of a block of columns, or of none.
template <WeightFormat kFormat>
class BlockScales {
 public:
  /// `column`: of the page, whose columns are `columns`.
  SOLITON_DEVICE BlockScales(const unsigned char* page, int columns, int lane, int column)
      : page_(page), columns_(columns), row_(lane / 4) {
    if constexpr (kFormat.block > 0) {
      const unsigned char* head = page + block_offset(kFormat, columns, row_, column / kFormat.block);
      constexpr float kUnit = 1.0f / kFormat.unit();
      if constexpr (kFormat.has_minima) {
        const uint2 words = load_shared(reinterpret_cast<const uint2*>(head));
        const float2 lower = unpack_f16(words.x);
        const float2 upper = unpack_f16(words.y);
        scale_[0] = lower.x * kUnit;
        scale_[1] = upper.x * kUnit;
        minimum_[0] = lower.y;
        minimum_[1] = upper.y;
      } else {
        const float2 scales = unpack_f16(load_shared(reinterpret_cast<const uint32_t*>(head)));
        scale_[0] = scales.x * kUnit;
        scale_[1] = scales.y * kUnit;
      }
    }
  }

  /// Of group `group` of the page.
  SOLITON_DEVICE RowScales of(int group) const {
    if constexpr (kFormat.block == 0) {
      return row_scales<kFormat>(load_scale_words<kFormat>(words(group)));
    } else {
      const Factors own = factors(group);
      return {{scale_[0] * own.scale[0], scale_[1] * own.scale[1]},
              {kZero, kZero},
              {minimum_[0] * static_cast<float>(own.minimum[0]),
               minimum_[1] * static_cast<float>(own.minimum[1])}};
    }
  }

  /// What a group of a block has by itself.
  struct Factors {
    float scale[2];
    int32_t minimum[2];
  };
  SOLITON_DEVICE Factors factors(int group) const {
    static_assert(kFormat.block > 0);
    if constexpr (kFormat.has_minima) {
      const uint32_t all = load_shared(reinterpret_cast<const uint32_t*>(words(group)));
      return {
          {static_cast<float>(static_cast<int8_t>(all)), static_cast<float>(static_cast<int8_t>(all >> 16))},
          {static_cast<int8_t>(all >> 8), static_cast<int8_t>(all >> 24)}};
    } else {
      const uint32_t both = load_shared(reinterpret_cast<const uint16_t*>(words(group)));
      return {
          {static_cast<float>(static_cast<int8_t>(both)), static_cast<float>(static_cast<int8_t>(both >> 8))},
          {}};
    }
  }
  SOLITON_DEVICE float scale(int half) const { return scale_[half]; }
  SOLITON_DEVICE float minimum(int half) const { return minimum_[half]; }

 private:
  static constexpr int32_t kZero = kFormat.symmetric_zero();

  SOLITON_DEVICE const unsigned char* words(int group) const {
    return page_ + scale_offset(kFormat, columns_, row_, group);
  }

  const unsigned char* page_;
  int columns_;
  int row_;
  float scale_[2] = {};  // of the block
  float minimum_[2] = {};
};

/// The same for operands in bf16 that are multiplied by their scales first: two bf16 alike of each row.
struct ScalePairs {
  uint32_t scale[2];  // of E4M3 2^120 times as large, as its codes are smaller: kMostE4m3Scale
  int32_t zero[2];
  uint32_t added[2];  // where there are minima: what is added to the products
};

template <WeightFormat kFormat>
SOLITON_DEVICE ScalePairs scale_pairs(const RowScales& rows) {
  constexpr float kBias = static_cast<float>(kFormat.bias() * kFormat.unit());
  ScalePairs pairs = {{}, {rows.zero[0], rows.zero[1]}, {}};
  SOLITON_UNROLL
  for (int i = 0; i < 2; ++i) {
    float scale = rows.scale[i];
    if constexpr (kFormat.type == WeightType::kE4m3) scale *= kE4m3Unit;
    pairs.scale[i] = pack_bf16(scale, scale);
    if constexpr (kFormat.has_minima) {
      const float added = kBias * scale - rows.minimum[i];
      pairs.added[i] = pack_bf16(added, added);
    }
  }
  return pairs;
}

/// Weights, rounded to bf16, out of an operand that has them without their scales and minima.
template <WeightFormat kFormat>
SOLITON_DEVICE uint4 scaled_operand(uint4 operand, const ScalePairs& rows) {
  if constexpr (kFormat.has_minima) {
    return make_uint4(
        fma_bf16(operand.x, rows.scale[0], rows.added[0]), fma_bf16(operand.y, rows.scale[1], rows.added[1]),
        fma_bf16(operand.z, rows.scale[0], rows.added[0]), fma_bf16(operand.w, rows.scale[1], rows.added[1]));
  } else {
    return make_uint4(multiply_bf16(operand.x, rows.scale[0]), multiply_bf16(operand.y, rows.scale[1]),
                      multiply_bf16(operand.z, rows.scale[0]), multiply_bf16(operand.w, rows.scale[1]));
  }
}

}  // namespace soliton
