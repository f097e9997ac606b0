// How long a text may become on its way through the rules of tokenizer.json. One rule that lengthens is common (a
// prefix, letters for bytes, a normal form); a chain of them could make gigabytes of one word. So the limit holds
// after every rule, and while a rule without a bound of its own is at work. Patterns, which may take exponential time at
// every byte, may do so at few places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace soliton::tokenization {

/// Bounds what rules make of one text, whose parts go through them one after another. It grows with the text: no
/// normal form makes more than 11 bytes of one, letters for bytes make 2 of one, prefixes are short.
class TextLimit {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 28;  // of a text, before and after every rule
  static constexpr size_t kMaxGrowth = 32;              // bytes made of one
  static constexpr size_t kMargin = 64 << 10;           // bytes made of any text, however short
  static constexpr size_t kBytesPerSlowMatch = 2048;    // of the text before all rules
  static constexpr size_t kMinSlowMatches = 16;         // in any text

  /// `file`, which must outlive this, is what errors name.
  explicit TextLimit(std::string_view file, size_t original_bytes = 0)
      : file_(file), original_bytes_(original_bytes) {}

  /// The text before all rules has these bytes too.
  void extend(size_t original_bytes) { original_bytes_ += original_bytes; }

  /// Called for every text of `bytes` that a rule makes of the current part, whole or so far. Throws kOutOfMemory if
  /// it may not have that many.
  void require(size_t bytes) {
    longest_ = std::max(longest_, bytes);
    if (bytes > kMaxBytes || made_ + bytes > kMargin + kMaxGrowth * original_bytes_) refuse();
  }

  /// Whether a pattern may take long at one more place.
  bool allows_slow_match() {
    return slow_matches_++ < kMinSlowMatches + original_bytes_ / kBytesPerSlowMatch;
  }

  /// Another part of the text follows, which has what the longest text made of this one leaves it.
  void end_part() { made_ += std::exchange(longest_, 0); }

 private:
  [[noreturn]] void refuse() const;

  std::string_view file_;
  size_t original_bytes_;
  size_t made_ = 0;     // of the parts before
  size_t longest_ = 0;  // made of this part
  size_t slow_matches_ = 0;
};

}  // namespace soliton::tokenization
