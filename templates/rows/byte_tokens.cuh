// Tiles of tokens of a cache of bytes in the attention of the rows of a tree: those of its pages, and the step's own, which are
// f16 still. A step sees its own as the next step will see them, so that no result depends on what is fed together.
#pragma once

#include "rows/query_softmax.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
template <class Position>
SOLITON_DEVICE void QueryState<kPlan>::add_bytes(const unsigned char* shared, const Tokens& tokens,
                                                 const Variant<kPlan>& variant, const Places& places,
                                                 const Position& position, int lane) {
  float scores[kTogether][2][4] = {};
  const auto is_fresh = [&](int t) { return (tokens.fresh >> t & 1) != 0; };
  if (tokens.fresh == 0) {
    score_bytes(shared, tokens.keys, scores, lane);
  } else {
    SOLITON_UNROLL
    for (int t = 0; t < kTogether; ++t) {
      if (is_fresh(t)) {
        score_fresh(shared + tokens.keys[t], scores[t], lane);
      } else {
        const int keys[] = {tokens.keys[t]};
        score_bytes(shared, keys, reinterpret_cast<float(&)[1][2][4]>(scores[t]), lane);
      }
    }
  }
  change(scores, variant, places, position);
  if (!tokens.all_seen) hide(tokens.seen, scores);
  raise_maxima(scores);
  exponentiate(scores);
  SOLITON_UNROLL
  for (int t = 0; t < kTogether; ++t) {
    if (is_fresh(t)) continue;
    SOLITON_UNROLL
    for (int n = 0; n < 2; ++n) {
      const float2 powers = powers_of<kKv>(shared + tokens.values[t], lane % 4 * 2 + n * 8);
      SOLITON_UNROLL
      for (int i = 0; i < 2 * kQueries; ++i) scores[t][n][i] *= i % 2 == 0 ? powers.x : powers.y;
    }
  }
  uint4 weights[kTogether][kParts];
  pack_weights(scores, weights);
  if (tokens.fresh == 0) {
    add_byte_values(shared, tokens.values, weights, lane);
    return;
  }
  SOLITON_UNROLL
  for (int t = 0; t < kTogether; ++t) {
    if (is_fresh(t)) {
      add_fresh_values(shared + tokens.values[t], weights[t], lane);
    } else {
      const int values[] = {tokens.values[t]};
      add_byte_values(shared, values, reinterpret_cast<const uint4(&)[1][kParts]>(weights[t]), lane);
    }
  }
}

/// Scores of tiles of pages: bytes of 16 dims of 8 tokens are both registers of operand b.
template <const KernelPlan& kPlan>
template <int kTiles>
SOLITON_DEVICE void QueryState<kPlan>::score_bytes(const unsigned char* shared, const int (&keys)[kTiles],
                                                   float (&scores)[kTiles][2][4], int lane) const {
  MmaBatch batch;
  SOLITON_UNROLL
  for (int i = 0; i < kSteps; i += 2) {
    uint4 bytes[kTiles];
    SOLITON_UNROLL
    for (int t = 0; t < kTiles; ++t)
      bytes[t] = load_matrices<kKv.key_stride(), kCoreBytes>(shared + keys[t] + i * kCoreBytes, lane);
    SOLITON_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const uint4 first = kHeld > 0 ? held_[i] : load_query(part, i, lane);
      const uint4 second = kHeld > 0 ? held_[i + 1] : load_query(part, i + 1, lane);
      SOLITON_UNROLL
      for (int t = 0; t < kTiles; ++t) {
        mma_f16(scores[t][0], first, four_e4m3_to_f16(bytes[t].x));
        mma_f16(scores[t][1], first, four_e4m3_to_f16(bytes[t].y));
        mma_f16(scores[t][0], second, four_e4m3_to_f16(bytes[t].z));
        mma_f16(scores[t][1], second, four_e4m3_to_f16(bytes[t].w));
      }
    }
  }
  batch.end();
  SOLITON_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    SOLITON_UNROLL
    for (int n = 0; n < 2; ++n) {
      const float2 powers = powers_of<kKv>(shared + keys[t], lane % 4 * 2 + n * 8);
      SOLITON_UNROLL
      for (int i = 0; i < 4; ++i) scores[t][n][i] *= i % 2 == 0 ? powers.x : powers.y;
    }
  }
}

