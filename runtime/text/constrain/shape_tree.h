// The tokens of a vocabulary by their shapes, in a tree: small letters of ASCII are alike there, so are capital ones, digits,
// and characters beyond ASCII that are of one class. Most patterns do not tell them apart, and there are few shapes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/constrain/token_characters.h"
#include "runtime/text/constrain/token_mask.h"

namespace soliton::constrain {

/// Immutable, so any number of threads may use one.
struct ShapeTree {
  /// What stands for a character: 'a', 'A' or '0' for all letters of the case or all digits, kFar and the next ones for
  /// Vocabulary::far_text(). Of other characters each byte stands for itself.
  using Symbol = char16_t;
  static constexpr Symbol kFar = 0x100;

  struct Node {
    Symbol symbol;
    uint8_t depth;        // symbols up to this one
    uint8_t num_far;      // of those above it, from kFar on
    int32_t above;        // the node; negative: the root
    int32_t behind;       // the node that follows those below this one
    int32_t first_token;  // of those that end here, up to the next node's
    int32_t first_word;   // the same in words
  };
  /// Tokens that are in one word of a mask.
  struct Word {
    uint32_t index;
    uint32_t bits;
  };
  /// Of what is below a node.
  struct Below {
    Characters characters = {};  // its symbols
    uint8_t deepest = 0;         // symbols from the root
  };

  std::vector<Node> nodes = {};      // in depth-first order; one more behind the last
  std::vector<Below> below = {};     // [nodes]
  std::vector<int32_t> places = {};  // of tokens in Vocabulary::tree(), by the nodes and then ascending
  std::vector<int32_t> tokens = {};  // the same tokens' numbers
  std::vector<uint8_t> common = {};  // of these: bytes that are those of the token before
  std::vector<Word> words = {};      // the tokens of a node, and then of the next, as masks have them

  ShapeTree() = default;
  /// Of the tokens at all places, and their shapes, of 1 to 255 symbols each.
  ShapeTree(std::span<const int32_t> tokens_at, std::span<const std::u16string> shapes);

  void add_words(std::span<const int32_t> tokens_at, std::span<const int32_t> its_places);
  /// As Characters have it.
  static char32_t code_of(Symbol symbol);
  /// Bytes above a node, of a token that is below it or ends there.
  size_t bytes_above(int32_t node, std::string_view piece) const;
};

}  // namespace soliton::constrain
