#include "runtime/text/constrain/shape_tree.h"

#include <algorithm>
#include <map>

#include "runtime/text/tokenizer/utf8.h"

namespace soliton::constrain {

ShapeTree::ShapeTree(std::span<const int32_t> tokens_at, std::span<const std::u16string> shapes) {
  std::map<std::u16string_view, std::vector<int32_t>> places_of;
  for (size_t i = 0; i < shapes.size(); ++i) places_of[shapes[i]].push_back(static_cast<int32_t>(i));
  std::vector<int32_t> open;  // the nodes of the last shape
  const auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back())
      nodes[static_cast<size_t>(open.back())].behind = static_cast<int32_t>(nodes.size());
  };
  std::u16string_view last;
  for (const auto& [shape, its_places] : places_of) {
    const auto common = static_cast<size_t>(
        std::mismatch(last.begin(), last.end(), shape.begin(), shape.end()).second - shape.begin());
    close(common);
    for (size_t depth = common; depth < shape.size(); ++depth) {
      Node node{.symbol = shape[depth],
                .depth = static_cast<uint8_t>(depth + 1),
                .num_far = 0,
                .above = -1,
                .behind = 0,
                .first_token = static_cast<int32_t>(places.size()),
                .first_word = static_cast<int32_t>(words.size())};
      if (depth > 0) {
        node.above = open.back();
        const Node& above = nodes[static_cast<size_t>(node.above)];
        node.num_far = static_cast<uint8_t>(above.num_far + (above.symbol >= kFar ? 1 : 0));
      }
      open.push_back(static_cast<int32_t>(nodes.size()));
      nodes.push_back(node);
    }
    places.insert(places.end(), its_places.begin(), its_places.end());
    add_words(tokens_at, its_places);
    last = shape;
  }
  close(0);
  nodes.push_back({.symbol = 0,
                   .depth = 0,
                   .num_far = 0,
                   .above = -1,
                   .behind = static_cast<int32_t>(nodes.size()) + 1,
                   .first_token = static_cast<int32_t>(places.size()),
                   .first_word = static_cast<int32_t>(words.size())});
  for (const int32_t place : places) tokens.push_back(tokens_at[static_cast<size_t>(place)]);
  below.resize(nodes.size());
  for (size_t i = nodes.size() - 1; i-- > 0;) {
    below[i].deepest = std::max(below[i].deepest, nodes[i].depth);
    if (nodes[i].above < 0) continue;
    Below& above = below[static_cast<size_t>(nodes[i].above)];
    above.characters |= below[i].characters;
    above.characters.add(code_of(nodes[i].symbol));
    above.deepest = std::max(above.deepest, below[i].deepest);
  }
}

/// Of the tokens at some places.
void ShapeTree::add_words(std::span<const int32_t> tokens_at, std::span<const int32_t> its_places) {
  std::vector<uint32_t> its_tokens;
  for (const int32_t place : its_places)
    its_tokens.push_back(static_cast<uint32_t>(tokens_at[static_cast<size_t>(place)]));
  std::sort(its_tokens.begin(), its_tokens.end());
  const size_t first = words.size();
  for (const uint32_t token : its_tokens) {
    const uint32_t index = token / kMaskBits;
    if (words.size() == first || words.back().index != index) words.push_back({index, 0});
    words.back().bits |= uint32_t{1} << (token % kMaskBits);
  }
}

char32_t ShapeTree::code_of(Symbol symbol) {
  if (symbol >= kFar) return Characters::kFar + symbol - kFar;
  const auto byte = static_cast<uint8_t>(symbol);
  if (Characters::is_printed(byte)) return byte;
  return Characters::is_control(byte) ? Characters::kControls : Characters::kOdd;
}

size_t ShapeTree::bytes_above(int32_t node, std::string_view piece) const {
  const Node& at = nodes[static_cast<size_t>(node)];
  if (at.num_far == 0) return at.depth - size_t{1};
  const size_t before = bytes_above(at.above, piece);
  const bool is_far = nodes[static_cast<size_t>(at.above)].symbol >= kFar;
  return before + (is_far ? tokenization::character_length(piece[before]) : 1);
}

}  // namespace soliton::constrain
