#include "runtime/text/constrain/vocabulary.h"

#include <algorithm>
#include <numeric>

#include "runtime/text/tokenizer.h"
#include "runtime/text/tokenizer/utf8.h"

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

const CodeSet& Vocabulary::plain_text() {
  static const CodeSet codes = complement(code_set({{0, 0x1f},
                                                    {'"', '"'},
                                                    {'\\', '\\'},
                                                    {0x7f, 0xa0},
                                                    {0x1680, 0x1680},
                                                    {0x2000, 0x200a},
                                                    {0x2028, 0x2029},
                                                    {0x202f, 0x202f},
                                                    {0x205f, 0x205f},
                                                    {0x3000, 0x3000},
                                                    {0xfeff, 0xfeff}}));
  return codes;
}

void Vocabulary::build(bool has_markers) {
  for (std::string& piece : pieces_) {
    if (piece.size() > kMaxTokenBytes) piece.clear();
    if (piece.size() == 1) bytes_.set(static_cast<uint8_t>(piece[0]));
  }
  // A marker is one token: nobody has to go on in the midst of it.
  if (has_markers) {
    for (const char byte : {kMarkerEdge, kMarkerInside}) bytes_.set(static_cast<uint8_t>(byte));
  }
  std::vector<int32_t> tokens(pieces_.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::erase_if(tokens, [&](int32_t token) { return piece(token).empty(); });
  std::stable_sort(tokens.begin(), tokens.end(), [&](int32_t a, int32_t b) { return piece(a) < piece(b); });
  std::vector<int32_t> others = tokens;
  find_plain(others);
  tree_ = tree_of(std::move(tokens));
  rest_ = tree_of(std::move(others));
}

/// Takes them out of the tokens.
void Vocabulary::find_plain(std::vector<int32_t>& tokens) {
  plain_.assign(kMostPlainCharacters + 1, TokenMask(num_words()));
  std::erase_if(tokens, [&](int32_t token) {
    std::string_view rest = piece(token);
    num_characters_ = std::max(num_characters_, rest.size());
    size_t count = 0;
    for (; !rest.empty(); ++count) {
      const tokenization::Utf8Step step = tokenization::utf8_step(rest);
      if (step.kind != tokenization::Utf8Step::kValid) return false;
      const char32_t code = tokenization::first_character(rest).code;
      if (intersection(plain_text(), {{code, code}}).empty()) return false;
      rest.remove_prefix(step.length);
    }
    const auto index = static_cast<size_t>(token);
    for (size_t i = count; i <= kMostPlainCharacters; ++i)
      plain_[i][index / kMaskBits] |= uint32_t{1} << (index % kMaskBits);
    return count <= kMostPlainCharacters;
  });
}

/// Tokens in the order of their bytes: each adds the nodes that it has not in common with the one before.
Vocabulary::Tree Vocabulary::tree_of(std::vector<int32_t> tokens) const {
  Tree tree;
  std::vector<size_t> open;  // the nodes of the bytes of the last token
  const auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back())
      tree.nodes[open.back()].behind = static_cast<int32_t>(tree.nodes.size());
  };
  std::string last;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string& bytes = piece(tokens[i]);
    const auto common = static_cast<size_t>(
        std::mismatch(last.begin(), last.end(), bytes.begin(), bytes.end()).second - bytes.begin());
    if (common < last.size() || bytes.size() > last.size()) close(common);
    for (size_t depth = common; depth < bytes.size(); ++depth) {
      open.push_back(tree.nodes.size());
      tree.nodes.push_back({.byte = static_cast<uint8_t>(bytes[depth]),
                            .depth = static_cast<uint8_t>(depth + 1),
                            .behind = 0,
                            .first_token = static_cast<int32_t>(i)});
    }
    // Tokens of nodes that end nowhere: those up to the next node's first, of which there are none.
    last = bytes;
  }
  close(0);
  tree.nodes.push_back({.byte = 0,
                        .depth = 0,
                        .behind = static_cast<int32_t>(tree.nodes.size()) + 1,
                        .first_token = static_cast<int32_t>(tokens.size())});
  tree.tokens = std::move(tokens);
  summarise(tree);
  return tree;
}

/// Of what is below each node, from the last one on.
void Vocabulary::summarise(Tree& tree) const {
  std::vector<size_t> open;  // nodes behind this one that no node before holds, the next one last
  for (size_t i = tree.nodes.size() - 1; i-- > 0;) {
    Node& node = tree.nodes[i];
    node.deepest = node.depth;
    for (int32_t k = node.first_token; k < tree.nodes[i + 1].first_token; ++k)
      node.is_whole = node.is_whole && is_in(plain_.back(), tree.tokens[static_cast<size_t>(k)]);
    while (!open.empty() && open.back() < static_cast<size_t>(node.behind)) {
      const Node& below = tree.nodes[open.back()];
      node.deepest = std::max(node.deepest, below.deepest);
      node.is_whole = node.is_whole && below.is_whole;
      node.has_others = node.has_others || below.has_others || below.byte >= 0x80;
      for (size_t k = 0; k < node.ascii.size(); ++k) node.ascii[k] |= below.ascii[k];
      if (below.byte < 0x80) node.ascii[below.byte / 64] |= uint64_t{1} << (below.byte % 64);
      open.pop_back();
    }
    open.push_back(i);
  }
}

}  // namespace soliton::constrain
