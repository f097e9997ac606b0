// Tiles of tokens of a cache of bytes in attention for one row. A page takes half as long to come as one of f16, and a warp
// that adds one tile at a time mostly waits for itself: so it adds two.
#pragma once

#include "one_row/attention.cuh"
#include "ops/cached_bytes.cuh"

namespace soliton::one_row {

template <const KernelPlan& kPlan>
SOLITON_DEVICE void AttentionState<kPlan>::add_bytes(const unsigned char* keys, const unsigned char* values,
                                                     int lane, int first_token, int first_seen,
                                                     const BlockQuery<kPlan>& query) {
  float scores[kByteTiles][4];
  SOLITON_UNROLL
  for (int t = 0; t < kByteTiles; ++t) {
    score_bytes(keys + t * kKv.tile_bytes(), lane, first_token + t * kTailTokens, query, scores[t]);
    SOLITON_UNROLL
    for (int r = 0; r < 4; ++r) {
      const int token = first_token + t * kTailTokens + lane / 4 + r / 2 * 8;
      if (token >= query.position || (Variant<kPlan>::kHidesKeys && token < first_seen))
        scores[t][r] = -INFINITY;
    }
  }
  weigh(scores);
  SOLITON_UNROLL
  for (int t = 0; t < kByteTiles; ++t) add_byte_values(values + t * kKv.tile_bytes(), lane, scores[t]);
}

/// Of one tile.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void AttentionState<kPlan>::score_bytes(const unsigned char* keys, int lane, int first_token,
                                                       const BlockQuery<kPlan>& query,
                                                       float (&scores)[4]) const {
  float chains[2][4] = {};
  MmaBatch batch;
  SOLITON_UNROLL
  for (int i = 0; i < kSteps; i += 2) {
    const uint4 bytes = load_matrices<kKv.key_stride(), kCoreBytes>(keys + i * kCoreBytes, lane);
    mma_f16(chains[0], operand_of_bytes(bytes.x, bytes.y), query_[i]);
    mma_f16(chains[1], operand_of_bytes(bytes.z, bytes.w), query_[i + 1]);
  }
  batch.end();
  SOLITON_UNROLL
  for (int r = 0; r < 4; ++r) {
    const float sum = chains[0][r] + chains[1][r];
    const float product = (sum + shuffle_xor(sum, 2)) * power_of<kKv>(keys, lane / 4 + r / 2 * 8);
    scores[r] = query.score(product, lane % 2 * 2 + r % 2, first_token + lane / 4 + r / 2 * 8);
  }
}

/// Takes scores into the maxima, and turns them into weights.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void AttentionState<kPlan>::weigh(float (&scores)[kByteTiles][4]) {
  float rescale[2];
  SOLITON_UNROLL
  for (int h = 0; h < 2; ++h) {
    float maximum = larger_of(scores[0][h], scores[0][h + 2]);
    SOLITON_UNROLL
    for (int t = 1; t < kByteTiles; ++t)
      maximum = larger_of(maximum, larger_of(scores[t][h], scores[t][h + 2]));
    SOLITON_UNROLL
    for (int mask = 4; mask < kWarpLanes; mask *= 2) maximum = larger_of(maximum, shuffle_xor(maximum, mask));
    maximum = larger_of(maximum - kByteHeadroom, maximum_[h]);
    rescale[h] = exp2_fast(maximum_[h] - maximum);
    maximum_[h] = maximum;
    sum_[h] *= rescale[h];
    SOLITON_UNROLL
    for (int t = 0; t < kByteTiles; ++t) {
      scores[t][h] = exp2_fast(scores[t][h] - maximum);
      scores[t][h + 2] = exp2_fast(scores[t][h + 2] - maximum);
      sum_[h] += scores[t][h] + scores[t][h + 2];
    }
  }
  SOLITON_UNROLL
  for (int i = 0; i < kSteps; ++i) {
    SOLITON_UNROLL
    for (int r = 0; r < 4; ++r) output_[i][r] *= rescale[r % 2];
  }
}

/// Of one tile.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void AttentionState<kPlan>::add_byte_values(const unsigned char* values, int lane,
                                                           float (&weights)[4]) {
  SOLITON_UNROLL
  for (int r = 0; r < 4; ++r) weights[r] *= power_of<kKv>(values, lane / 4 + r / 2 * 8);
  if (lane % 4 >= 2) {
    SOLITON_UNROLL
    for (int r = 0; r < 4; ++r) weights[r] = low_part_f16(weights[r]);
  }
  const uint2 operand = make_uint2(transpose_8x8(pack_f16(weights[0], weights[1])),
                                   transpose_8x8(pack_f16(weights[2], weights[3])));
  const MmaBatch batch;
  SOLITON_UNROLL
  for (int i = 0; i < kSteps; i += 2) {
    const uint4 bytes = load_matrices<kCoreBytes, 2 * kCoreBytes>(values + i * 2 * kCoreBytes, lane);
    mma_f16(output_[i], operand_of_bytes(bytes.x, bytes.y), operand);
    mma_f16(output_[i + 1], operand_of_bytes(bytes.z, bytes.w), operand);
  }
}

}  // namespace soliton::one_row
