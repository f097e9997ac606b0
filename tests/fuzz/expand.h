// Small inputs that stand for large ones, so that a fuzzer finds what takes the square of a length: \x01 begins a part, \x02
// and another byte end it and write it as often as two to the power of that byte's low bits, and \x03 is a number
// that counts up.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "fuzz/fuzz_target.h"

namespace soliton {

inline std::string expanded(std::string_view input, size_t limit = size_t{1} << 20) {
  constexpr unsigned kMostDoublings = 18;
  std::string text;
  std::string part;
  size_t number = 0;
  bool is_in_part = false;
  const auto write = [&](std::string_view bytes) {
    for (const char byte : bytes) {
      if (byte == '\3') {
        text += std::to_string(number++);
      } else {
        text += byte;
      }
    }
  };
  for (size_t i = 0; i < input.size() && text.size() < limit; ++i) {
    if (input[i] == '\1') {
      is_in_part = true;
      part.clear();
    } else if (input[i] == '\2' && i + 1 < input.size()) {
      const size_t count = size_t{1} << static_cast<unsigned char>(input[++i]) % kMostDoublings;
      for (size_t k = 0; k < count && text.size() < limit && !part.empty(); ++k) write(part);
      is_in_part = false;
    } else if (is_in_part) {
      part += input[i];
    } else {
      write(input.substr(i, 1));
    }
  }
  text.resize(std::min(text.size(), limit));
  return text;
}

/// Ends the program if what is done in its life takes longer than anything may, under sanitizers and on a busy machine.
class TimeLimit {
 public:
  TimeLimit() = default;
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  ~TimeLimit() {
    constexpr std::chrono::seconds kMost{15};
    expect(std::chrono::steady_clock::now() - begin_ < kMost, "an input that is read in time");
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace soliton
