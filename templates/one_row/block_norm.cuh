// Norms of what a block gives, before it is added to the residual stream: who reads the stream next does both. For LayerNorm
// it loses its mean in place of that.
//
// The phase that ends a block publishes its output as it is, and the sum of squares of each tile behind it, or the sum. Every CTA holds
// the whole stream, each consumer the columns that it reads, and adds to it alike: so nothing more is exchanged than
// where the stream itself is published.
#pragma once

#include "one_row/tile_squares.cuh"

namespace soliton::one_row {

/// What there is to know of all of a block's output, out of the sums of its tiles. Every warp works it out alike.
template <const KernelPlan& kPlan>
class BlockNorm : public TileSquares<kPlan, kPlan.model.hidden / kTileRows / 4> {
  using Base = TileSquares<kPlan, kPlan.model.hidden / kTileRows / 4>;
  static_assert(kPlan.model.hidden % (kTileRows * 4) == 0, "sums of tiles are whole loads");

 public:
  /// `output`: of the block.
  SOLITON_DEVICE BlockNorm(const float* output, int lane) : Base(output + kPlan.model.hidden, lane) {}

  /// The factor by which it is normed. Collective.
  SOLITON_DEVICE float scale() const {
    return rsqrt_fast(total() / kPlan.model.hidden + kPlan.model.norm_epsilon);
  }
  /// Collective.
  SOLITON_DEVICE float mean() const { return total() / kPlan.model.hidden; }

 private:
  SOLITON_DEVICE float total() const {
    float sum = 0.0f;
    SOLITON_UNROLL
    for (int i = 0; i < Base::kLoads; ++i) sum += this->sum(i);
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    return sum;
  }
};

/// Four neighbouring elements of the residual stream once the block's are added, by their norm's weights and factor.
SOLITON_DEVICE float4 add_block(const float4& stream, const float4& block, const float4& weights,
                                float scale) {
  return make_float4(fmaf(block.x * scale, weights.x, stream.x), fmaf(block.y * scale, weights.y, stream.y),
                     fmaf(block.z * scale, weights.z, stream.z), fmaf(block.w * scale, weights.w, stream.w));
}

/// The same of a block that is not normed, but loses its mean.
SOLITON_DEVICE float4 add_centred(const float4& stream, const float4& block, float mean) {
  return make_float4(stream.x + (block.x - mean), stream.y + (block.y - mean), stream.z + (block.z - mean),
                     stream.w + (block.w - mean));
}

}  // namespace soliton::one_row
