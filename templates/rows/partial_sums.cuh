// Sums of tiles on their way from the warpgroups that multiply to the threads that finish them: through device memory, or
// rather L2. Of a block of tiles every CTA of a team, which share the columns, puts down what its slice of the columns
// gives, where the CTA looks that finishes the tile; each sums up its own tiles' parts, in the order of the slices.
//
//   [CTA that finishes them][own tile][slice][row]{16 sums: of each quarter q its rows 2 q, 2 q + 1, 2 q + 8, 2 q + 9}
//
// A CTA multiplies tiles_at_once() tiles at a time, a pass. Where CTAs share columns, sums say themselves that they have
// arrived: the three lowest bits of each word are the tag of the use of its place, and uses are counted over all phases that
// put down sums (layout/tag.h). A reader finds what was written last, in this use or before; and no place is written in one
// use and not again until the seventh after it, for which the verifier looks. Who read the use before has ended its phase
// then: a grid barrier is in between. Where one CTA has all columns, passes take turns at two places, and its workers meet
// before they read and after.
#pragma once

#include "ops/tagged.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

/// Uses of sums in a step before each of its phases, of which the tokens' embedding is the first, and in all.
template <const KernelPlan& kPlan>
struct SumUses {
  uint16_t before[kPlan.recorded_phases()] = {};
  uint16_t all = 0;
  constexpr SumUses() {
    int phase = 1;
    kPlan.for_each_step_phase([&](int i, int) {
      before[phase++] = all;
      all += kPlan.puts_sums(kPlan.phases[i]) ? 1 : 0;
    });
  }
};
template <const KernelPlan& kPlan>
SOLITON_CONSTANT SumUses<kPlan> kSumUses{};

template <const KernelPlan& kPlan>
class PartialSums {
 public:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;

  /// `first`: of the tiles of the block that are at hand.
  SOLITON_DEVICE PartialSums(Context<kPlan>& context, const MatrixPhase& phase, const TileBlock& block,
                             int first)
      : context_(context),
        slices_(phase.column_slices),
        team_(of_slices(kRowsShape.row_blocks == 1 ? kPlan.num_ctas : context.ctas_of(phase), slices_)),
        slice_(block.slice),
        first_own_(block.first_own),
        begin_(slices_ > 1 ? first : first % (2 * kRowsShape.tiles_at_once())),
        tag_(sum_tag(context.step * kSumUses<kPlan>.all + kSumUses<kPlan>.before[context.phase])) {}

  /// Puts down a warp's sums of a tile, as it has them from warpgroup_multiply(): lanes that have neighbouring rows of
  /// the tile swap, so that each has a quarter for one row of activations.
  SOLITON_DEVICE void put(int tile, const float (&sums)[kBlockRows<kPlan> / 2]) const {
    const int lane = opaque(context_.lane);
    put_rows(place_of(tile, lane), sums, lane);
  }
  /// The same of two bands of the rows.
  SOLITON_DEVICE void put(int tile, const BandSums (&sums)[2], const Bands& bands) const {
    const int lane = opaque(context_.lane);
    float4* const to = place_of(tile, lane);
    put_rows(to + bands.first * kBandRows * kQuarters, sums[0], lane);
    put_rows(to + bands.second * kBandRows * kQuarters, sums[1], lane);
  }

  SOLITON_DEVICE int slices() const { return slices_; }
  /// Where a quarter of a row's sums of the CTA's `own_tile`th tile, of those at hand, lies, of the first slice of the columns.
  SOLITON_DEVICE float4* first(int own_tile, int row, int quarter) const {
    return sums_of(context_.cta, begin_ + own_tile) + row * kQuarters + quarter;
  }
  /// From an own tile to the next.
  SOLITON_DEVICE int tile_words() const { return slices_ * kSliceWords; }

