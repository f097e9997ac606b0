// What the code of several rows asks its plan.
#pragma once

#include "formats/formats.cuh"
#include "layout/awaited_words.h"
#include "layout/several_rows.h"
#include "machine/walk.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
constexpr RowsShape kShape = kPlan.shape();

/// Rows that this CTA multiplies: those of a step, or a block of them.
template <const KernelPlan& kPlan>
constexpr int kBlockRows = kPlan.block_rows();

/// So many times as large as they are activations are published, where warpgroups multiply them by codes in E4M3 as they are.
/// Measured, 8B on an H200, against codes that are multiplied by kE4m3Unit: 8 rows 2819 -> 2738 us, 16 rows 2864 -> 2767, 32 rows 3192 -> 3109, 64 rows 4090 -> 3996.
template <const KernelPlan& kPlan>
constexpr float kInputScale =
    kPlan.warpgroups && !kShape<kPlan>.scales_first && kPlan.model.mixture.experts == 0 &&
            kPlan.model.integers.type == WeightType::kE4m3  // beside which there are no others
        ? kE4m3InputScale
        : 1.0f;
/// What sums of products with such activations are times.
template <const KernelPlan& kPlan>
SOLITON_DEVICE float sum_scale(WeightType type) {
  return (type == WeightType::kE4m3 ? kE4m3Unit : 1.0f) / kInputScale<kPlan>;
}

/// Are rows grouped by the experts of a mixture, see layout/grouped_rows.h?
template <const KernelPlan& kPlan>
constexpr bool kGroups = PhaseOrder<kPlan>::kGroups;

/// Are experts multiplied pair by pair, see layout/expert_pairs.h?
template <const KernelPlan& kPlan>
constexpr bool kPairs = kPlan.multiplies_pairs();

template <const KernelPlan& kPlan>
constexpr int kTilesAtOnce = tiles_at_once(kPlan);

/// Of these, where single warps multiply: whose sums go at once to those that finish them.
template <const KernelPlan& kPlan>
constexpr int kHandedTiles =
    kShape<kPlan>.handed_tiles < kTilesAtOnce<kPlan> ? kShape<kPlan>.handed_tiles : kTilesAtOnce<kPlan>;

template <const KernelPlan& kPlan>
constexpr QkvLayout kQkv = kPlan.qkv_layout();

template <const KernelPlan& kPlan>
constexpr int kMergeShares = kPlan.model.head_dim % (4 * kShape<kPlan>.merge_shares) == 0
                                 ? kShape<kPlan>.merge_shares
                                 : 1;

template <const KernelPlan& kPlan>
constexpr int kColumnWarps = kShape<kPlan>.column_warps;

/// Columns of a phase's slots, where warpgroups multiply.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int slot_columns(const MatrixPhase& matrix) {
  return with_format<kPlan>(matrix.format.type,
                            [&]<WeightFormat kFormat>() { return kShape<kPlan>.slot_columns(kFormat); });
}

template <const KernelPlan& kPlan>
constexpr bool kHoldsBlocks = holds_blocks(kPlan);

/// Does the input of a phase become digits?
template <const KernelPlan& kPlan>
SOLITON_DEVICE bool takes_digits(const MatrixPhase& matrix) {
  if constexpr (kShape<kPlan>.digits == 0) return false;
  const auto takes = [&]<WeightFormat kFormat>() { return kShape<kPlan>.takes_digits(kFormat); };
  return has_scales<kPlan>(matrix.format.type) && with_integers<kPlan>(matrix.format.type, takes);
}

/// Do workers of such a plan multiply a unit each of the pages of dense layers, see unit_multiplier.cuh?
template <const KernelPlan& kPlan>
constexpr bool kTakesUnits = kPlan.takes_units();

/// Does a phase's?
template <const KernelPlan& kPlan>
SOLITON_DEVICE bool takes_units(const MatrixPhase& matrix) {
  if constexpr (!kTakesUnits<kPlan>) return false;
  const auto suits = [&]<WeightFormat kFormat>() { return suits_pairs(kPlan.rows, kFormat, 0); };
  return has_scales<kPlan>(matrix.format.type) && with_integers<kPlan>(matrix.format.type, suits);
}

/// Do workers wait themselves for what a phase reads of the one before, if they read any of that?
template <const KernelPlan& kPlan>
SOLITON_DEVICE bool is_awaited(ExpertAxis axis) {
  if constexpr (kGroups<kPlan>) return false;
  return axis == ExpertAxis::kRows || (awaits_pairs(kPlan) && axis == ExpertAxis::kColumns);
}

/// Do both warpgroups multiply so many tiles of integers, a slot of their columns each in turn?
template <const KernelPlan& kPlan, WeightFormat kFormat>
SOLITON_DEVICE bool shares_group(int tiles) {
  return kShape<kPlan>.takes_digits(kFormat) && tiles <= kGroupTiles;
}

}  // namespace soliton::rows
