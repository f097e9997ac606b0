// What a warpgroup has of the tiles that are multiplied together: of every four tiles a warp has one, and a warpgroup every
// second four. Weights are the operand in registers, in the order in which pages have them, activations the one in shared
// memory.
#pragma once

#include "rows/input_stream.cuh"
#include "rows/page_stream.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class WarpgroupTiles {
 public:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;

  SOLITON_DEVICE WarpgroupTiles(Context<kPlan>& context, int worker)
      : context_(context), worker_(worker), input_(context) {}

  /// Weights of a warp's tile for a set of products.
  template <int kMmas>
  struct Weights {
    uint4 mmas[kMmas];
  };

 protected:
  static constexpr int kMmaRows = kBlockRows<kPlan> * kRowsShape.parts;
  static constexpr int kMmaBytes = kMmaRows * kMmaColumns * 2;
  static constexpr int kMostGroups =
      kRowsShape.tiles_at_once() / (kWarpgroups * kGroupTiles);  // of a warpgroup

  SOLITON_DEVICE int warpgroup() const { return worker_ / kGroupWarps; }
  SOLITON_DEVICE int tile_of_group() const { return worker_ % kGroupWarps; }

  /// Groups of `count` tiles that are this warpgroup's.
  SOLITON_DEVICE int own_groups(int count) const {
    return ceil_divide(count - warpgroup() * kGroupTiles, kWarpgroups * kGroupTiles);
  }
  /// Of group `i`, among the tiles of this warpgroup. What a warp multiplies whose tile is not there nobody looks at.
  template <int kGroups>
  SOLITON_DEVICE int tile_of(int i, int count) const {
    const int last = ((kGroups - 1) * kWarpgroups + warpgroup()) * kGroupTiles + tile_of_group();
    return i * kGroupTiles + (i < kGroups - 1 || last < count ? tile_of_group() : 0);
  }
  /// Waits for all products of a chunk of the input, and releases it.
  template <int kGroups, int kSums>
  SOLITON_DEVICE void end_chunk(float (&sums)[kGroups][kSums]) {
    SOLITON_UNROLL
    for (int i = 0; i < kGroups; ++i) warpgroup_wait(sums[i]);
    input_.release();
  }
  /// Sums of products with weights of a type are those of activations as they are published.
  template <int kSums>
  static SOLITON_DEVICE void scale_sums(float (&sums)[kSums], WeightType type) {
    if constexpr (kInputScale<kPlan> != 1) {
      const float scale = sum_scale<kPlan>(type);
      SOLITON_UNROLL
      for (int k = 0; k < kSums; ++k) sums[k] *= scale;
    }
  }
  /// Puts down the sums of this warp's tiles of weights of a type, of those tiles that are there.
  template <int kGroups, class Put>
  SOLITON_DEVICE void put_all(float (&sums)[kGroups][kMmaRows / 2], WeightType type, int count,
                              const Put& put) const {
    SOLITON_UNROLL
    for (int i = 0; i < kGroups; ++i) {
      const int own = (i * kWarpgroups + warpgroup()) * kGroupTiles + tile_of_group();
      if (own >= count) continue;
      scale_sums(sums[i], type);
      if constexpr (kRowsShape.parts == 1) {
        put(own, sums[i]);
      } else {
        float both[kBlockRows<kPlan> / 2];  // parts
        SOLITON_UNROLL
        for (int k = 0; k < kBlockRows<kPlan> / 2; ++k)
          both[k] = sums[i][k] + sums[i][kBlockRows<kPlan> / 2 + k];
        put(own, both);
      }
    }
  }

  /// Slots that are empty.
  SOLITON_DEVICE void pass(PageStream<kPlan>& stream, int slots) const {
    for (; slots > 0; --slots) stream.release_turn(stream.wait_turn(warpgroup()));
  }

  /// Products of neighbouring steps, which are added to the sums: on their way when this returns.
  template <int kMmas>
  SOLITON_DEVICE void issue(float (&sums)[kMmaRows / 2], const Weights<kMmas>& weights,
                            CoreMatrices input) const {
    warpgroup_fence();
    SOLITON_UNROLL
    for (int k = 0; k < kMmas; ++k) warpgroup_multiply(sums, weights.mmas[k], input.behind(k * kMmaBytes));
    warpgroup_commit();
  }

  /// The same with two bands of the rows alone.
  template <int kMmas>
  SOLITON_DEVICE void issue_bands(BandSums (&sums)[2], const Weights<kMmas>& weights, CoreMatrices input,
                                  const Bands& bands) const {
    warpgroup_fence();
    SOLITON_UNROLL
    for (int i = 0; i < 2; ++i) {
      const CoreMatrices rows = input.behind((i == 0 ? bands.first : bands.second) * kBandRows * 16);
      SOLITON_UNROLL
      for (int k = 0; k < kMmas; ++k)
        warpgroup_multiply_some<kMmaRows>(sums[i], weights.mmas[k], rows.behind(k * kMmaBytes));
    }
    warpgroup_commit();
  }

  Context<kPlan>& context_;
  int worker_;
  InputStream<kPlan> input_;
};

}  // namespace soliton::rows
