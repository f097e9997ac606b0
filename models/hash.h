// A hash against damage and confusion, not against attackers: who can change a file of ours can change its hash as well.
#pragma once

#include <cstdint>
#include <string_view>

namespace soliton {

/// 64-bit FNV-1a.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) value_ = (value_ ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  }
  /// The same with an end, so that "ab", "c" is not "a", "bc".
  void add_item(std::string_view text) {
    add(text);
    add(std::string_view("", 1));
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 14695981039346656037ull;
};

}  // namespace soliton
