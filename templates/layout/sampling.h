// How a row chooses its next token, and the memory that this takes: the same token for the same seed, position
// and logits, on any number of CTAs.
//
// Tokens that a mask forbids are never chosen, and count for nothing. Of the others, in this order, as users of Hugging
// Face's generate() and llama.cpp expect:
//  1. repetition penalty r: the logit of a token that stands in the prompt or the answer so far becomes
//     logit / r if it is positive, else logit * r;
//  2. temperature T: logits are divided by it. T = 0 takes the best logit, and what follows has no meaning;
//  3. top-k: the k best stay;
//  4. top-p: of what is left, the fewest best whose probabilities, renormalised, add up to p or more stay;
//  5. min-p: what has at least min_p times the probability of the best one stays.
// Tokens as good as the last one that stays do so too; NaN is never chosen. Of what stays, a token is drawn by
// the Gumbel-max trick. Logprobs are of the model's own distribution, of what a mask leaves of it: softmax(logits) before
// all of this.
#pragma once

#include <cstdint>

#include "layout/page.h"
#include "layout/random.h"

namespace soliton {

constexpr float kUnlimitedDistance = __builtin_huge_valf();

/// Of one row.
struct RowSampling {
  float inverse_temperature = 0.0f;  // 1 / T; 0: the best logit
  uint32_t seed = 0;
  int32_t top_k = 0;                        // 0: all
  float top_p = 1.0f;                       // 1: all; 0: the best
  float max_distance = kUnlimitedDistance;  // -ln(min_p): logit / T may be so far below the best
  float penalty = 1.0f;                     // 1: none

  SOLITON_HOST_DEVICE constexpr bool truncates() const {
    return inverse_temperature != 0.0f && (top_k > 0 || top_p < 1.0f || max_distance < kUnlimitedDistance);
  }
};

/// Noise of a token: uniform in (0, 1], small values finely graded. The token with the largest
/// logit / T - ln(-ln(1 - uniform)) is a draw from the softmax (the Gumbel-max trick).
SOLITON_HOST_DEVICE constexpr float sampling_uniform(uint32_t seed, int position, int token) {
  const uint64_t index =
      static_cast<uint64_t>(static_cast<uint32_t>(position)) << 32 | static_cast<uint32_t>(token);
  return (static_cast<float>(random_bits(index, seed)) + 0.5f) * (1.0f / 4294967296.0f);
}

// Truncation is a limit on distance = (best - logit) / T, as an integer key: a radix search over its digits
// finds the limit. Histograms are integers, so it does not matter who adds first.

constexpr float kMaxKeyDistance = 32.0f;  // from here on all keys are the same, and masses 0
constexpr int kKeyBits = 28;
constexpr float kKeysPerUnit = 8388608.0f;  // 2^28 / 32
constexpr uint32_t kMaxKey = (1u << kKeyBits) - 1;
constexpr int kKeyDigitBits = 7;
constexpr int kHistogramBins = 1 << kKeyDigitBits;
constexpr int kSharedHistogramBytes = 2 * kHistogramBins * 4;  // of one warp, in shared memory
static_assert(kKeyBits % kKeyDigitBits == 0, "a search takes whole digits");

/// A bin of a histogram: the number of its tokens, and their mass in units of the best token's.
constexpr int kMassBits = 27;     // of one token
constexpr int kBinMassBits = 45;  // of a bin
constexpr int kMaxSampledVocabulary = 1 << (kBinMassBits - kMassBits);
SOLITON_HOST_DEVICE constexpr uint64_t bin_mass(uint64_t bin) {
  return bin & ((uint64_t{1} << kBinMassBits) - 1);
}
SOLITON_HOST_DEVICE constexpr uint64_t bin_count(uint64_t bin) {
  return bin >> kBinMassBits;
}

/// Exchanges in turn use one of three areas each, see ops/exchange.cuh.
constexpr int kExchangeAreas = 3;

constexpr int kMaxSampledRows = 256;

/// Warps of a CTA that draw: each takes rows worker, worker + kSamplingWarps, ...
SOLITON_HOST_DEVICE constexpr int sampling_warps(int rows) {
  return rows == 1 ? 1 : 8;
}

/// What the warps of the same number in all CTAs exchange:
///
///   | normalisers | counter | area 0: histogram, a word of each CTA | area 1 | area 2 | next warp's ... | fed |
///
/// A normaliser is a float2 of each row: the best raw logit, and the logarithm of the sum of exp(logit - best).
/// Fed tokens are no exchange: each CTA keeps those of its step, [kMaxSampledRows], for the warps that draw.
struct ExchangeLayout {
  int num_ctas = 1;

  static constexpr int kCounterBytes = 128;  // a cache line
  static constexpr int kNormaliserBytes = 8 * kMaxSampledRows;
  SOLITON_HOST_DEVICE constexpr int area_bytes() const {
    return round_up((kHistogramBins + num_ctas) * 8, kCounterBytes);
  }
  SOLITON_HOST_DEVICE constexpr int warp_bytes() const {
    return kCounterBytes + kExchangeAreas * area_bytes();
  }
  SOLITON_HOST_DEVICE constexpr int warp_offset(int warp) const {
    return kNormaliserBytes + warp * warp_bytes();
  }
  SOLITON_HOST_DEVICE constexpr int fed_offset(int rows) const { return warp_offset(sampling_warps(rows)); }
  SOLITON_HOST_DEVICE constexpr int bytes(int rows) const {
    return fed_offset(rows) + num_ctas * kMaxSampledRows * 4;
  }
};

/// Logits of a row, or tokens of a row's bitmap: whole tiles.
SOLITON_HOST_DEVICE constexpr int sampling_line(int vocabulary) {
  return ceil_divide(vocabulary, kTileRows) * kTileRows;
}

/// What a launch needs to do more than take the best logits. Device memory but for logprobs.
struct SamplingView {
  const RowSampling* rows;  // [rows]; null: every row takes its best logit, and there is nothing below
  float* logits;            // [rows][sampling_line()]: of the current step
  unsigned char* exchange;  // ExchangeLayout::bytes(), 0 at launch
  uint16_t* seen;  // [rows][tiles]: bit t % 16 of word t / 16 says that token t is penalised; null: none
  const uint16_t* allowed;  // the same: that it may be chosen; null: any may
  float* logprobs;          // host memory: of the token of each record, written before the record; or null
  int32_t vocabulary;
};

}  // namespace soliton
