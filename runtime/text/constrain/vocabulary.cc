#include "runtime/text/constrain/vocabulary.h"

#include <algorithm>
#include <numeric>

#include "runtime/text/constrain/code_classes.h"
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

/// At the front of both, of tokens' bytes.
static uint8_t common_bytes(std::string_view a, std::string_view b) {
  return static_cast<uint8_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).second - b.begin());
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
  find_whole(tokens);
  std::vector<std::u16string> shapes;
  for (const int32_t token : tokens) shapes.push_back(shape_of(piece(token)));
  shapes_ = ShapeTree(tokens, shapes);
  std::string_view last;
  for (const int32_t token : shapes_.tokens) {
    const std::string_view bytes = piece(token);
    shapes_.common.push_back(common_bytes(last, bytes));
    last = bytes;
  }
  tree_ = tree_of(std::move(tokens));
  rest_ = tree_of(std::move(others));
}

const std::array<CodeSet, Characters::kNumFar>& Vocabulary::far_text() {
  static const std::array<CodeSet, Characters::kNumFar> classes = [] {
    constexpr std::array<std::string_view, Characters::kNumFar - 3> kCategories = {"L", "M", "N", "P", "S"};
    std::array<CodeSet, Characters::kNumFar> sets;
    CodeSet rest =
        intersection(plain_text(), {{0x80, 0xd7ff}, {0xe000, 0xffff}});  // surrogates are in no text
    for (size_t i = 0; i < kCategories.size(); ++i) {
      const CodeSet codes = category_codes(kCategories[i]).value().most;
      sets[i] = intersection(rest, codes);
      rest = intersection(rest, complement(codes));
    }
    sets[kCategories.size()] = intersection(sets[0], {{0x80, 0xff}});
    sets[0] = intersection(sets[0], {{0x100, 0xffff}});
    sets[kCategories.size() + 1] = {{0x10000, kMaxCode}};
    sets.back() = rest;
    return sets;
  }();
  return classes;
}

static bool is_of(const CodeSet& set, char32_t code) {
  const auto behind = std::upper_bound(set.begin(), set.end(), code,
                                       [](char32_t c, const CodeRange& range) { return c < range.first; });
  return behind != set.begin() && code <= std::prev(behind)->last;
}

/// Whether the first character is one of plain_text(), whole.
static bool begins_plain(std::string_view text, size_t& length) {
  const tokenization::Utf8Step step = tokenization::utf8_step(text);
  length = step.length;
  if (step.kind != tokenization::Utf8Step::kValid) return false;
  const char32_t code = tokenization::first_character(text).code;
  return is_of(Vocabulary::plain_text(), code);
}

/// The first character as Characters have it.
static char32_t class_of(std::string_view text, size_t& length) {
  const bool is_plain = begins_plain(text, length);
  length = std::max<size_t>(length, 1);
  const auto byte = static_cast<uint8_t>(text[0]);
  if (Characters::is_printed(byte)) return byte;
  if (Characters::is_control(byte)) return Characters::kControls;
  if (!is_plain) return Characters::kOdd;
  const auto& classes = Vocabulary::far_text();
  const char32_t code = tokenization::first_character(text).code;
  const auto found =
      std::find_if(classes.begin(), classes.end(), [&](const CodeSet& set) { return is_of(set, code); });
  return Characters::kFar + static_cast<char32_t>(found - classes.begin());
}

static ShapeTree::Symbol symbol_of(char32_t code) {
  if (code >= 'a' && code <= 'z') return 'a';
  if (code >= 'A' && code <= 'Z') return 'A';
  if (code >= '0' && code <= '9') return '0';
  return static_cast<ShapeTree::Symbol>(code);
}

std::u16string Vocabulary::shape_of(std::string_view bytes) {
  std::u16string shape;
  size_t length = 0;
  for (size_t at = 0; at < bytes.size(); at += length) {
    const char32_t code = class_of(bytes.substr(at), length);
    if (code >= ' ') {
      shape.push_back(symbol_of(code));
    } else if (code >= Characters::kFar && code < Characters::kFar + Characters::kNumFar) {
      shape.push_back(static_cast<ShapeTree::Symbol>(ShapeTree::kFar + code - Characters::kFar));
    } else {
      for (size_t i = 0; i < length; ++i) shape.push_back(static_cast<uint8_t>(bytes[at + i]));
    }
  }
  return shape;
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
    const size_t common = common_bytes(last, bytes);
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
    tree.common.push_back(static_cast<uint8_t>(common));
    tree.leaves.push_back(static_cast<int32_t>(open.back()));
    tree.offsets.push_back(static_cast<uint32_t>(tree.bytes.size()));
    tree.bytes += bytes;
  }
  tree.offsets.push_back(static_cast<uint32_t>(tree.bytes.size()));
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

