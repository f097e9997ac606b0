// What both parsers of texts need of characters.
#pragma once

#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

inline constexpr char32_t kEndOfText = 0xffffffff;

/// Of '0' to '9', 'a' to 'f' or 'A' to 'F'; else negative.
constexpr int hex_digit(char32_t c) {
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0');
  const char32_t lower = c | 0x20;
  return lower >= 'a' && lower <= 'f' ? static_cast<int>(lower - 'a') + 10 : -1;
}

}  // namespace soliton::constrain
