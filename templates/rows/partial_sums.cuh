// Sums of tiles on their way from the warpgroups that multiply to the threads that finish them: through device memory, or
// rather L2. Of a block of tiles every CTA of a team, which share the columns, puts down what its slice of the columns
// gives; each sums up its own tiles' parts, in the order of the slices.
//
//   [CTA][pass][tile of the pass][row]{16 sums: of each quarter q its rows 2 q, 2 q + 1, 2 q + 8, 2 q + 9}
//
// A CTA has tiles_at_once() tiles at a time, a pass. Sums say themselves that they have arrived. Each is read by one thread,
// which makes it missing again once it has it, phases before it is written next, with the grid counter in between. Where
// one CTA has all columns, passes take turns at two places: its workers meet in each of them, and so nobody puts down sums
// before those of the pass before last are missing.
#pragma once

#include "ops/missing.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class PartialSums {
 public:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;

  /// `slice`: of this CTA; `first`: of the tiles of its block that are at hand.
  SOLITON_DEVICE PartialSums(Context<kPlan>& context, const MatrixPhase& phase, int slice, int first)
      : context_(context),
        slices_(phase.column_slices),
        team_(of_slices(kPlan.num_ctas, slices_)),
        pass_(first / kRowsShape.tiles_at_once()),
        number_(context.cta - slice * team_) {
    if (slices_ == 1) pass_ %= 2;
  }

  /// Puts down a warp's sums of a tile, as it has them from warpgroup_multiply(): lanes that have neighbouring rows of
  /// the tile swap, so that each has a quarter for one row of activations.
  SOLITON_DEVICE void put(int tile, const float (&sums)[kPlan.rows / 2]) const {
    const int lane = opaque(context_.lane);
    const bool odd = lane / 4 % 2 != 0;
    float4* to = sums_of(context_.cta, tile) + (lane % 4 * 2 + (odd ? 1 : 0)) * kQuarters + lane / 8;
    SOLITON_UNROLL
    for (int n = 0; n < kPlan.rows / 8; ++n) {
      const float* own = sums + 4 * n;
      const float low = shuffle_xor(odd ? own[0] : own[1], 4);
      const float high = shuffle_xor(odd ? own[2] : own[3], 4);
      store_relaxed(to + n * 8 * kQuarters,
                    make_float4(publishable(odd ? low : own[0]), publishable(odd ? own[1] : low),
                                publishable(odd ? high : own[2]), publishable(odd ? own[3] : high)));
    }
  }

  SOLITON_DEVICE int slices() const { return slices_; }
  /// Where a quarter of a row's sums of a tile lies, of the first slice of the columns.
  SOLITON_DEVICE float4* first(int tile, int row, int quarter) const {
    return sums_of(number_, tile) + row * kQuarters + quarter;
  }

  /// Adds the slices of pieces `first` to end - 1 to what was before, in order, and puts them to `words`; behind them what
  /// is brought beside them. `before(piece)`, `ahead(piece)`; `from`: of piece `first`, and so much further, behind(i), of
  /// the i-th after it.
  template <int kPieces, class Before, class Ahead, class Behind>
  SOLITON_DEVICE void bring(uint4* words, int first, int end, const Before& before, const Ahead& ahead,
                            float4* from, const Behind& behind) const {
    const int stride =
        team_ * kPlan.sum_passes() * kRowsShape.tiles_at_once() * (kRowsShape.sums_bytes() / 16);
    constexpr int kSlices = 4;  // at once
    float4 sums[kPieces];
    uint4 more[kPieces];
    int places[kPieces];  // from `from` on; -1: there is no such piece
    SOLITON_UNROLL
    for (int i = 0; i < kPieces; ++i) {
      places[i] = first + i < end ? behind(i) : -1;
      sums[i] = before(first + i);
      more[i] = ahead(first + i);
    }
    SOLITON_NO_UNROLL
    for (int slice = 0; slice < slices_; slice += kSlices) {
      float4 parts[kSlices][kPieces] = {};
      const auto on_parts = [&](const auto& visit) {
        SOLITON_UNROLL
        for (int k = 0; k < kSlices; ++k) {
          if (slice + k >= slices_) break;
          SOLITON_UNROLL
          for (int i = 0; i < kPieces; ++i) {
            if (places[i] >= 0) visit(parts[k][i], from + (k * stride + places[i]));
          }
        }
      };
      on_parts([](float4& part, const float4* place) { part = load_relaxed(place); });
      Spin spin(context_.bound());
      for (;;) {
        bool missing = false;
        on_parts([&](float4& part, const float4* place) {
          if (!is_missing(part)) return;
          missing = true;
          part = load_relaxed(place);
        });
        if (!warp_any(missing)) break;
        spin.pause(context_.site(WaitKind::kPartial, number_, 0, kMissing));
      }
      const float none = float_from_bits(kMissing);
      on_parts(
          [&](const float4&, float4* place) { store_relaxed(place, make_float4(none, none, none, none)); });
      SOLITON_UNROLL
      for (int k = 0; k < kSlices; ++k) {
        SOLITON_UNROLL
        for (int i = 0; i < kPieces; ++i) {
          sums[i] = make_float4(sums[i].x + parts[k][i].x, sums[i].y + parts[k][i].y,
                                sums[i].z + parts[k][i].z, sums[i].w + parts[k][i].w);
        }
      }
      from += kSlices * stride;
    }
    SOLITON_UNROLL
    for (int i = 0; i < kPieces; ++i) {
      store_shared(words + i * kWarpLanes, make_uint4(float_bits(sums[i].x), float_bits(sums[i].y),
                                                      float_bits(sums[i].z), float_bits(sums[i].w)));
      store_shared(words + (kPieces + i) * kWarpLanes, more[i]);
    }
  }

 private:
  static constexpr int kQuarters = 4;

  SOLITON_DEVICE float4* sums_of(int cta, int tile) const {
    const int place = (cta * kPlan.sum_passes() + pass_) * kRowsShape.tiles_at_once() + tile;
    return context_.template workspace<float4>(kPlan.sums.offset +
                                               static_cast<int64_t>(place) * kRowsShape.sums_bytes());
  }

  const Context<kPlan>& context_;
  int slices_;
  int team_;  // teams that there are
  int pass_;
  int number_;  // of this CTA's team
};

}  // namespace soliton::rows
