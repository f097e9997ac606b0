// The tokens of a vocabulary as bytes, in a tree of their common beginnings, so that what no text may begin with is
// looked at once for all tokens that begin so.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/text/constrain/grammar.h"

namespace soliton {
class Tokenizer;
}

namespace soliton::constrain {

/// A bit for each token: bit i % 32 of word i / 32. [ceil(size / 32)]
using TokenMask = std::vector<uint32_t>;

inline constexpr int kMaskBits = 32;  // of a word

inline bool is_in(std::span<const uint32_t> mask, int token) {
  const auto index = static_cast<size_t>(token);
  return index / kMaskBits < mask.size() && (mask[index / kMaskBits] >> (index % kMaskBits) & 1) != 0;
}

/// Immutable, so any number of threads may use one.
class Vocabulary {
 public:
  /// A byte of some tokens, behind those above it.
  struct Node {
    uint8_t byte;
    uint8_t depth;                       // bytes up to this one
    int32_t behind;                      // the node that follows those below this one
    int32_t first_token;                 // of the tree's that end here, up to the next node's
    uint8_t deepest = 0;                 // depth of the deepest one behind this one, before `behind`
    bool is_whole = true;                // the tokens there are plain_text() characters, none of them cut
    bool has_others = false;             // than ASCII's among the bytes of those nodes
    std::array<uint64_t, 2> ascii = {};  // a bit for each of ASCII's
  };

  struct Tree {
    std::vector<Node> nodes = {};      // in depth-first order; one more behind the last
    std::vector<int32_t> tokens = {};  // in the order of the nodes
  };

  static constexpr size_t kMaxTokenBytes = 255;       // longer tokens are never allowed
  static constexpr size_t kMostPlainCharacters = 32;  // longer ones are not in plain()

  /// Bytes of each token; empty for what is never allowed, such as special tokens. `size` is that of masks, which may be
  /// larger than the number of tokens, as a model's vocabulary may be padded.
  Vocabulary(const std::vector<std::string>& pieces, int size);
  /// All tokens but the special ones; of these only `markers`, each by bytes of its own, which no text has: grammars write
  /// marker(i) where token markers[i] is to stand. Without markers tokens may have any bytes.
  Vocabulary(const Tokenizer& tokenizer, int size, std::span<const int32_t> markers = {});
  /// No bytes of one marker begin those of another.
  static std::string marker(size_t index);

  int size() const { return size_; }
  size_t num_words() const { return (static_cast<size_t>(size_) + kMaskBits - 1) / kMaskBits; }
  /// Of a token; empty for those that are never allowed.
  const std::string& piece(int token) const;

  /// All tokens.
  const Tree& tree() const { return tree_; }
  /// Those that consist of plain_text() characters, as most do, of which there are at most so many.
  const TokenMask& plain(size_t num_characters) const {
    return plain_[std::min(num_characters, kMostPlainCharacters)];
  }
  /// All others.
  const Tree& rest() const { return rest_; }
  /// Characters that JSON's strings have as they are, and that patterns take by a dot or, but for the space, by \S.
  static const CodeSet& plain_text();
  /// The most that a token has.
  size_t num_characters() const { return num_characters_; }
  /// Those that are a token by themselves.
  const std::bitset<256>& bytes() const { return bytes_; }

 private:
  void build(bool has_markers = false);
  void find_plain(std::vector<int32_t>& tokens);
  Tree tree_of(std::vector<int32_t> tokens) const;
  void summarise(Tree& tree) const;

  std::vector<std::string> pieces_;
  int size_;
  Tree tree_;
  Tree rest_;
  std::vector<TokenMask> plain_;  // [characters]
  size_t num_characters_ = 0;
  std::bitset<256> bytes_;
};

}  // namespace soliton::constrain
