// The matrix work where warpgroups multiply: weights are the operand in registers, in the order in which pages have them,
// activations the one in shared memory. Of every four tiles a warp has one, and a warpgroup every second four.
#pragma once

#include "rows/input_stream.cuh"
#include "rows/page_stream.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class WarpgroupMultiplier {
 public:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;

  SOLITON_DEVICE WarpgroupMultiplier(Context<kPlan>& context, int worker)
      : context_(context), worker_(worker), input_(context) {}

  /// Multiplies the next `count` tiles of a block, tiles_at_once() at most, by its columns, and puts down their sums
  /// with `put(tile, sums)`.
  template <class Put>
  SOLITON_DEVICE void multiply(PageStream<kPlan>& stream, const TileBlock& block, int count, const Put& put) {
    const int chunks = block.num_chunks(kRowsShape.chunk_columns());
    const int slots =
        ceil_divide(count, kWarpgroups * kGroupTiles);  // of each warpgroup and chunk; some are empty
    const int own = ceil_divide(count - warpgroup() * kGroupTiles, kWarpgroups * kGroupTiles);
    if (own == 2) {
      multiply_groups<2>(stream, chunks, 0, count, put);
    } else if (own == 1) {
      multiply_groups<1>(stream, chunks, slots - own, count, put);
    } else {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        input_.wait();
        pass(stream, slots);
        input_.release();
      }
    }
  }

 private:
  static constexpr int kSteps = kRowsShape.chunk_columns() / kMmaColumns;
  static constexpr int kSets = 2;  // that a slot's products are made in
  static constexpr int kSetSteps = kSteps / kSets;
  static constexpr int kStepBytes = kPlan.rows * kMmaColumns * 2;
  static_assert(kRowsShape.tiles_per_slot == kGroupTiles, "a slot is a group's chunk of columns");
  static_assert(kRowsShape.tiles_at_once() == 2 * kWarpgroups * kGroupTiles,
                "a warpgroup has up to two groups");

  /// What a warp has of a slot at once: weights of its tile for a set of products.
  struct Weights {
    uint4 steps[kSetSteps];
  };

  SOLITON_DEVICE int warpgroup() const { return worker_ / kGroupWarps; }
  SOLITON_DEVICE int tile_of_group() const { return worker_ % kGroupWarps; }

  /// While one set of products is made, the weights of the next are loaded.
  template <int kGroups, class Put>
  SOLITON_DEVICE void multiply_groups(PageStream<kPlan>& stream, int chunks, int empty_slots, int count,
                                      const Put& put) {
    float sums[kGroups][kPlan.rows / 2] = {};
    Weights weights[2];
    // What a warp multiplies whose tile is not there nobody looks at.
    const int last = ((kGroups - 1) * kWarpgroups + warpgroup()) * kGroupTiles + tile_of_group();
    const int last_tile = last < count ? tile_of_group() : 0;
    SOLITON_NO_UNROLL
    for (; chunks > 0; --chunks) {
      const CoreMatrices input(input_.wait());
      SOLITON_UNROLL
      for (int i = 0; i < kGroups; ++i) {
        const int slot = stream.wait_turn(warpgroup());
        SOLITON_UNROLL
        for (int set = 0; set < kSets; ++set) {
          load(weights[set % 2], slot, set, i < kGroups - 1 ? tile_of_group() : last_tile);
          if (set == kSets - 1) stream.release_turn(slot);
          issue(sums[i], weights[set % 2], input.behind(set * kSetSteps * kStepBytes));
          if (i < kGroups - 1 || set < kSets - 1) warpgroup_wait_but_last();
        }
      }
      if (kGroups == 1) pass(stream, empty_slots);
      SOLITON_UNROLL
      for (int i = 0; i < kGroups; ++i) warpgroup_wait(sums[i]);
      input_.release();
    }
    SOLITON_UNROLL
    for (int i = 0; i < kGroups; ++i) {
      const int own = (i * kWarpgroups + warpgroup()) * kGroupTiles + tile_of_group();
      if (own < count) put(own, sums[i]);
    }
  }

  /// Slots that are empty.
  SOLITON_DEVICE void pass(PageStream<kPlan>& stream, int slots) const {
    for (; slots > 0; --slots) stream.release_turn(stream.wait_turn(warpgroup()));
  }

  SOLITON_DEVICE void load(Weights& weights, int slot, int set, int tile) const {
    const uint4* fragments =
        reinterpret_cast<const uint4*>(context_.region(RegionId::kPages) + slot * kPlan.slot_bytes +
                                       tile * (kPageBytes / kGroupTiles)) +
        context_.lane;
    SOLITON_UNROLL
    for (int k = 0; k < kSetSteps; ++k)
      weights.steps[k] = load_shared(fragments + (set * kSetSteps + k) * kWarpLanes);
  }

  SOLITON_DEVICE void issue(float (&sums)[kPlan.rows / 2], const Weights& weights, CoreMatrices input) const {
    warpgroup_fence();
    SOLITON_UNROLL
    for (int k = 0; k < kSetSteps; ++k)
      warpgroup_multiply(sums, weights.steps[k], input.behind(k * kStepBytes));
    warpgroup_commit();
  }

  Context<kPlan>& context_;
  int worker_;
  InputStream<kPlan> input_;
};

}  // namespace soliton::rows
