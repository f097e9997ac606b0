// Choosing a token: every CTA candidates its best score, and the best candidate wins, ties to the lower token.
#pragma once

#include "primitives/primitives.h"

namespace soliton {

constexpr uint64_t kNoCandidate = 0;

/// The sortable form of a float: larger is better, and 0 is none.
SOLITON_DEVICE uint32_t sortable(float value) {
  const uint32_t bits = float_bits(value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
SOLITON_DEVICE float from_sortable(uint32_t sorted) {
  return float_from_bits(sorted & 0x80000000u ? sorted & 0x7fffffffu : ~sorted);
}

/// Larger is better: the score's sortable form above the complement of the token.
SOLITON_DEVICE uint64_t make_candidate(float score, uint32_t token) {
  return static_cast<uint64_t>(sortable(score)) << 32 | (0x7fffffffu - token);
}
SOLITON_DEVICE int candidate_token(uint64_t candidate) {
  return static_cast<int>(0x7fffffffu - static_cast<uint32_t>(candidate));
}

SOLITON_DEVICE bool is_stop_token(const LaunchParams& params, int token) {
  for (int i = 0; i < params.num_stop_tokens; ++i) {
    if (load_constant(params.stop_tokens + i) == token) return true;
  }
  return false;
}

}  // namespace soliton
