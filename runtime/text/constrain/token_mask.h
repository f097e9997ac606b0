// Sets of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace soliton::constrain {

/// A bit for each token: bit i % 32 of word i / 32. [ceil(size / 32)]
using TokenMask = std::vector<uint32_t>;

inline constexpr int kMaskBits = 32;  // of a word

inline bool is_in(std::span<const uint32_t> mask, int token) {
  const auto index = static_cast<size_t>(token);
  return index / kMaskBits < mask.size() && (mask[index / kMaskBits] >> (index % kMaskBits) & 1) != 0;
}

inline void set_token(int32_t token, TokenMask& mask) {
  const auto index = static_cast<size_t>(token);
  mask[index / kMaskBits] |= uint32_t{1} << (index % kMaskBits);
}

}  // namespace soliton::constrain
