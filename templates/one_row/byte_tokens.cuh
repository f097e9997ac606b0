// Tiles of tokens of a cache of bytes in attention for one row. A page takes half as long to come as one of f16, and a warp
// that adds one tile at a time mostly waits for itself: so it adds two.
#pragma once

#include "one_row/attention_state.cuh"
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
    hide(scores[t], lane, first_token + t * kTailTokens, first_seen, query);
  }
  weigh(scores, kByteHeadroom);
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

/// Of one tile.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void AttentionState<kPlan>::add_byte_values(const unsigned char* values, int lane,
                                                           float (&weights)[4]) {
  SOLITON_UNROLL
  for (int r = 0; r < 4; ++r) weights[r] *= power_of<kKv>(values, lane / 4 + r / 2 * 8);
  const uint2 operand = probabilities(weights, lane);
  const MmaBatch batch;
  SOLITON_UNROLL
  for (int i = 0; i < kSteps; i += 2) {
    const uint4 bytes = load_matrices<kCoreBytes, 2 * kCoreBytes>(values + i * 2 * kCoreBytes, lane);
    mma_f16(output_[i], operand_of_bytes(bytes.x, bytes.y), operand);
    mma_f16(output_[i + 1], operand_of_bytes(bytes.z, bytes.w), operand);
  }
}

}  // namespace soliton::one_row
