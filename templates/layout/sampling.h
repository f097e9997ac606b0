// How a row draws its next token: the same word of noise for the same seed, position and token, on any number
// of CTAs.
#pragma once

#include <cstdint>

#include "layout/random.h"

namespace soliton {

/// Of one row. A temperature T > 0 draws from softmax(logits / T); 0 takes the best logit.
struct RowSampling {
  float inverse_temperature = 0.0f;  // 1 / T; 0: the best logit
  uint32_t seed = 0;
};

/// Uniform in (0, 1): what Gumbel noise is made of. The token with the largest logit / T + noise is a draw
/// from the softmax (the Gumbel-max trick).
SOLITON_HOST_DEVICE constexpr float sampling_uniform(uint32_t seed, int position, int token) {
  const uint64_t index =
      static_cast<uint64_t>(static_cast<uint32_t>(position)) << 32 | static_cast<uint32_t>(token);
  return (static_cast<float>(random_bits(index, seed) >> 9) + 0.5f) * (1.0f / 8388608.0f);
}

}  // namespace soliton
