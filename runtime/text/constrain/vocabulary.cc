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

/// Whether the first character is one of plain_text(), whole.
static bool begins_plain(std::string_view text, size_t& length) {
  const tokenization::Utf8Step step = tokenization::utf8_step(text);
  length = step.length;
  if (step.kind != tokenization::Utf8Step::kValid) return false;
  const char32_t code = tokenization::first_character(text).code;
  return !intersection(Vocabulary::plain_text(), {{code, code}}).empty();
}

/// The first character as Characters have it.
static char32_t class_of(std::string_view text, size_t& length) {
  const bool is_plain = begins_plain(text, length);
  length = std::max<size_t>(length, 1);
  const auto byte = static_cast<uint8_t>(text[0]);
  if (Characters::is_printed(byte)) return byte;
  if (Characters::is_control(byte)) return Characters::kControls;
  return is_plain ? Characters::kOthers : Characters::kOdd;
}

/// Takes them out of the tokens.
void Vocabulary::find_plain(std::vector<int32_t>& tokens) {
  plain_.assign(kMostPlainCharacters + 1, TokenMask(num_words()));
  std::erase_if(tokens, [&](int32_t token) {
    std::string_view rest = piece(token);
    num_characters_ = std::max(num_characters_, rest.size());
    size_t count = 0;
    for (size_t length = 0; !rest.empty(); ++count) {
      if (!begins_plain(rest, length)) return false;
      rest.remove_prefix(length);
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
  find_characters(tree);
  summarise(tree);
  return tree;
}

void Vocabulary::find_characters(Tree& tree) const {
  for (const int32_t token : tree.tokens) {
    Characters whole;
    Characters but_first;
    const std::string_view bytes = piece(token);
    uint8_t count = 0;
    size_t length = 0;
    for (size_t at = 0; at < bytes.size(); at += length, ++count) {
      const char32_t code = class_of(bytes.substr(at), length);
      whole.add(code);
      if (at > 0) but_first.add(code);
    }
    tree.whole.push_back(whole);
    tree.but_first.push_back(but_first);
    tree.lengths.push_back(count);
  }
}

/// Of what is below each node, from the last one on. Where bytes are neither printed nor of controls, all that such bytes of
/// the tokens there may be.
void Vocabulary::summarise(Tree& tree) {
  std::vector<size_t> open;  // nodes behind this one that no node before holds, the next one last
  std::vector<Characters> tokens(tree.nodes.size());  // that end at a node or below
  for (size_t i = tree.nodes.size() - 1; i-- > 0;) {
    Node& node = tree.nodes[i];
    node.deepest = node.depth;
    const auto is_far = [](uint8_t byte) {
      return !Characters::is_printed(byte) && !Characters::is_control(byte);
    };
    bool has_far = is_far(node.byte);
    if (Characters::is_control(node.byte)) node.below.add(Characters::kControls);
    for (int32_t k = node.first_token; k < tree.nodes[i + 1].first_token; ++k)
      tokens[i] |= tree.whole[static_cast<size_t>(k)];
    while (!open.empty() && open.back() < static_cast<size_t>(node.behind)) {
      const Node& below = tree.nodes[open.back()];
      node.deepest = std::max(node.deepest, below.deepest);
      node.below |= below.below;
      tokens[i] |= tokens[open.back()];
      has_far = has_far || is_far(below.byte);
      if (Characters::is_printed(below.byte)) node.below.add(below.byte);
      open.pop_back();
    }
    for (const char32_t code : {Characters::kOthers, Characters::kOdd}) {
      if (has_far && tokens[i].has(code)) node.below.add(code);
    }
    open.push_back(i);
  }
}

}  // namespace soliton::constrain
