// Sums of tiles on their way from the warpgroups that multiply to the threads that finish them: through device memory, or
// rather L2. Of a block of tiles every CTA of a team, which share the columns, puts down what its slice of the columns
// gives; then they meet; then each sums up its own tiles' parts, in the order of the slices.
//
//   [CTA][half][tile of the block][row]{16 sums: of each quarter q its rows 2 q, 2 q + 1, 2 q + 8, 2 q + 9}
//
// A CTA has tiles_at_once() tiles at a time. The next ones go to the other half: whoever puts down sums of the ones after
// that has met those who have read the first.
#pragma once

#include "rows/context.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class PartialSums {
 public:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;

  /// `first`: of the tiles of the block that are at hand.
  SOLITON_DEVICE PartialSums(Context<kPlan>& context, const MatrixInstance& at, const TileBlock& block,
                             int first)
      : context_(context),
        slices_(at.phase.column_slices),
        team_(kPlan.num_ctas / at.phase.column_slices),
        half_(first / kRowsShape.tiles_at_once() % 2),
        number_(context.cta % team_) {
    const int passes = ceil_divide(block.tiles.count, kRowsShape.tiles_at_once());
    const int layers = at.phase.layer_stride == 0 ? 1 : kPlan.model.num_layers;
    line_ = at.phase.first_counter + number_;
    target_ = static_cast<uint32_t>((context.step * layers + at.layer) * passes +
                                    first / kRowsShape.tiles_at_once() + 1) *
              kWorkers * slices_;
  }

  /// Puts down a warp's sums of a tile, as it has them from warpgroup_multiply(): lanes that have neighbouring rows of
  /// the tile swap, so that each has all of two for one row of activations.
  SOLITON_DEVICE void put(int tile, const float (&sums)[kPlan.rows / 2]) const {
    const int lane = context_.lane;
    const bool odd = lane / 4 % 2 != 0;
    float4* to = sums_of(context_.cta, tile) + (lane % 4 * 2 + (odd ? 1 : 0)) * kQuarters + lane / 8;
    SOLITON_UNROLL
    for (int n = 0; n < kPlan.rows / 8; ++n) {
      const float* own = sums + 4 * n;
      const float low = shuffle_xor(odd ? own[0] : own[1], 4);
      const float high = shuffle_xor(odd ? own[2] : own[3], 4);
      store_global(to + n * 8 * kQuarters,
                   odd ? make_float4(low, own[1], high, own[3]) : make_float4(own[0], low, own[2], high));
    }
  }

  /// Waits until all CTAs of the team have put down theirs. Collective; pairs with itself in all their workers. Where one
  /// CTA has all columns, its workers meet by themselves.
  SOLITON_DEVICE void meet(uint32_t& parity) const {
    if (slices_ == 1) {
      context_.meet_workers(parity);
      return;
    }
    warp_sync();
    if (context_.lane == 0) {
      uint32_t* counter = context_.counter(kFirstSliceWord + line_ * kCounterLineWords);
      add_release(counter, 1);
      Spin spin(context_.bound());
      for (;;) {
        const uint32_t seen = load_acquire(counter);
        if (static_cast<int32_t>(seen - target_) >= 0) break;
        spin.go_on(context_.site(WaitKind::kPartial, line_, target_, seen));
      }
    }
    warp_sync();
  }

  SOLITON_DEVICE int slices() const { return slices_; }
  /// A quarter of a row's sums of a tile, over a slice of the columns.
  SOLITON_DEVICE float4 load(int slice, int tile, int row, int quarter) const {
    return load_global(sums_of(number_ + slice * team_, tile) + row * kQuarters + quarter);
  }

  /// Adds the slices of pieces `first` to end - 1 to what was before, in order, and puts them to `words`. `before(piece)`,
  /// `load(slice, piece)`.
  template <int kPieces, int kSlices, class Before, class Load>
  SOLITON_DEVICE void bring(uint4* words, int first, int end, const Before& before, const Load& load) const {
    float4 sums[kPieces];
    SOLITON_UNROLL
    for (int i = 0; i < kPieces; ++i) sums[i] = before(first + i);
    SOLITON_NO_UNROLL
    for (int slice = 0; slice < slices_; slice += kSlices) {
      float4 parts[kSlices][kPieces];
      SOLITON_UNROLL
      for (int k = 0; k < kSlices; ++k) {
        SOLITON_UNROLL
        for (int i = 0; i < kPieces; ++i) {
          parts[k][i] = make_float4(0, 0, 0, 0);
          if (slice + k < slices_ && first + i < end) parts[k][i] = load(slice + k, first + i);
        }
      }
      SOLITON_UNROLL
      for (int k = 0; k < kSlices; ++k) {
        SOLITON_UNROLL
        for (int i = 0; i < kPieces; ++i) {
          sums[i] = make_float4(sums[i].x + parts[k][i].x, sums[i].y + parts[k][i].y,
                                sums[i].z + parts[k][i].z, sums[i].w + parts[k][i].w);
        }
      }
    }
    SOLITON_UNROLL
    for (int i = 0; i < kPieces; ++i) {
      store_shared(words + i * kWarpLanes, make_uint4(float_bits(sums[i].x), float_bits(sums[i].y),
                                                      float_bits(sums[i].z), float_bits(sums[i].w)));
    }
  }

 private:
  static constexpr int kQuarters = 4;

  SOLITON_DEVICE float4* sums_of(int cta, int tile) const {
    const int place = (cta * 2 + half_) * kRowsShape.tiles_at_once() + tile;
    return context_.template workspace<float4>(kPlan.sums.offset +
                                               static_cast<int64_t>(place) * kRowsShape.sums_bytes());
  }

  const Context<kPlan>& context_;
  int slices_;
  int team_;  // teams that there are
  int half_;
  int number_;  // of this CTA's team
  int line_;
  uint32_t target_;
};

}  // namespace soliton::rows
