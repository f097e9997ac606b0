// What a lane has of a slot of integers, and the operands of bf16 that it makes of them, where warpgroups multiply.
#pragma once

#include "formats/integer_scales.cuh"
#include "formats/integer_words.cuh"
#include "rows/warpgroup_tiles.cuh"
#include "rows/weight_slot.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan, WeightFormat kFormat>
struct IntegerSteps {
  using Slot = WeightSlot<kPlan, kFormat>;
  static constexpr int kChunks = Slot::kColumns / kShape<kPlan>.chunk_columns();  // of a slot
  static constexpr int kSteps = Slot::kColumns / (kStrips * kStepColumns);
  static constexpr int kSetSteps = kPlan.set_steps(kFormat);  // of a strip, that share a scale
  static constexpr int kChunkSteps = kShape<kPlan>.chunk_columns() / (kStrips * kStepColumns);

  /// Of 4 bits as they stand: ptxas then keeps them in place.
  static constexpr bool kNibbles = kFormat.bits() == 4;
  using Words = std::conditional_t<kNibbles, uint4, StepWords<kFormat>>;
  /// As they stand; of blocks, whose scales have two factors, where weights are rounded what they are multiplied by.
  static constexpr bool kBlocks = kFormat.block > 0;
  static constexpr bool kRounds = kShape<kPlan>.scales_first;
  using Factors = typename BlockScales<kFormat>::Word;
  using Scales =
      std::conditional_t<!kBlocks, ScaleWords<kFormat>, std::conditional_t<kRounds, ScalePairs, Factors>>;

  /// Words and scales of both strips of a step.
  struct Step {
    Words words;
    Scales scales[kStrips];
  };
  /// What a lane multiplies by of one of them.
  using Strip = typename WarpgroupTiles<kPlan>::template Weights<kStepColumns / kMmaColumns>;

  /// Step `index` of a slot's columns, of a page whose units have `steps` steps.
  static SOLITON_DEVICE Step load(const unsigned char* slot, int tile, int index, int steps, int lane) {
    const unsigned char* words = slot + tile * Slot::kWordBytes + index * kFormat.step_bytes();
    Step step = {};
    if constexpr (kNibbles) {
      step.words = load_shared(reinterpret_cast<const uint4*>(words) + lane);
    } else {
      step.words = Words::load(words, lane);
    }
    SOLITON_UNROLL
    for (int strip = 0; strip < kStrips; ++strip) {
      const unsigned char* scales = slot + Slot::scales_of(tile);
      const int group = group_of(index, strip, steps, lane);
      if constexpr (kBlocks && kRounds) {
        step.scales[strip] = scale_pairs<kFormat>(BlockScales<kFormat>(scales, 0, lane, 0).of(group));
      } else if constexpr (kBlocks) {
        step.scales[strip] = BlockScales<kFormat>::word(scales, 0, lane / 4, group);
      } else {
        step.scales[strip] = load_scale_words<kFormat>(scales + scale_offset(kFormat, 0, lane / 4, group));
      }
    }
    return step;
  }

  /// Of one strip what it is multiplied by, times its scales.
  static SOLITON_DEVICE Strip load_strip(const unsigned char* slot, int tile, int index, int strip, int steps,
                                         int lane) {
    return scaled_strip(load(slot, tile, index, steps, lane), strip);
  }

  /// Less zeros, exactly, without scales; of E4M3 codes as they are, see kInputScale.
  static SOLITON_DEVICE uint4 operand(const Words& words, int strip, int half, const int32_t (&zeros)[2]) {
    if constexpr (kFormat.type == WeightType::kE4m3 && kInputScale<kPlan> != 1) {
      return words.codes(strip, half);
    } else if constexpr (kNibbles) {
      return spread_to_bf16(word_of_strip(words, strip, half), zeros);
    } else {
      return words.to_bf16(strip, half, zeros);
    }
  }
  /// Times their scales, and rounded.
  static SOLITON_DEVICE Strip scaled_strip(const Step& step, int strip) {
    const ScalePairs rows = pairs_of(step.scales[strip]);
    const auto half = [&](int i) {
      if constexpr (kFormat.type == WeightType::kE4m3) {
        return scaled_operand<kFormat>(step.words.codes(strip, i), rows);
      } else {
        return scaled_operand<kFormat>(operand(step.words, strip, i, rows.zero), rows);
      }
    };
    return {{half(0), half(1)}};
  }

