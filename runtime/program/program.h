// What the runtime's programs share: values read strictly, and what printing.h has of lines and ends. Flags are in
// command_line.h.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

#include "models/error.h"
#include "models/printing.h"

namespace soliton {

/// "expected an integer from 1 to 2147483647, got "x"", unless the text is a decimal integer of at least `min`; then "".
template <class Integer = int>
std::string complaint_of_integer(const std::string& text, Integer min) {
  Integer value{};
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  const bool is_octal = text.size() > 1 && text[0] == '0';
  if (failure == std::errc{} && rest == end && !is_octal && value >= min) return {};
  return fmt::format("expected an integer from {} to {}, got {}", min, std::numeric_limits<Integer>::max(),
                     in_quotes(text));
}

/// The same for a decimal number from `min` to `max`.
inline std::string complaint_of_number(const std::string& text, double min, double max) {
  double value{};
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  if (failure == std::errc{} && rest == end && value >= min && value <= max) return {};
  return fmt::format("expected a number from {} to {}, got {}", min, max, in_quotes(text));
}

}  // namespace soliton
