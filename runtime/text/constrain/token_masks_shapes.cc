// Tokens by their shapes: for stacks that do not tell letters apart, what a shape leads to is found once for all its tokens.
#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/text/constrain/token_masks.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::constrain {
namespace {

// Bits of what a frame makes the same of.
constexpr uint16_t kIsKnown = 1;
constexpr uint16_t kSmall = 2;
constexpr uint16_t kCapital = 4;
constexpr uint16_t kDigits = 8;
constexpr uint16_t kTakesNoFar = 16;  // no byte that is not ASCII's
constexpr int kFirstFar = 8;          // and the next ones: Vocabulary::far_text()

/// That a frame has to have for a symbol.
uint16_t alike_bit(ShapeTree::Symbol symbol) {
  return symbol == 'a' ? kSmall : symbol == 'A' ? kCapital : symbol == '0' ? kDigits : 0;
}

/// One character of each of Vocabulary::far_text().
const std::string& far_example(size_t index) {
  static const auto examples = [] {
    std::array<std::string, Characters::kNumFar> all;
    for (size_t i = 0; i < all.size(); ++i)
      tokenization::append_character(all[i], Vocabulary::far_text()[i].front().first);
    return all;
  }();
  return examples[index];
}

}  // namespace

/// All tokens, before the first byte.
void TokenMasks::walk_all(const Level& from, int max_depth, TokenMask& mask, Ends* ends) {
  if (!tells_letters_apart(from)) return walk_shapes(from, kRoot, max_depth, mask, ends);
  walk(vocabulary_.tree(), from, kRoot, max_depth, mask, ends != nullptr ? &ends->nodes : nullptr);
}

std::span<const Group> TokenMasks::groups_of(const Level& level) const {
  if (is_lone(level)) return {&level.lone, 1};
  return level.set != StackSets::kNotKept ? sets_.stacks(level.set) : level.stacks;
}

/// Bits as above.
uint16_t TokenMasks::likeness(FrameIndex frame) {
  const auto index = static_cast<size_t>(frame);
  if (index >= likeness_.size()) likeness_.resize(2 * index + 1);
  if (likeness_[index] != 0) return likeness_[index];
  uint16_t bits = kIsKnown;
  if (machine_.are_alike(frame, 'a', 'z')) bits |= kSmall;
  if (machine_.are_alike(frame, 'A', 'Z')) bits |= kCapital;
  if (machine_.are_alike(frame, '0', '9')) bits |= kDigits;
  if ((machine_.bytes(frame) >> 0x80).none()) bits |= kTakesNoFar;
  bits |= static_cast<uint16_t>(machine_.alike_far(frame) << kFirstFar);
  return likeness_[index] = bits;
}

/// Of all groups.
uint16_t TokenMasks::likeness_of(const Level& level) {
  if (is_lone(level)) return likeness(level.lone.frame);
  uint16_t bits = 0xffff;
  for (const Group& group : groups_of(level)) bits &= likeness(group.frame);
  return bits;
}

bool TokenMasks::tells_letters_apart(const Level& level) {
  constexpr uint16_t kAll = kSmall | kCapital | kDigits;
  return (likeness_of(level) & kAll) != kAll;
}

/// Tokens that go on behind a node of their shapes.
void TokenMasks::walk_shapes(const Level& from, int32_t start, int max_depth, TokenMask& mask, Ends* ends) {
  const ShapeTree& tree = vocabulary_.shapes();
  const std::span<const ShapeTree::Node> nodes = tree.nodes;
  const size_t above = start == kRoot ? 0 : nodes[static_cast<size_t>(start)].depth;
  const int32_t end =
      start == kRoot ? static_cast<int32_t>(nodes.size() - 1) : nodes[static_cast<size_t>(start)].behind;
  constexpr int32_t kFewNodes = 4;
  levels_[above] = from;
  for (int32_t i = start + 1; i < end;) {
    const ShapeTree::Node& node = nodes[static_cast<size_t>(i)];
    budget_.charge(1);
    const Level& last = levels_[node.depth - size_t{1}];
    Level& level = levels_[node.depth];
    const ShapeStep step = step_shape(last, node.symbol, max_depth, level);
    if (step == ShapeStep::kGoesOn) {
      const bool is_loop = is_lone(level) && level.lone.frame == last.lone.frame;
      const bool takes_all = node.behind - i > kFewNodes && is_loop && stays(level.lone, i);
      const int32_t next = takes_all ? node.behind : i + 1;
      const int32_t behind = nodes[static_cast<size_t>(next)].first_word;
      budget_.charge((behind - node.first_word) / 8);
      for (int32_t k = node.first_word; k < behind; ++k) {
        const ShapeTree::Word& word = tree.words[static_cast<size_t>(k)];
        mask[word.index] |= word.bits;
      }
      if (ends != nullptr && may_end(level)) ends->shapes.push_back(i);
      i = next;
      continue;
    }
    if (step == ShapeStep::kDiffers) walk_shape(last, i, max_depth, mask, ends);
    i = node.behind;
  }
}