  /// A quarter of a row's sums of the CTA's `own_tile`th tile, of those at hand, where one CTA has all columns: its workers have
  /// met.
  SOLITON_DEVICE float4 whole(int own_tile, int row, int quarter) const {
    return without_tag<kSumTagMask>(load_relaxed(first(own_tile, row, quarter)));
  }

  /// Adds the slices of pieces `first` to end - 1 to what was before, in order, and puts them to `words`; behind them what
  /// is brought beside them. `before(piece)`, `ahead(piece)`; `from`: of piece `first`, and so much further, behind(i), of
  /// the i-th after it.
  template <int kPieces, class Before, class Ahead, class Behind>
  SOLITON_DEVICE void bring(uint4* words, int first, int end, const Before& before, const Ahead& ahead,
                            float4* from, const Behind& behind) const {
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
            if (places[i] >= 0) visit(parts[k][i], from + (k * kSliceWords + places[i]));
          }
        }
      };
      on_parts([](float4& part, const float4* place) { part = load_relaxed(place); });
      Spin spin(context_.bound());
      for (;;) {
        bool missing = false;
        on_parts([&](float4& part, const float4* place) {
          if (has_tag<kSumTagMask>(part, tag_)) return;
          missing = true;
          part = load_relaxed(place);
        });
        if (!warp_any(missing)) break;
        spin.pause(context_.site(WaitKind::kPartial, context_.cta - slice_ * team_, tag_, 0));
      }
      SOLITON_UNROLL
      for (int k = 0; k < kSlices; ++k) {
        SOLITON_UNROLL
        for (int i = 0; i < kPieces; ++i) {
          const float4 part = without_tag<kSumTagMask>(parts[k][i]);
          sums[i] =
              make_float4(sums[i].x + part.x, sums[i].y + part.y, sums[i].z + part.z, sums[i].w + part.w);
        }
      }
      from += kSlices * kSliceWords;
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
  static constexpr int kSliceWords = kRowsShape.sums_bytes() / 16;

  /// Where the sums of a tile that a lane puts down begin.
  SOLITON_DEVICE float4* place_of(int tile, int lane) const {
    const bool odd = lane / 4 % 2 != 0;
    const int place = begin_ + tile;  // in the block
    // The CTA of the team whose first own tile it or one a multiple of slices_ before it is.
    const int finisher = context_.cta + (((place - first_own_ + slice_) & (slices_ - 1)) - slice_) * team_;
    return sums_of(finisher, of_slices(place, slices_)) + slice_ * kSliceWords +
           (lane % 4 * 2 + (odd ? 1 : 0)) * kQuarters + lane / 8;
  }
  template <int kSums>
  SOLITON_DEVICE void put_rows(float4* to, const float (&sums)[kSums], int lane) const {
    const bool odd = lane / 4 % 2 != 0;
    SOLITON_UNROLL
    for (int n = 0; n < kSums / 4; ++n) {
      const float* own = sums + 4 * n;
      const float low = shuffle_xor(odd ? own[0] : own[1], 4);
      const float high = shuffle_xor(odd ? own[2] : own[3], 4);
      store_relaxed(to + n * 8 * kQuarters,
                    with_tag<kSumTagMask>(make_float4(odd ? low : own[0], odd ? own[1] : low,
                                                      odd ? high : own[2], odd ? own[3] : high),
                                          tag_));
    }
  }
  SOLITON_DEVICE float4* sums_of(int cta, int own_tile) const {
    constexpr int kPlaces = kPlan.sum_passes() * kRowsShape.tiles_at_once();  // of a CTA
    return context_.template workspace<float4>(kPlan.sums.offset) +
           (static_cast<int64_t>(cta) * kPlaces + own_tile * slices_) * kSliceWords;
  }

  const Context<kPlan>& context_;
  int slices_;
  int team_;  // teams that there are
  int slice_;
  int first_own_;
  int begin_;  // of the tiles at hand
  uint32_t tag_;
};

}  // namespace soliton::rows