void Vocabulary::find_whole(std::span<const int32_t> tokens) {
  whole_.resize(pieces_.size());
  up_to_.assign(kMostPlainCharacters + 1, TokenMask(num_words()));
  for (const int32_t token : tokens) {
    Characters whole;
    const std::string_view bytes = piece(token);
    size_t count = 0;
    size_t length = 0;
    for (size_t at = 0; at < bytes.size(); at += length, ++count)
      whole.add(class_of(bytes.substr(at), length));
    const auto index = static_cast<size_t>(token);
    whole_.add(index, whole);
    for (size_t i = count; i <= kMostPlainCharacters; ++i)
      up_to_[i][index / kMaskBits] |= uint32_t{1} << (index % kMaskBits);
    if (count > kMostPlainCharacters) long_.push_back({token, count, whole});
  }
  whole_.unite();
}

void Vocabulary::add_consisting_of(const Characters& characters, int64_t most, TokenMask& mask) const {
  const TokenMask& short_enough =
      up_to_[static_cast<size_t>(std::clamp<int64_t>(most, 0, kMostPlainCharacters))];
  const TokensOfCharacters::Lists others = whole_.lists_of(characters.others());
  for (size_t first = 0; first < mask.size(); first += 2 * TokensOfCharacters::kWords) {
    const TokensOfCharacters::Words words = TokensOfCharacters::having_none(others, first / 2);
    const size_t num_words = std::min(2 * words.size(), mask.size() - first);
    for (size_t i = 0; i < num_words; ++i)
      mask[first + i] |= short_enough[first + i] & static_cast<uint32_t>(words[i / 2] >> (i % 2 * kMaskBits));
  }
  for (const LongToken& token : long_) {
    const auto index = static_cast<size_t>(token.token);
    if (static_cast<int64_t>(token.num_characters) <= most && token.characters.are_in(characters))
      mask[index / kMaskBits] |= uint32_t{1} << (index % kMaskBits);
  }
}

size_t Vocabulary::Tree::node(size_t place, size_t depth) const {
  while (common[place] >= depth) --place;  // to the first token that has these bytes
  return static_cast<size_t>(leaves[place]) - (piece(place).size() - depth);
}

void Vocabulary::find_characters(Tree& tree) const {
  tree.whole.resize(tree.tokens.size());
  tree.but_first.resize(tree.tokens.size());
  constexpr size_t kBits = TokensOfCharacters::kTokensOfWord;
  tree.longer.assign(kMostPlainCharacters + 1, std::vector<uint64_t>(tree.tokens.size() / kBits + 1));
  for (size_t i = 0; i < tree.tokens.size(); ++i) {
    Characters whole;
    Characters but_first;
    const std::string_view bytes = tree.piece(i);
    uint8_t count = 0;
    size_t length = 0;
    for (size_t at = 0; at < bytes.size(); at += length, ++count) {
      const char32_t code = class_of(bytes.substr(at), length);
      whole.add(code);
      if (at > 0) but_first.add(code);
    }
    tree.whole.add(i, whole);
    tree.but_first.add(i, but_first);
    tree.lengths.push_back(count);
    for (size_t most = 0; most <= kMostPlainCharacters && most < count; ++most)
      tree.longer[most][i / kBits] |= uint64_t{1} << (i % kBits);
  }
  tree.whole.unite();
  tree.but_first.unite();
}

/// Of what is below each node, from the last one on. Where bytes are neither printed nor of controls, all that such bytes of
/// the tokens there may be.
void Vocabulary::summarise(Tree& tree) const {
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
      tokens[i] |= whole_.of(static_cast<size_t>(tree.tokens[static_cast<size_t>(k)]));
    while (!open.empty() && open.back() < static_cast<size_t>(node.behind)) {
      const Node& below = tree.nodes[open.back()];
      node.deepest = std::max(node.deepest, below.deepest);
      node.below |= below.below;
      tokens[i] |= tokens[open.back()];
      has_far = has_far || is_far(below.byte);
      if (Characters::is_printed(below.byte)) node.below.add(below.byte);
      open.pop_back();
    }
    if (has_far) {
      for (char32_t code = 0; code < Characters::kFar + Characters::kNumFar; ++code) {
        if (code != Characters::kControls && tokens[i].has(code)) node.below.add(code);
      }
    }
    open.push_back(i);
  }
}

}  // namespace soliton::constrain