/// The symbols that lead a plain frame to itself.
const Characters& TokenMasks::staying(FrameIndex frame) {
  const auto index = static_cast<size_t>(frame);
  if (index >= staying_.size()) {
    const size_t size = 2 * index + 1;
    budget_.charge_bytes((size - staying_.size()) * sizeof(staying_[0]));
    staying_.resize(size);
  }
  if (staying_[index]) return *staying_[index];
  Characters characters;
  const uint16_t alike = likeness(frame);
  for (uint8_t byte = ' '; byte < 0x7f; ++byte) {
    // Another letter or digit stands for it.
    const bool is_other = std::isalnum(byte) != 0 && alike_bit(byte) == 0;
    const bool is_alike = (alike & alike_bit(byte)) == alike_bit(byte);
    if (!is_other && is_alike && machine_.step(frame, byte) == frame) characters.add(byte);
  }
  for (char32_t i = 0; i < Characters::kNumFar; ++i) {
    if ((alike >> kFirstFar >> i & 1) != 0 && machine_.step_far(frame, i) == frame)
      characters.add(Characters::kFar + i);
  }
  return staying_[index].emplace(characters);
}

/// Whether a group takes all that is below a node.
bool TokenMasks::stays(const Group& group, int32_t node) {
  const ShapeTree& tree = vocabulary_.shapes();
  const ShapeTree::Below& below = tree.below[static_cast<size_t>(node)];
  const int32_t length = below.deepest - tree.nodes[static_cast<size_t>(node)].depth;
  return below.characters.are_in(staying(group.frame)) &&
         (!machine_.is_counted(group) || machine_.room(group) >= length);
}

TokenMasks::ShapeStep TokenMasks::step_shape(const Level& level, ShapeTree::Symbol symbol, int max_depth,
                                             Level& next) {
  if (symbol >= ShapeTree::kFar) return step_far(level, symbol - size_t{ShapeTree::kFar}, max_depth, next);
  const uint16_t needed = alike_bit(symbol);
  if (needed != 0 && (likeness_of(level) & needed) == 0) return ShapeStep::kDiffers;
  return step(level, static_cast<uint8_t>(symbol), max_depth, next) ? ShapeStep::kGoesOn : ShapeStep::kFails;
}

/// Of a character that is not ASCII's. All of its class lead to the same if one does as here.
TokenMasks::ShapeStep TokenMasks::step_far(const Level& level, size_t index, int max_depth, Level& next) {
  const uint16_t alike = likeness_of(level);
  if ((alike & kTakesNoFar) != 0) return ShapeStep::kFails;
  if ((alike >> kFirstFar >> index & 1) == 0) return ShapeStep::kDiffers;
  const std::string& bytes = far_example(index);
  const Level* last = &level;
  for (size_t i = 0; i < bytes.size(); ++i) {
    Level& behind = i + 1 == bytes.size() ? next : levels_far_[i];
    if (!step(*last, static_cast<uint8_t>(bytes[i]), max_depth, behind)) return ShapeStep::kFails;
    last = &behind;
  }
  return ShapeStep::kGoesOn;
}

/// Tokens whose shapes go on with a node, one by one from the level above it.
void TokenMasks::walk_shape(const Level& from, int32_t node, int max_depth, TokenMask& mask, Ends* ends) {
  const ShapeTree& tree = vocabulary_.shapes();
  const Tree& tokens = vocabulary_.tree();
  const std::span<const ShapeTree::Node> nodes = tree.nodes;
  const int32_t behind = nodes[static_cast<size_t>(nodes[static_cast<size_t>(node)].behind)].first_token;
  levels_within_[0] = from;
  std::string_view before;  // what the last token that was looked at goes on with
  size_t known = 0;         // bytes of it that may follow
  const size_t num_ends = ends != nullptr ? ends->nodes.size() : 0;
  for (int32_t i = nodes[static_cast<size_t>(node)].first_token; i < behind;) {
    const auto place = static_cast<size_t>(tree.places[static_cast<size_t>(i)]);
    const std::string_view piece = tokens.piece(place);
    const size_t above = tree.bytes_above(node, piece);
    const std::string_view bytes = piece.substr(above);
    budget_.charge(1);
    const auto common = static_cast<size_t>(
        std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end()).first - before.begin());
    known = before.empty() ? 0 : std::min(known, common);
    before = bytes;
    while (known < bytes.size() && step(levels_within_[known], static_cast<uint8_t>(bytes[known]), max_depth,
                                        levels_within_[known + 1])) {
      ++known;
      if (ends != nullptr && may_end(levels_within_[known]))
        ends->nodes.push_back(static_cast<int32_t>(tokens.node(place, above + known)));
    }
    if (known == bytes.size()) set_token(tree.tokens[static_cast<size_t>(i)], mask);
    do {  // over those that have the byte that may not follow
      ++i;
    } while (i < behind && tree.common[static_cast<size_t>(i)] > above + known);
  }
  if (ends == nullptr) return;
  const auto first_end = ends->nodes.begin() + static_cast<std::ptrdiff_t>(num_ends);
  std::sort(first_end, ends->nodes.end());
  ends->nodes.erase(std::unique(first_end, ends->nodes.end()), ends->nodes.end());
}

}  // namespace soliton::constrain
