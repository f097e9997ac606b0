// A ring slot of integers where warpgroups multiply: of each of four or eight tiles the words of a few columns, and behind
// all of them their scales, as pages have them (layout/weight_format.h).
#pragma once

#include "layout/weight_format.h"
#include "rows/context.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
struct IntegerSlot {
  static constexpr WeightFormat kFormat = kPlan.model.integers;
  static constexpr int kColumns = kShape<kPlan>.slot_columns(kPlan.model.integers);
  static constexpr int kGroups = kShape<kPlan>.tiles_at_once() / (kWarpgroups * kGroupTiles);  // of tiles
  static constexpr int kTiles = kGroups * kGroupTiles;
  static constexpr int kWordBytes = kFormat.value_bytes(kColumns);  // of a tile
  static constexpr int kScaleBytes = weight_bytes(kFormat, kColumns) - kWordBytes;
  static_assert(kColumns % kFormat.group == 0 && kScaleBytes % 16 == 0,
                "whole groups, that bulk copies take");
  static_assert(kTiles * (kWordBytes + kScaleBytes) <= kPlan.slot_bytes);

  /// Where the scales of a tile stand, and in these those of a group and of rows `row` and `row` + 8.
  static SOLITON_DEVICE int scales_of(int tile) { return kTiles * kWordBytes + tile * kScaleBytes; }
  static SOLITON_DEVICE int scale_offset(int group, int row) {
    return soliton::scale_offset(kFormat, 0, row, group);
  }
};

}  // namespace soliton::rows
