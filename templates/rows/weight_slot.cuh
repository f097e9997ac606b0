// A ring slot of integers, or of E2M1, where warpgroups multiply: of each of four or eight tiles the words of a few columns, and
// behind all of them their scales, as pages have them (layout/weight_format.h). Blocks of E2M1 have their scales in them.
#pragma once

#include "layout/weight_format.h"
#include "rows/context.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan, WeightFormat kFormat = kPlan.model.integers>
struct WeightSlot {
  static constexpr int kColumns = kShape<kPlan>.slot_columns(kFormat);
  static constexpr int kGroups = kShape<kPlan>.tiles_at_once() / (kWarpgroups * kGroupTiles);  // of tiles
  static constexpr int kTiles = kGroups * kGroupTiles;
  static constexpr int kScaleBytes = kFormat.scale_bytes(kColumns);  // of a tile
  static constexpr int kWordBytes = weight_bytes(kFormat, kColumns) - kScaleBytes;
  static constexpr int kSharing = kFormat.has_scales() ? kFormat.group : kColumnBlock;
  static constexpr int kBlock = kFormat.block == 0 ? 1 : kFormat.block;
  static_assert(kColumns % kSharing == 0 && kColumns % kBlock == 0 && kScaleBytes % 16 == 0,
                "whole groups and blocks, that bulk copies take");
  static_assert(kTiles * (kWordBytes + kScaleBytes) <= kPlan.slot_bytes);

  /// Where the scales of a tile stand, as those of a page of no columns would.
  static SOLITON_DEVICE int scales_of(int tile) { return kTiles * kWordBytes + tile * kScaleBytes; }
};

}  // namespace soliton::rows