  /// Of blocks the same times what its group counts with, exactly, as the difference of two parts; with minima of a checkpoint's
  /// values.
  struct Parts {
    uint4 low;
    uint4 minus_high;
  };
  static constexpr bool kSmall = kFormat.bits() == 5 || kFormat.bits() == 6;
  static constexpr int kPartsUnit = kSmall ? 1 : kFormat.unit();  // so many times as large
  static SOLITON_DEVICE Parts parts(const Words& words, int strip, int half, const FactorPairs& factors) {
    Parts both;
    const uint4 own = whole_operand(words, strip, half);
    const auto divide = [](uint32_t pair, const uint32_t(&factor)[2], uint32_t& low, uint32_t& minus_high) {
      minus_high = multiply_bf16(pair, factor[1]);
      low = fma_bf16(pair, factor[0], minus_high);
    };
    divide(own.x, factors.scale[0], both.low.x, both.minus_high.x);
    divide(own.y, factors.scale[1], both.low.y, both.minus_high.y);
    divide(own.z, factors.scale[0], both.low.z, both.minus_high.z);
    divide(own.w, factors.scale[1], both.low.w, both.minus_high.w);
    return both;
  }

  /// Where its columns lie in a chunk of the input: the first strips of all steps come before the second ones, but for
  /// pages whose units have one step (no `pairs`).
  static SOLITON_DEVICE int place_of(int step, int strip, bool pairs) {
    constexpr int kBlockBytes = kColumnBlock * kBlockRows<kPlan> * kShape<kPlan>.parts * 2;
    return (pairs ? step + strip * kChunkSteps : step * kStrips + strip) * kBlockBytes;
  }

 private:
  static SOLITON_DEVICE uint4 whole_operand(const Words& words, int strip, int half) {
    constexpr int32_t kZeros[2] = {kFormat.symmetric_zero(), kFormat.symmetric_zero()};
    if constexpr (kSmall) {
      return words.whole_to_bf16(strip, half);
    } else if constexpr (kFormat.has_minima && kFormat.is_signed()) {
      constexpr uint32_t kBias = 0xc300c300u;  // -128: what signed integers have less
      const uint4 own = operand(words, strip, half, kZeros);
      return make_uint4(subtract_bf16(own.x, kBias), subtract_bf16(own.y, kBias), subtract_bf16(own.z, kBias),
                        subtract_bf16(own.w, kBias));
    } else {
      return operand(words, strip, half, kZeros);
    }
  }
  static SOLITON_DEVICE ScalePairs pairs_of(const Scales& scales) {
    if constexpr (kBlocks) {
      return scales;
    } else {
      return scale_pairs<kFormat>(row_scales<kFormat>(scales));
    }
  }
  /// Of a slot's groups; where a step has two, that of the lane's columns.
  static SOLITON_DEVICE int group_of(int index, int strip, int steps, int lane) {
    constexpr int kGroupSteps = kFormat.group / kStepColumns;
    constexpr int kFullUnit = kFormat.page_columns() / kFormat.least_columns();
    if constexpr (kPlan.has_full_pages() && kFullUnit == kSteps && kGroupSteps > 0)
      return index % kSteps / kGroupSteps + strip * kSteps / kGroupSteps;
    const int first = (index & -steps) + index;  // units before it have two strips of as many steps
    const int step = first + strip * steps;
    if constexpr (kGroupSteps > 0) {
      return step / kGroupSteps;
    } else {
      return step * 2 + lane % 4 / 2;
    }
  }
};

}  // namespace soliton::rows
