// Random weights as a function of seed and index alone: the same on every target.
#pragma once

#include <cstdint>

#include "layout/target.h"

namespace soliton {

/// A 32-bit hash of (seed, index): splitmix64's finaliser.
SOLITON_HOST_DEVICE constexpr uint32_t random_bits(uint64_t index, uint64_t seed) {
  uint64_t z = index * 0x9e3779b97f4a7c15ull + seed;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>((z ^ (z >> 31)) >> 32);
}

/// Uniform in [-1, 1).
SOLITON_HOST_DEVICE constexpr float random_unit(uint64_t index, uint64_t seed) {
  return static_cast<float>(random_bits(index, seed) >> 8) * (2.0f / 16777216.0f) - 1.0f;
}

}  // namespace soliton
