// Norms of what a block gives, before it is added to the residual stream: who reads the stream next does both.
//
// The phase that ends a block publishes its output as it is, and the sum of squares of each tile behind it. Every CTA holds
// the whole stream, each consumer the columns that it reads, and adds to it alike: so nothing more is exchanged than
// where the stream itself is published.
#pragma once

#include "one_row/tile_squares.cuh"

namespace soliton::one_row {

/// The factor by which the output of a block is normed, out of the sums of squares of its tiles. Every warp works it out alike.
template <const KernelPlan& kPlan>
class BlockNorm : public TileSquares<kPlan, kPlan.model.hidden / kTileRows / 4> {
  using Base = TileSquares<kPlan, kPlan.model.hidden / kTileRows / 4>;
  static_assert(kPlan.model.hidden % (kTileRows * 4) == 0, "sums of squares are whole loads");

 public:
  /// `output`: of the block.
  SOLITON_DEVICE BlockNorm(const float* output, int lane) : Base(output + kPlan.model.hidden, lane) {}

  /// Collective.
  SOLITON_DEVICE float scale() const {
    float squares = 0.0f;
    SOLITON_UNROLL
    for (int i = 0; i < Base::kLoads; ++i) squares += this->sum(i);
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) squares += shuffle_xor(squares, mask);
    return rsqrt_fast(squares / kPlan.model.hidden + kPlan.model.norm_epsilon);
  }
};

/// Four neighbouring elements of the residual stream once the block's are added, by their norm's weights and factor.
SOLITON_DEVICE float4 add_block(const float4& stream, const float4& block, const float4& weights,
                                float scale) {
  return make_float4(fmaf(block.x * scale, weights.x, stream.x), fmaf(block.y * scale, weights.y, stream.y),
                     fmaf(block.z * scale, weights.z, stream.z), fmaf(block.w * scale, weights.w, stream.w));
}

}  // namespace soliton::one_row
