// What becomes of the tiles that warpgroups multiply: sums come through the workspace, where CTAs share the columns of a tile or
// its outputs need them side by side; gate and up are finished by the warp that has them in its registers.
#pragma once

#include "rows/epilogue.cuh"

namespace soliton::rows {

/// Pieces of tiles that a thread finishes, one of its rows each: of all of them, or of those in some bands.
template <const KernelPlan& kPlan>
class OwnPieces {
  static constexpr int kRows = kShape<kPlan>.rows_per_thread();
  static_assert(!multiplies_bands(kPlan) || kRows == kBands, "a row of each band");

 public:
  SOLITON_DEVICE explicit OwnPieces(const Bands& bands) : bands_(bands) {}

  /// Of a tile.
  SOLITON_DEVICE int rows() const { return is_whole() ? kRows : bands_.first == bands_.second ? 1 : 2; }
  SOLITON_DEVICE int tile(int piece) const { return is_whole() ? piece / kRows : piece / rows(); }
  SOLITON_DEVICE int row(int piece) const {
    if (is_whole()) return piece % kRows;
    return piece % rows() == 0 ? bands_.first : bands_.second;
  }

 private:
  SOLITON_DEVICE bool is_whole() const { return !multiplies_bands(kPlan) || bands_.are_all; }

  Bands bands_;
};

/// Finishes this team's of the CTA's own tiles of a block, of those from its tile `begin` to `end_tile` - 1: `sums` begin
/// with the former. A thread brings what it needs of a few at once, and keeps it in shared memory: so the code that
/// finishes a tile is there once, and the loads are on their way together.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::finish_tiles(const MatrixInstance& at, const TileRun& run,
                                                  const PartialSums<kPlan>& sums, int begin, int end_tile) {
  const int first = of_slices(begin, sums.slices()) + team();
  const int most = of_slices(end_tile - begin + sums.slices() - 1, sums.slices()) - team();
  const int left = run.count - first < most ? run.count - first : most;
  const int count = left <= 0 ? 0 : ceil_divide(left, kTeams);
  if constexpr (kSumsBeginWithStream && kOwnRows % kRowsAtOnce == 0 && !kPlan.shares_columns() &&
                !OutputBiases<kPlan>::kIsThere) {
    if (at.phase.output == OutputKind::kResidual) return end_whole_tiles(at, run, sums, begin, first, count);
  }
  constexpr int kBroughtWords = kRowsShape.brought_words;
  constexpr int kAtOnce = kBroughtWords / 2;  // sums, and what is brought beside them
  uint4* words = context_.template region<uint4>(RegionId::kTiles) +
                 opaque(worker_) * kBroughtWords * kWarpLanes + context_.lane;
  const OwnPieces<kPlan> at_hand(context_.bands_of(at.phase));
  const auto own_tile = [&](int piece) { return first + at_hand.tile(piece) * kTeams; };
  const auto tile_at = [&](int piece) { return run.first + own_tile(piece) * run.stride; };
  const int pieces = count * at_hand.rows();
  SOLITON_NO_UNROLL
  for (int piece = 0; piece < pieces; piece += kAtOnce) {
    const int end = pieces - piece < kAtOnce ? pieces : piece + kAtOnce;
    own_row_ = at_hand.row(piece);
    float4* const from = sums.first(own_tile(piece) - begin, row_of_block(), quarter());
    const auto behind = [&](int i) {
      return (at_hand.tile(piece + i) - at_hand.tile(piece)) * kTeams * sums.tile_words() +
             (at_hand.row(piece + i) - at_hand.row(piece)) * kRowStride * kQuarters;
    };
    const auto before = [&](int i) {
      own_row_ = at_hand.row(i);
      const bool begins = kSumsBeginWithStream && at.phase.output == OutputKind::kResidual && i < end;
      return begins ? load_kept(own_tile(i)) : make_float4(0, 0, 0, 0);
    };
    const auto ahead = [&](int i) {
      own_row_ = at_hand.row(i);
      return i < end ? load_ahead(at, tile_at(i)).words : make_uint4(0, 0, 0, 0);
    };
    sums.template bring<kAtOnce>(words, piece, end, before, ahead, from, behind);
    SOLITON_NO_UNROLL
    for (int i = piece; i < end; ++i) {
      own_row_ = at_hand.row(i);
      scale_ = at.phase.input == InputKind::kNormed ? load_shared(context_.factors() + row_of_block()) : 1.0f;
      const uint4 v = load_shared(words + (i - piece) * kWarpLanes);
      const uint4 more = load_shared(words + (kAtOnce + i - piece) * kWarpLanes);
      finish(at, tile_at(i), own_tile(i),
             {make_float2(float_from_bits(v.x), float_from_bits(v.y)),
              make_float2(float_from_bits(v.z), float_from_bits(v.w))},
             more);
    }
  }
}

