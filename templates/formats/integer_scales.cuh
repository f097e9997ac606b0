// What integers count in a tile's rows: scales, and zeros or minima, of groups of columns, which a format may have within
// blocks.
#pragma once

#include <type_traits>

#include "formats/e4m3_pairs.cuh"
#include "formats/integer_words.cuh"
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
    if constexpr (kFormat.block > 0)
      unpack(head(page, columns, row_, column / kFormat.block), scale_, minimum_);
  }

  /// Of group `group` of the page.
  SOLITON_DEVICE RowScales of(int group) const {
    if constexpr (kFormat.block == 0) {
      const unsigned char* words = page_ + scale_offset(kFormat, columns_, row_, group);
      return row_scales<kFormat>(load_scale_words<kFormat>(words));
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
    const Word own = word(page_, columns_, row_, group);
    Factors all = {{static_cast<float>(byte(own, 0)), static_cast<float>(byte(own, kUpper))}, {}};
    if constexpr (kFormat.has_minima) {
      all.minimum[0] = byte(own, 1);
      all.minimum[1] = byte(own, 3);
    }
    return all;
  }
  SOLITON_DEVICE float scale(int half) const { return scale_[half]; }
  SOLITON_DEVICE float minimum(int half) const { return minimum_[half]; }

  /// What the rows of a block have as it stands, and as numbers.
  using Head = std::conditional_t<kFormat.has_minima, uint2, uint32_t>;
  static SOLITON_DEVICE Head head(const unsigned char* page, int columns, int row, int block) {
    return load_shared(reinterpret_cast<const Head*>(page + block_offset(kFormat, columns, row, block)));
  }
  static SOLITON_DEVICE void unpack(Head head, float (&scale)[2], float (&minimum)[2]) {
    constexpr float kUnit = 1.0f / kFormat.unit();
    if constexpr (kFormat.has_minima) {
      const float2 rows[2] = {unpack_f16(head.x), unpack_f16(head.y)};
      SOLITON_UNROLL
      for (int i = 0; i < 2; ++i) {
        scale[i] = rows[i].x * kUnit;
        minimum[i] = rows[i].y;
      }
    } else {
      const float2 rows = unpack_f16(head);
      scale[0] = rows.x * kUnit;
      scale[1] = rows.y * kUnit;
    }
  }
  /// What a group has as it stands: bytes of row g, scale and perhaps minimum, and of row g + 8.
  using Word = uint32_t;
  static SOLITON_DEVICE Word word(const unsigned char* page, int columns, int row, int group) {
    using Own = std::conditional_t<kFormat.has_minima, uint32_t, uint16_t>;
    return load_shared(reinterpret_cast<const Own*>(page + scale_offset(kFormat, columns, row, group)));
  }
  static SOLITON_DEVICE void scales(Word word, int32_t (&rows)[2]) {
    rows[0] = byte(word, 0);
    rows[1] = byte(word, kUpper);
  }
  static SOLITON_DEVICE void minima(Word word, float (&rows)[2]) {
    rows[0] = static_cast<float>(byte(word, 1));
    rows[1] = static_cast<float>(byte(word, 3));
  }

 private:
  static constexpr int32_t kZero = kFormat.symmetric_zero();

  static constexpr int kUpper = kFormat.has_minima ? 2 : 1;  // byte of the scale of row g + 8
  static SOLITON_DEVICE int8_t byte(Word word, int i) { return static_cast<int8_t>(word >> 8 * i); }

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

/// What a group of a block has by itself, for operands in bf16: two bf16 alike of each row, exactly; of a scale that, and less than 0
/// as much.
struct FactorPairs {
  uint32_t scale[2][2];
  uint32_t minimum[2];
};

template <WeightFormat kFormat>
SOLITON_DEVICE FactorPairs factor_pairs(typename BlockScales<kFormat>::Word word) {
  constexpr uint32_t kSigns = 0x80008000u;
  constexpr uint32_t kFirst = 0x1010u;  // choice of choose_bytes(): the first of two bf16, twice
  constexpr uint32_t kSecond = 0x3232u;
  const uint32_t scales = signed_bytes_to_bf16(kFormat.has_minima ? word : word | word << 8);
  FactorPairs pairs = {};
  pairs.scale[0][0] = choose_bytes(scales, scales, kFirst);
  pairs.scale[1][0] = choose_bytes(scales, scales, kSecond);
  SOLITON_UNROLL
  for (int i = 0; i < 2; ++i) pairs.scale[i][1] = pairs.scale[i][0] ^ kSigns;
  if constexpr (kFormat.has_minima) {
    const uint32_t minima = signed_bytes_to_bf16(word >> 8);
    pairs.minimum[0] = choose_bytes(minima, minima, kFirst);
    pairs.minimum[1] = choose_bytes(minima, minima, kSecond);
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
