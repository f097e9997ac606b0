// The tokens of a vocabulary as bytes, in a tree of their common beginnings, so that what no text may begin with is
// looked at once for all tokens that begin so.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/constrain/grammar.h"
#include "runtime/text/constrain/shape_tree.h"
#include "runtime/text/constrain/token_characters.h"
#include "runtime/text/constrain/token_mask.h"

namespace soliton {
class Tokenizer;
}

namespace soliton::constrain {

/// Immutable, so any number of threads may use one.
class Vocabulary {
 public:
  /// A byte of some tokens, behind those above it.
  struct Node {
    uint8_t byte;
    uint8_t depth;          // bytes up to this one
    int32_t behind;         // the node that follows those below this one
    int32_t first_token;    // of the tree's that end here, up to the next node's
    uint8_t deepest = 0;    // depth of the deepest one behind this one, before `behind`
    Characters below = {};  // of the tokens that end there, behind this node's byte if that is printed
  };

  struct Tree {
    std::vector<Node> nodes = {};                    // in depth-first order; one more behind the last
    std::vector<int32_t> tokens = {};                // in the order of the nodes
    TokensOfCharacters whole = {};                   // those that have a character
    TokensOfCharacters but_first = {};               // those that have it behind their first one
    std::vector<uint8_t> lengths = {};               // [tokens]: in characters
    std::vector<std::vector<uint64_t>> longer = {};  // [characters]: those of more, bit i % 64 of word i / 64
    std::vector<uint8_t> common = {};                // [tokens]: bytes that are those of the token before
    std::vector<int32_t> leaves = {};                // [tokens]: the nodes where they end
    std::vector<uint32_t> offsets = {};              // [tokens + 1]: in `bytes`
    std::string bytes = {};                          // of all tokens

    std::string_view piece(size_t place) const {
      return std::string_view(bytes).substr(offsets[place], offsets[place + 1] - offsets[place]);
    }
    /// Of the first bytes of a token, so many.
    size_t node(size_t place, size_t depth) const;
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
  /// All tokens by their shapes, and by their places in tree().
  const ShapeTree& shapes() const { return shapes_; }
  /// Adds to a mask all tokens that consist of the given characters, and of at most so many.
  void add_consisting_of(const Characters& characters, int64_t most, TokenMask& mask) const;
  /// Characters that JSON's strings have as they are, and that patterns take by a dot or, but for the space, by \S.
  static const CodeSet& plain_text();
  /// Of these the ones that are not ASCII's, by what classes of patterns tell apart: letters, marks, numbers, punctuation
  /// and symbols of the basic plane, but for Latin-1's letters; these; all of other planes; the rest.
  static const std::array<CodeSet, Characters::kNumFar>& far_text();
  /// The most that a token has.
  size_t num_characters() const { return num_characters_; }
  /// Those that are a token by themselves.
  const std::bitset<256>& bytes() const { return bytes_; }

 private:
  struct LongToken {
    int32_t token;
    size_t num_characters;
    Characters characters;  // all that it has
  };

  void build(bool has_markers = false);
  void find_plain(std::vector<int32_t>& tokens);
  void find_whole(std::span<const int32_t> tokens);
  static std::u16string shape_of(std::string_view bytes);
  Tree tree_of(std::vector<int32_t> tokens) const;
  void find_characters(Tree& tree) const;
  void summarise(Tree& tree) const;

  std::vector<std::string> pieces_;
  int size_;
  Tree tree_;
  Tree rest_;
  ShapeTree shapes_;
  std::vector<TokenMask> plain_;  // [characters]
  TokensOfCharacters whole_;      // of all of a token, by the tokens' numbers
  std::vector<TokenMask> up_to_;  // [characters]: all tokens of at most so many
  std::vector<LongToken> long_;   // those of more than kMostPlainCharacters
  size_t num_characters_ = 0;
  std::bitset<256> bytes_;
};

}  // namespace soliton::constrain