/// The same of the residual stream where no columns are shared: registers, no longer full, hold a piece while the next one is on
/// its way.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::end_whole_tiles(const MatrixInstance& at, const TileRun& run,
                                                     const PartialSums<kPlan>& sums, int begin, int first,
                                                     int count) {
  /// What a thread needs of one of its tiles, of some of its rows.
  struct OwnPiece {
    float4 sums[kRowsAtOnce];
    float4 before[kRowsAtOnce];
    uint4 weights;
  };
  constexpr int kPieces = kOwnRows / kRowsAtOnce;  // of a tile
  static_assert(kPieces * kRowsAtOnce == kOwnRows, "all of a thread's rows");
  const int pieces = count * kPieces;
  const auto own_tile = [&](int piece) { return first + piece / kPieces * kTeams; };
  const auto tile_at = [&](int piece) { return run.first + own_tile(piece) * run.stride; };
  const auto on_rows = [&](int piece, const auto& visit) {
    SOLITON_UNROLL
    for (int k = 0; k < kRowsAtOnce; ++k) {
      own_row_ = piece % kPieces * kRowsAtOnce + k;
      visit(k);
    }
  };
  const auto load = [&](OwnPiece& own, int piece) {
    on_rows(piece, [&](int k) {
      own.sums[k] = sums.whole(own_tile(piece) - begin, row_of_block(), quarter());
      own.before[k] = load_kept(own_tile(piece));
    });
    own.weights = load_ahead(at, tile_at(piece)).words;
  };
  OwnPiece next = {};
  if (pieces > 0) load(next, 0);
  SOLITON_NO_UNROLL
  for (int piece = 0; piece < pieces; ++piece) {
    const OwnPiece own = next;
    if (piece + 1 < pieces) load(next, piece + 1);
    on_rows(piece, [&](int k) {
      const float4 v = own.sums[k];
      const float4 before = own.before[k];
      this->end_block(
          at.phase.output_vector, tile_at(piece), own_tile(piece),
          {make_float2(v.x + before.x, v.y + before.y), make_float2(v.z + before.z, v.w + before.w)},
          own.weights);
    });
  }
}

/// gate and up of a tile as a warp has them from warpgroup_multiply(), number `index` of a run that has all columns.
/// Lanes of neighbouring elements swap, so that each has both for one row.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::swiglu_of_warp(const MatrixInstance& at, const TileRun& run, int index,
                                                    const float (&sums)[kBlockRows<kPlan> / 2]) const {
  constexpr int kBlockWords = 8 * 16 / 4;  // 8 rows of a core matrix
  const int tile = run.first + index * run.stride;
  const int lane = opaque(context_.lane);
  const int element = lane / 4;
  const bool odd = element % 2 != 0;
  const int row = lane % 4 * 2;  // and the next, of every 8
  const float2* factors = reinterpret_cast<const float2*>(context_.factors() + row);
  constexpr int kHalves = kPlan.model.ungated ? 2 : 1;  // of 8 elements, that the tile's rows are
  float biases[2] = {};                                 // of this lane's two rows of the tile
  if constexpr (kPlan.model.up_biases > 0) {
    const OutputBiases<kPlan> of_layer(context_, at.layer);
    biases[0] = of_layer.of_up_row(tile, element);
    biases[1] = of_layer.of_up_row(tile, element + 8);
  }
  float2 own = make_float2(1.0f, 1.0f);  // factors of the tile's lower rows, and of the upper
  if constexpr (RowFactors<kPlan>::kIsThere) own = this->tile_factors(at, tile);
  const auto times = [](float sum, float factor) { return RowFactors<kPlan>::kIsThere ? sum * factor : sum; };
  const auto activated = [&](int half, float gate, float up, float scale) {
    constexpr float kScale = kInputScale<kPlan>;
    if constexpr (kPlan.model.up_biases == 0) return gated(gate, up, scale) * kScale;
    return gated(gate * scale + biases[half], up * scale + biases[1], 1.0f) * kScale;
  };
  SOLITON_UNROLL
  for (int half = 0; half < kHalves; ++half) {
    uint32_t* to = reinterpret_cast<uint32_t*>(
        context_.template workspace<unsigned char>(at.phase.output_vector.offset) +
        activation_offset(kRowsShape, 0, context_.first_row() + row + (odd ? 1 : 0),
                          tile * (8 * kHalves) + half * 8 + element / 2 * 2));
    SOLITON_UNROLL
    for (int n = 0; n < kBlockRows<kPlan> / 8; ++n) {
      const float2 scales = load_shared(factors + n * 4);
      const float factor = half == 0 ? own.x : own.y;
      const float low =
          activated(half, times(sums[4 * n + 2 * half], factor), times(sums[4 * n + 2], own.y), scales.x);
      const float high =
          activated(half, times(sums[4 * n + 2 * half + 1], factor), times(sums[4 * n + 3], own.y), scales.y);
      const float other = shuffle_xor(odd ? low : high, 4);
      // Registers are full: where there is one part, nothing is to outlive its packing.
      context_.publish(to + n * kBlockWords, odd ? pack_bf16(other, high) : pack_bf16(low, other));
      if constexpr (kRowsShape.parts == 2) {
        const float2 pair = odd ? make_float2(other, high) : make_float2(low, other);
        context_.publish(to + (kBlockRows<kPlan> / 8 + n) * kBlockWords,
                         pack_bf16(low_part(pair.x), low_part(pair.y)));
      }
    }
  }
}

}  // namespace soliton::rows
