// Online softmax of a query tile, in base 2: scores become weights relative to the maxima so far.
#pragma once

#include "rows/query_state.cuh"

namespace soliton::rows {

/// Scores, not yet scaled, become powers relative to the maxima, which are added to the sums.
template <const KernelPlan& kPlan>
template <int kTiles>
SOLITON_DEVICE void QueryState<kPlan>::exponentiate(float (&scores)[kTiles][2][4]) {
  SOLITON_UNROLL
  for (int h = 0; h < kQueries; ++h) {
    const float base =
        maximum_[h] == -INFINITY ? 0.0f : maximum_[h];  // nothing seen so far: all weights are 0
    SOLITON_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      float sums[2];
      SOLITON_UNROLL
      for (int n = 0; n < 2; ++n) {
        float(&s)[4] = scores[t][n];
        SOLITON_UNROLL
        for (int i = 2 * h; i < 2 * h + 2; ++i) s[i] = exp2_fast(s[i] * Variant<kPlan>::kScale - base);
        sums[n] = s[2 * h] + s[2 * h + 1];
      }
      sum_[h] += sums[0] + sums[1];
    }
  }
}

/// As operands, part by part.
template <const KernelPlan& kPlan>
template <int kTiles>
SOLITON_DEVICE void QueryState<kPlan>::pack_weights(float (&scores)[kTiles][2][4],
                                                    uint4 (&weights)[kTiles][kParts]) {
  SOLITON_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    SOLITON_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const auto pack = [&](float* s) {
        const uint32_t packed = pack_f16(s[0], s[1]);
        s[0] -= f16_to_float(static_cast<uint16_t>(packed));  // the next part
        s[1] -= f16_to_float(static_cast<uint16_t>(packed >> 16));
        return packed;
      };
      float(&s)[2][4] = scores[t];
      constexpr int kNext = kStacked ? 0 : 2;  // the other query, or the next part
      const uint32_t w[] = {pack(s[0]), pack(s[0] + kNext), pack(s[1]), pack(s[1] + kNext)};
      weights[t][part] = make_uint4(w[0], w[1], w[2], w[3]);
    }
  }
}

/// Takes scores, not yet scaled, into the maxima; after the first tokens these seldom change.
template <const KernelPlan& kPlan>
template <int kTiles>
SOLITON_DEVICE void QueryState<kPlan>::raise_maxima(const float (&scores)[kTiles][2][4]) {
  float maxima[kQueries];
  bool rises = false;
  SOLITON_UNROLL
  for (int h = 0; h < kQueries; ++h) {
    float most = scores[0][0][2 * h];
    SOLITON_UNROLL
    for (int i = 1; i < 4 * kTiles; ++i) most = larger_of(most, scores[i / 4][i / 2 % 2][2 * h + i % 2]);
    for (int mask = 1; mask < 4; mask *= 2) most = larger_of(most, shuffle_xor(most, mask));
    most *= Variant<kPlan>::kScale;
    if constexpr (kKv.e4m3) most -= kByteHeadroom;
    maxima[h] = larger_of(maximum_[h], most);
    rises = rises || maxima[h] > maximum_[h];
  }
  if (!warp_any(rises)) return;
  SOLITON_UNROLL
  for (int h = 0; h < kQueries; ++h) {
    const float factor = exp2_fast(maximum_[h] - (maxima[h] == -INFINITY ? 0.0f : maxima[h]));
    maximum_[h] = maxima[h];
    sum_[h] *= factor;
    SOLITON_UNROLL
    for (int i = 0; i < 2 * kOutputSteps; ++i) {
      SOLITON_UNROLL
      for (int k = 0; k < 4 / kQueries; ++k) output_[i][2 * h + k] *= factor;
    }
  }
}

}  // namespace soliton::rows
