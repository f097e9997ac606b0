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
    const int groups = ceil_divide(count, kGroupTiles);
    const int own = (groups + kWarpgroups - 1 - warpgroup()) / kWarpgroups;
    const int chunks = ceil_divide(block.end_column - block.first_column, kRowsShape.chunk_columns());
    if (own == 2) {
      if constexpr (kMostGroups > 1) multiply_groups<2>(stream, chunks, count, put);
    } else if (own == 1) {
      multiply_groups<1>(stream, chunks, count, put);
    } else {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        input_.wait();
        pass(stream, groups);
        input_.release();
      }
    }
  }

 private:
  static constexpr int kWarpgroups = kWorkers / kGroupWarps;
  static constexpr int kSteps = kRowsShape.chunk_columns() / kMmaColumns;
  static constexpr int kStepBytes = kPlan.rows * kMmaColumns * 2;
  static_assert(kRowsShape.tiles_per_slot == kGroupTiles, "a slot is a group's chunk of columns");
  static constexpr int kMostGroups = kRowsShape.tiles_at_once() / (kWarpgroups * kGroupTiles);
  static_assert(kMostGroups == 1 || kMostGroups == 2);

  /// What a warp has of a slot: its tile's weights. Multiplied together, as every set of products costs time.
  struct Weights {
    uint4 steps[kSteps];
  };

  SOLITON_DEVICE int warpgroup() const { return worker_ / kGroupWarps; }
  SOLITON_DEVICE int tile_of_group() const { return worker_ % kGroupWarps; }

  template <int kGroups, class Put>
  SOLITON_DEVICE void multiply_groups(PageStream<kPlan>& stream, int chunks, int count, const Put& put) {
    float sums[kGroups][kPlan.rows / 2] = {};
    const int groups = ceil_divide(count, kGroupTiles);
    const int last =
        groups - 1 - ((kGroups - 1) * kWarpgroups + warpgroup());  // of the others', behind the last own
    // A warp whose tile is not there multiplies zeros, and nobody looks at it.
    const int tile = (groups - 1) * kGroupTiles + tile_of_group();
    const bool last_is_there = tile < count;
    SOLITON_NO_UNROLL
    for (; chunks > 0; --chunks) {
      const unsigned char* input = input_.wait();
      SOLITON_UNROLL
      for (int i = 0; i < kGroups; ++i) {
        pass(stream, i == 0 ? warpgroup() : kWarpgroups - 1);
        const int slot = stream.wait();
        const Weights weights = load(slot, i * kWarpgroups + warpgroup() < groups - 1 || last_is_there);
        stream.release(slot);
        issue(sums[i], weights, input);
        warpgroup_wait(sums[i]);
      }
      pass(stream, last);
      input_.release();
    }
    SOLITON_UNROLL
    for (int i = 0; i < kGroups; ++i) {
      const int own = (i * kWarpgroups + warpgroup()) * kGroupTiles + tile_of_group();
      if (own < count) put(own, sums[i]);
    }
  }

  /// Slots of the other warpgroup: every worker meets every slot.
  SOLITON_DEVICE void pass(PageStream<kPlan>& stream, int slots) const {
    SOLITON_NO_UNROLL
    for (; slots > 0; --slots) stream.release(stream.wait());
  }

  /// A slot's weights of this warp's tile, if it is there.
  SOLITON_DEVICE Weights load(int slot, bool is_there) const {
    const uint4* fragments =
        reinterpret_cast<const uint4*>(context_.region(RegionId::kPages) + slot * kPlan.slot_bytes +
                                       tile_of_group() * (kPageBytes / kGroupTiles)) +
        context_.lane;
    Weights weights;
    SOLITON_UNROLL
    for (int k = 0; k < kSteps; ++k) {
      weights.steps[k] = make_uint4(0, 0, 0, 0);
      if (is_there) weights.steps[k] = load_shared(fragments + k * kWarpLanes);
    }
    return weights;
  }

  SOLITON_DEVICE void issue(float (&sums)[kPlan.rows / 2], const Weights& weights,
                            const unsigned char* input) const {
    warpgroup_fence();
    SOLITON_UNROLL
    for (int k = 0; k < kSteps; ++k) warpgroup_multiply(sums, weights.steps[k], input + k * kStepBytes);
    warpgroup_commit();
  }

  Context<kPlan>& context_;
  int worker_;
  InputStream<kPlan> input_;
};

}  // namespace soliton::rows
