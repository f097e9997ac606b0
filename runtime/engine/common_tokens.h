// How much two texts have in common: what of one that is cached goes for the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace soliton {

/// How many first tokens both have.
inline int num_common_tokens(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<int>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace soliton
