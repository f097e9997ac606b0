// Choosing a token: every CTA proposes its best score as a candidate, and the best one wins, ties to the lower token.
// A logit that is no finite number beats all others, so that no token of such a step passes for an answer.
#pragma once

#include "layout/tag.h"
#include "primitives/primitives.h"

namespace soliton {

constexpr uint64_t kNoCandidate = 0;
constexpr uint32_t kInfinityBits = 0x7f800000u;  // of a float
constexpr uint32_t kLargestToken = 0x1fffffffu;

/// The sortable form of a float, by its bits: larger is better, and 0 is none.
SOLITON_HOST_DEVICE constexpr uint32_t sortable_bits(uint32_t bits) {
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
SOLITON_DEVICE uint32_t sortable(float value) {
  return sortable_bits(float_bits(value));
}
SOLITON_DEVICE float from_sortable(uint32_t sorted) {
  return float_from_bits(sorted & 0x80000000u ? sorted & 0x7fffffffu : ~sorted);
}

/// Larger is better: the score's sortable form above the complement of the token. The lowest bits are left to a tag.
SOLITON_HOST_DEVICE constexpr uint64_t encode_candidate(uint32_t score_bits, uint32_t token) {
  return static_cast<uint64_t>(sortable_bits(score_bits)) << 32 | (kLargestToken - token) << kTagBits;
}
/// The candidate of a step whose logits are not all finite: an infinite score, and kNotFiniteToken.
constexpr uint64_t kNotFinite = encode_candidate(kInfinityBits, static_cast<uint32_t>(kNotFiniteToken));

SOLITON_DEVICE uint64_t make_candidate(float score, uint32_t token) {
  return encode_candidate(float_bits(score), token);
}
SOLITON_DEVICE bool is_finite(float value) {
  return (float_bits(value) & kInfinityBits) != kInfinityBits;
}
/// What a token with this logit is proposed as, if `score` is what tokens are compared by.
SOLITON_DEVICE uint64_t propose(float logit, float score, int token) {
  return is_finite(logit) ? make_candidate(score, static_cast<uint32_t>(token)) : kNotFinite;
}
SOLITON_DEVICE int candidate_token(uint64_t candidate) {
  return static_cast<int>(kLargestToken - (static_cast<uint32_t>(candidate) >> kTagBits));
}

/// Whether the launch ends behind this token.
SOLITON_DEVICE bool is_last_token(const LaunchParams& params, int token) {
  if (token == kNotFiniteToken) return true;
  for (int i = 0; i < params.num_stop_tokens; ++i) {
    if (load_constant(params.stop_tokens + i) == token) return true;
  }
  return false;
}

}  // namespace soliton
