// The tokens of a vocabulary as bytes, in a tree of their common beginnings, so that what no text may begin with is
// looked at once for all tokens that begin so.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

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
    uint8_t depth;        // bytes up to this one
    int32_t behind;       // the node that follows those below this one
    int32_t first_token;  // tokens() that end here, up to the next node's
  };

  static constexpr size_t kMaxTokenBytes = 255;  // longer tokens are never allowed

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

  /// In depth-first order; one more behind the last.
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const int32_t> tokens() const { return tokens_; }
  /// Those that are a token by themselves.
  const std::bitset<256>& bytes() const { return bytes_; }

 private:
  void build(bool has_markers = false);

  std::vector<std::string> pieces_;
  int size_;
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;
  std::bitset<256> bytes_;
};

}  // namespace soliton::constrain
