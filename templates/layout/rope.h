// Rotary embeddings as facts name them: their kinds, and what layers are rotated by.
#pragma once

#include <cmath>
#include <cstdint>

namespace soliton {

enum class RopeKind : int32_t { kDefault = 0, kLlama3 = 1, kLinear = 2, kYarn = 3, kLongrope = 4 };

/// As models/*.yaml and config.json call it.
constexpr const char* rope_name(RopeKind kind) {
  constexpr const char* kNames[] = {"default", "llama3", "linear", "yarn", "longrope"};
  return kNames[static_cast<int>(kind)];
}

constexpr int kMostRotatedPairs = 128;  // of a head's dims

/// By what the heads of a layer are rotated.
enum LayerRope : int32_t {
  kMainRope = 0,   // what rope_kind, rope_theta and others say
  kLocalRope = 1,  // rope_local_theta, the default kind
  kNoRope = 2,     // nothing
};
constexpr int32_t kLayerRopes = 3;

/// Yarn's factor of cosine and sine where nothing else is stated: attention over a context stretched `factor` times
/// would otherwise be too even.
inline double yarn_attention_factor(double factor, double scale = 1.0) {
  return factor <= 1.0 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

/// Longrope's, of a context that was `original` tokens.
inline double longrope_attention_factor(double factor, int32_t original) {
  return factor <= 1.0 || original <= 1 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(original));
}

}  // namespace soliton
