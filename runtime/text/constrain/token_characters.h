// Which characters tokens have, as far as loops of a grammar tell them apart.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace soliton::constrain {

/// Characters of tokens, as far as loops of a grammar tell them apart: a bit for each of ASCII's that can be printed.
struct Characters {
  static constexpr char32_t kOdd =
      0;  // of what is in no class here, and of bytes that are no whole character
  static constexpr char32_t kControls = 1;  // of those that JSON's texts never have
  static constexpr char32_t kFar = 2;       // and the next ones, in place of those of Vocabulary::far_text()
  static constexpr char32_t kNumFar = 8;
  static constexpr char32_t kNumCodes = 128;

  std::array<uint64_t, 2> bits = {};

  /// Those of Vocabulary::plain_text().
  static Characters plain_text();
  static Characters all() { return {{~uint64_t{0}, ~uint64_t{0}}}; }
  static bool is_printed(uint8_t byte) { return byte >= ' ' && byte < 0x7f; }
  static bool is_control(uint8_t byte) { return byte < ' '; }
  void add(char32_t code) { bits[code / 64] |= uint64_t{1} << (code % 64); }
  bool has(char32_t code) const { return (bits[code / 64] >> (code % 64) & 1) != 0; }
  bool empty() const { return (bits[0] | bits[1]) == 0; }
  Characters others() const { return {{~bits[0], ~bits[1]}}; }
  bool has_far() const { return (bits[0] >> kFar & ((uint64_t{1} << kNumFar) - 1)) != 0; }
  bool are_in(const Characters& others) const {
    return ((bits[0] & ~others.bits[0]) | (bits[1] & ~others.bits[1])) == 0;
  }
  bool meet(const Characters& others) const {
    return ((bits[0] & others.bits[0]) | (bits[1] & others.bits[1])) != 0;
  }
  int size() const { return std::popcount(bits[0]) + std::popcount(bits[1]); }
  Characters& operator|=(const Characters& others) {
    for (size_t i = 0; i < bits.size(); ++i) bits[i] |= others.bits[i];
    return *this;
  }
  Characters& operator&=(const Characters& others) {
    for (size_t i = 0; i < bits.size(); ++i) bits[i] &= others.bits[i];
    return *this;
  }
  void remove(const Characters& others) {
    for (size_t i = 0; i < bits.size(); ++i) bits[i] &= ~others.bits[i];
  }
  bool operator==(const Characters&) const = default;
};

/// Of each of Characters the tokens that have it.
class TokensOfCharacters {
 public:
  static constexpr size_t kTokensOfWord = 64;
  static constexpr size_t kWords = 16;  // that are looked at together
  /// Bit i % 64 of word i / 64 is of token i behind the first one asked for.
  using Words = std::array<uint64_t, kWords>;

  /// Lists of words, [words] each.
  using Lists = std::vector<const uint64_t*>;

  void resize(size_t num_tokens);
  void add(size_t token, const Characters& characters);
  /// When all have been added.
  void unite();
  Characters of(size_t token) const;
  /// Those that together have the tokens of some characters: few, as most sets of characters consist of ranges.
  Lists lists_of(const Characters& characters) const;
  /// Of words `first` and the next ones the tokens that any of the lists has.
  static Words having(const Lists& lists, size_t first);
  /// The same of those that none has.
  static Words having_none(const Lists& lists, size_t first);

 private:
  static constexpr size_t kFirst = Characters::kNumCodes;  // the list of character 0

  void add_lists(size_t list, const Characters& characters, Lists& lists) const;

  // A tree, from 1 on: below list i are 2 * i and 2 * i + 1, and it has the tokens of both. Those of kFirst and the next ones
  // are of one character. Empty of what no token has; the words are a multiple of kWords.
  std::array<std::vector<uint64_t>, 2 * Characters::kNumCodes> lists_;
  std::array<Characters, 2 * Characters::kNumCodes> characters_ =
      {};  // of the lists, but those that no token has
  size_t num_words_ = 0;
};

}  // namespace soliton::constrain