template <const KernelPlan& kPlan>
template <int kTiles>
SOLITON_DEVICE void QueryState<kPlan>::add_byte_values(const unsigned char* shared,
                                                       const int (&values)[kTiles],
                                                       const uint4 (&weights)[kTiles][kParts], int lane) {
  const unsigned char* first = shared + share() * kOutputSteps * 2 * kCoreBytes;
  const MmaBatch batch;
  SOLITON_UNROLL
  for (int i = 0; i < kOutputSteps; i += 2) {
    SOLITON_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      const uint4 bytes =
          load_matrices<kCoreBytes, 2 * kCoreBytes>(first + values[t] + i * 2 * kCoreBytes, lane);
      const uint32_t dims[] = {bytes.x, bytes.y, bytes.z, bytes.w};
      SOLITON_UNROLL
      for (int n = 0; n < 4; ++n) {
        const uint2 operand = four_e4m3_to_f16(dims[n]);
        SOLITON_UNROLL
        for (int part = 0; part < kParts; ++part) mma_f16(output_[2 * i + n], weights[t][part], operand);
      }
    }
  }
}

/// Scores of a tile of the step's own tokens: a lane has dims of two of them.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void QueryState<kPlan>::score_fresh(const unsigned char* keys, float (&scores)[2][4],
                                                   int lane) const {
  constexpr int kStride = kKv.in_f16().key_stride();
  float largest[2] = {};
  SOLITON_NO_UNROLL
  for (int i = 0; i < kSteps; ++i) {
    const uint4 k = load_pairs<kStride>(keys + i * 2 * kCoreBytes, lane);
    largest[0] = larger_magnitude(larger_magnitude(largest[0], unpack_f16(k.x)), unpack_f16(k.y));
    largest[1] = larger_magnitude(larger_magnitude(largest[1], unpack_f16(k.z)), unpack_f16(k.w));
  }
  SOLITON_UNROLL
  for (int mask = 1; mask < 4; mask *= 2) {
    SOLITON_UNROLL
    for (float& each : largest) each = larger_of(each, shuffle_xor(each, mask));
  }
  const PairOfBytes first(e4m3_exponent(largest[0]));
  const PairOfBytes second(e4m3_exponent(largest[1]));
  const MmaBatch batch;
  SOLITON_NO_UNROLL
  for (int i = 0; i < kSteps; ++i) {
    const uint4 k = load_pairs<kStride>(keys + i * 2 * kCoreBytes, lane);
    const uint2 operands[] = {make_uint2(first.rounded(k.x), first.rounded(k.y)),
                              make_uint2(second.rounded(k.z), second.rounded(k.w))};
    SOLITON_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const uint4 query = load_query(part, i, lane);
      mma_f16(scores[0], query, operands[0]);
      mma_f16(scores[1], query, operands[1]);
    }
  }
}

/// Values of such a tile: a lane has dims of four tokens, two neighbours in a register.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void QueryState<kPlan>::add_fresh_values(const unsigned char* values,
                                                        const uint4 (&weights)[kParts], int lane) {
  float2 largest[2] = {make_float2(0, 0), make_float2(0, 0)};
  const auto take = [](float2& most, uint32_t packed) {
    const float2 pair = unpack_f16(packed);
    most = make_float2(larger_of(most.x, fabsf(pair.x)), larger_of(most.y, fabsf(pair.y)));
  };
  SOLITON_NO_UNROLL
  for (int i = 0; i < kSteps; ++i) {
    const uint4 v = load_pairs<kKv.kValueStride>(values + i * kFragmentBytes, lane);
    take(largest[0], v.x);
    take(largest[1], v.y);
    take(largest[0], v.z);
    take(largest[1], v.w);
  }
  SOLITON_UNROLL
  for (int mask = 4; mask < kWarpLanes; mask *= 2) {
    SOLITON_UNROLL
    for (float2& each : largest) {
      each = make_float2(larger_of(each.x, shuffle_xor(each.x, mask)),
                         larger_of(each.y, shuffle_xor(each.y, mask)));
    }
  }
  const PairOfBytes first(e4m3_exponent(largest[0].x), e4m3_exponent(largest[0].y));
  const PairOfBytes second(e4m3_exponent(largest[1].x), e4m3_exponent(largest[1].y));
  const MmaBatch batch;
  SOLITON_UNROLL
  for (int i = 0; i < kOutputSteps; ++i) {
    const uint4 v =
        load_pairs<kKv.kValueStride>(values + (share() * kOutputSteps + i) * kFragmentBytes, lane);
    const uint2 lower = make_uint2(first.rounded(v.x), second.rounded(v.y));
    const uint2 upper = make_uint2(first.rounded(v.z), second.rounded(v.w));
    SOLITON_UNROLL
    for (int part = 0; part < kParts; ++part) {
      mma_f16(output_[2 * i], weights[part], lower);
      mma_f16(output_[2 * i + 1], weights[part], upper);
    }
  }
}

}  // namespace soliton::rows
