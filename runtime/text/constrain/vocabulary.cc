#include "runtime/text/constrain/vocabulary.h"

#include <algorithm>
#include <numeric>

#include "runtime/text/tokenizer.h"

namespace soliton::constrain {
namespace {

// Bytes that UTF-8 never has.
constexpr char kMarkerEdge = '\xff';
constexpr char kMarkerInside = '\xfe';

bool is_of_markers(char byte) {
  return byte == kMarkerEdge || byte == kMarkerInside;
}

std::vector<std::string> pieces_of(const Tokenizer& tokenizer, int size, std::span<const int32_t> markers) {
  std::vector<std::string> pieces(static_cast<size_t>(std::min(size, tokenizer.vocabulary_size())));
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int token = static_cast<int>(i);
    if (tokenizer.is_special(token)) continue;
    const std::string& piece = tokenizer.piece(token);
    if (markers.empty() || std::none_of(piece.begin(), piece.end(), is_of_markers)) pieces[i] = piece;
  }
  for (size_t i = 0; i < markers.size(); ++i)
    pieces.at(static_cast<size_t>(markers[i])) = Vocabulary::marker(i);
  return pieces;
}

}  // namespace

Vocabulary::Vocabulary(const std::vector<std::string>& pieces, int size) : pieces_(pieces), size_(size) {
  pieces_.resize(static_cast<size_t>(size));
  build();
}

Vocabulary::Vocabulary(const Tokenizer& tokenizer, int size, std::span<const int32_t> markers)
    : pieces_(pieces_of(tokenizer, size, markers)), size_(size) {
  pieces_.resize(static_cast<size_t>(size));
  build(!markers.empty());
}

std::string Vocabulary::marker(size_t index) {
  return kMarkerEdge + std::string(index, kMarkerInside) + kMarkerEdge;
}

const std::string& Vocabulary::piece(int token) const {
  static const std::string none;
  return token < 0 || token >= size_ ? none : pieces_[static_cast<size_t>(token)];
}

/// Tokens in the order of their bytes: each adds the nodes that it has not in common with the one before.
void Vocabulary::build(bool has_markers) {
  for (std::string& piece : pieces_) {
    if (piece.size() > kMaxTokenBytes) piece.clear();
    if (piece.size() == 1) bytes_.set(static_cast<uint8_t>(piece[0]));
  }
  // A marker is one token: nobody has to go on in the midst of it.
  if (has_markers) {
    for (const char byte : {kMarkerEdge, kMarkerInside}) bytes_.set(static_cast<uint8_t>(byte));
  }
  tokens_.resize(pieces_.size());
  std::iota(tokens_.begin(), tokens_.end(), 0);
  std::erase_if(tokens_, [&](int32_t token) { return piece(token).empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(), [&](int32_t a, int32_t b) { return piece(a) < piece(b); });

  std::vector<size_t> open;  // the nodes of the bytes of the last token
  const auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back())
      nodes_[open.back()].behind = static_cast<int32_t>(nodes_.size());
  };
  std::string last;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& bytes = piece(tokens_[i]);
    const auto common = static_cast<size_t>(
        std::mismatch(last.begin(), last.end(), bytes.begin(), bytes.end()).second - bytes.begin());
    if (common < last.size() || bytes.size() > last.size()) close(common);
    for (size_t depth = common; depth < bytes.size(); ++depth) {
      open.push_back(nodes_.size());
      nodes_.push_back({.byte = static_cast<uint8_t>(bytes[depth]),
                        .depth = static_cast<uint8_t>(depth + 1),
                        .behind = 0,
                        .first_token = static_cast<int32_t>(i)});
    }
    // Tokens of nodes that end nowhere: those up to the next node's first, of which there are none.
    last = bytes;
  }
  close(0);
  nodes_.push_back({.byte = 0,
                    .depth = 0,
                    .behind = static_cast<int32_t>(nodes_.size()) + 1,
                    .first_token = static_cast<int32_t>(tokens_.size())});
}

}  // namespace soliton::constrain
