#include "runtime/text/constrain/token_masks.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

namespace soliton::constrain {
namespace {

constexpr int32_t kNotCounted = -1;

// Stacks that are looked at at once, where there are many. All of a text may be too many, with what calls add to them.
constexpr size_t kFewTogether = 5;
constexpr size_t kManyTogether = 64;

// Of a vocabulary of 128k tokens a mask has 16 KB, and a walk up to 1 MB.
constexpr size_t kMostBytes = size_t{12} << 20;

/// Whether a count ends those of a loop's texts exactly that are of an even one.
bool ends_exactly(const CharacterLoop& even, const CharacterLoop& loop) {
  return even.most == CharacterLoop::kEndless && even.are_counted && even.stay.are_in(loop.stay);
}

}  // namespace

const TokenMask& TokenMasks::allowed(const Stacks& stacks) {
  Stacks key = stacks;  // without counts that make no difference
  for (Group& group : key) {
    if (!machine_.may_count(group, static_cast<int>(vocabulary_.num_characters()))) group.count = kNotCounted;
  }
  const auto known = masks_.find(key);
  if (known != masks_.end()) return known->second;
  sets_.forget_if_full();
  TokenMask mask(vocabulary_.num_words());
  Stacks together;
  for (const Group& group : stacks) {
    if (takes_few(group)) together.push_back(group);
  }
  if (together.size() < kFewTogether) together.clear();
  for (const Group& group : stacks) {
    if (together.empty() || !takes_few(group)) allow(group, mask);
  }
  for (size_t first = 0; first < together.size(); first += kManyTogether)
    allow_together(std::span(together).subspan(first, std::min(kManyTogether, together.size() - first)),
                   mask);
  forget_if_too_much(mask.size() * sizeof(mask[0]) + stacks.size() * sizeof(stacks[0]));
  return masks_.emplace(std::move(key), std::move(mask)).first->second;
}

/// Of each rule that takes many characters, or does so behind a quote; and behind the first of these. Where a text has to begin
/// with one of few, as items do that are told apart by it, its loops.
void TokenMasks::look_ahead(std::chrono::nanoseconds most) {
  constexpr size_t kManyBytes = 32;
  constexpr size_t kMostStates = 500;  // of more, a mask alone may take all the time
  constexpr size_t kMostFrames = 100;  // whose masks are kept: see kMostBytes
  const auto takes_many = [&](FrameIndex frame) {
    return frame != StackMachine::kNone && machine_.num_states(frame) <= kMostStates &&
           machine_.bytes(frame).count() >= kManyBytes;
  };
  const std::chrono::nanoseconds end = processor_time() + most;
  std::unordered_set<FrameIndex> seen;
  const auto is_new = [&](FrameIndex frame) { return takes_many(frame) && seen.insert(frame).second; };
  std::vector<FrameIndex> few;  // that take few bytes
  for (size_t rule = 0; rule < machine_.automaton().starts.size(); ++rule) {
    const FrameIndex start = machine_.start_of_rule(rule);
    if (start == StackMachine::kNone) continue;
    const FrameIndex quoted = machine_.step(start, '"');
    const FrameIndex text = takes_many(start) || quoted == StackMachine::kNone ? start : quoted;
    if (is_new(text)) {
      walk_from_root(text, kMaxDepth);
      for (const uint8_t byte : {'a', 'A', '0'}) {
        const FrameIndex behind = machine_.step(text, byte);
        if (is_new(behind)) walk_from_root(behind, kMaxDepth);
      }
    } else if (takes_few({text, kBottom})) {
      few.push_back(text);
    }
    if (seen.size() >= kMostFrames || processor_time() >= end) return;
  }
  for (const FrameIndex text : few) {
    const std::bitset<256> bytes = machine_.bytes(text);
    for (int byte = 0; byte <= 0xff; ++byte) {
      if (!bytes[static_cast<size_t>(byte)]) continue;
      const FrameIndex behind = machine_.step(text, static_cast<uint8_t>(byte));
      if (is_new(behind)) longest_loop_of(behind);
    }
    if (processor_time() >= end) return;
  }
}

/// Makes room for something that is kept.
void TokenMasks::forget_if_too_much(size_t num_bytes) {
  if (num_bytes_ + num_bytes > kMostBytes) {
    walks_.clear();
    masks_.clear();
    num_bytes_ = 0;
  }
  num_bytes_ += num_bytes;
}

/// Tokens of which a group reads the first bytes, and all if its rule does not end before.
void TokenMasks::allow(const Group& group, TokenMask& mask) {
  if (machine_.may_count(group, static_cast<int>(vocabulary_.num_characters()))) {
    const std::optional<int32_t> plain = plain_room(group);
    if (!plain) return walk_all(level_of({group}), kMaxDepth, mask, nullptr);
    add_plain(static_cast<size_t>(*plain), mask);
    return walk(vocabulary_.rest(), level_of({group}), kRoot, kMaxDepth, mask, nullptr);
  }
  const Walk& found = walk_from_root(group.frame, kMaxDepth - machine_.depth(group.below));
  budget_.charge(std::ssize(mask) / 8);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] |= found.mask[i];
  if (found.ends.nodes.empty() && found.ends.shapes.empty()) return;
  const Stacks behind = machine_.behind(group.below);
  if (behind.empty()) return;
  const Level from = level_of(behind);
  for (const int32_t end : found.ends.nodes) walk(*found.tree, from, end, kMaxDepth, mask, nullptr);
  for (const int32_t end : found.ends.shapes) walk_shapes(from, end, kMaxDepth, mask, nullptr);
}

/// Whether so few bytes may follow that no loop is worth being looked for.
bool TokenMasks::takes_few(const Group& group) const {
  constexpr size_t kFewBytes = 8;
  return machine_.bytes(group.frame).count() < kFewBytes;
}

/// Tokens of which any of the groups reads the first bytes.
void TokenMasks::allow_together(std::span<const Group> groups, TokenMask& mask) {
  walk(vocabulary_.tree(), level_of({groups.begin(), groups.end()}), kRoot, kMaxDepth, mask, nullptr);
}

void TokenMasks::add_plain(size_t num_characters, TokenMask& mask) {
  const TokenMask& plain = vocabulary_.plain(num_characters);
  budget_.charge(std::ssize(mask) / 8);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] |= plain[i];
}

/// A long look is worth it only where a walk through shapes does not do.
const std::optional<PlainText::Room>& TokenMasks::plain_text_of(FrameIndex frame) {
  constexpr size_t kFewPlaces = 100;
  const bool walks_shapes = machine_.is_plain(frame) && !tells_letters_apart({.lone = {frame, kBottom}});
  return plain_text_.of(frame, walks_shapes ? kFewPlaces : PlainText::kMostPlaces);
}

/// Plain characters that a group may read, up to kMostPlainCharacters: then only the other tokens have to be tried. Nothing:
/// all have to be.
std::optional<int32_t> TokenMasks::plain_room(const Group& group) {
  constexpr auto kMost = static_cast<int32_t>(Vocabulary::kMostPlainCharacters);
  const std::optional<PlainText::Room>& room = plain_text_of(group.frame);
  if (!room) return std::nullopt;
  if (!machine_.is_counted(group)) return kMost;
  const int32_t most = machine_.room(group) + machine_.characters(group.frame) - room->characters;
  if (most >= kMost) return kMost;
  if (!room->are_counted || room->least_characters != room->characters) return std::nullopt;
  return std::max(0, most);
}

/// The loop that begins where a group is. Where a count may end it soon, and no part of it exactly, one that it ends so.
const CharacterLoop& TokenMasks::loop_of(const Group& group) {
  const CharacterLoop& loop = longest_loop_of(group.frame);
  constexpr int32_t kLong = 6;  // characters that few tokens exceed, which are looked at one by one
  if (loop.is_even || !machine_.is_counted(group) || room(group, loop) >= std::min(loop.most, kLong))
    return loop;
  const CharacterLoop& even = loops_.even_of(group.frame);
  return room(group, loop) > 0 && ends_exactly(even, loop) ? loop : even;
}

/// Where plain text goes on for ever, whatever the frames are, and else the one that is found.
const CharacterLoop& TokenMasks::longest_loop_of(FrameIndex frame) {
  const std::optional<PlainText::Room>& room = plain_text_of(frame);
  if (!room) return loops_.of(frame);
  const auto known = plain_loops_.find(frame);
  if (known != plain_loops_.end()) return known->second;
  CharacterLoop loop{.most = CharacterLoop::kEndless, .is_exact = true};
  loop.stay = Characters::plain_text();
  loop.leave = Characters::all();
  loop.leave.remove(loop.stay);
  loop.are_counted = room->are_counted;
  loop.is_even = room->least_characters == room->characters;
  loop.characters = room->characters;
  loop.height = room->height;
  budget_.charge_bytes(sizeof(loop));
  return plain_loops_.emplace(frame, loop).first->second;
}

/// Characters of a loop that a count lets a group read for certain.
int32_t TokenMasks::room(const Group& group, const CharacterLoop& loop) const {
  if (!machine_.is_counted(group)) return loop.most;
  return std::min(loop.most, machine_.room(group) + machine_.characters(group.frame) - loop.characters);
}

/// Takes the tokens below a node, before `end`, if the group that has come there stays in a loop with many of them: these by
/// their characters, and of the others those that leave it one by one. False if nothing has been taken. It needs a node so
/// near the root that the characters of all tokens below it are known from there on, or one below which all stay.
bool TokenMasks::take_loop(const Tree& tree, int32_t node, int32_t end, int max_depth, const Level& level,
                           TokenMask& mask, std::vector<int32_t>* ends) {
  // To find a loop costs as much as some steps.
  constexpr int32_t kFewNodes = 64;
  constexpr int32_t kFewDeepNodes = 500;
  const int32_t depth = node == kRoot ? 0 : tree.nodes[static_cast<size_t>(node)].depth;
  if (end - node < (depth > 1 ? kFewDeepNodes : kFewNodes)) return false;
  const CharacterLoop& loop = loop_of(level.lone);
  const int32_t most = room(level.lone, loop);
  const int needed = machine_.depth(level.lone.below) + loop.height;
  if (most <= 0 || needed > max_depth) return false;
  machine_.reach(needed);
  if (node != kRoot) {
    const Vocabulary::Node& at = tree.nodes[static_cast<size_t>(node)];
    if (at.below.are_in(loop.stay) && most >= at.deepest - depth) {
      budget_.charge((end - node) / 8);
      set_tokens(tree, static_cast<size_t>(node), static_cast<size_t>(end), mask);
      return true;
    }
  }
  constexpr int kFewCharacters = 8;      // of these, few tokens are
  constexpr int32_t kMostWithMany = 10;  // characters that many tokens exceed
  constexpr int32_t kMostExceeded = 6;   // characters that so many tokens exceed that most are left out first
  constexpr int32_t kFewTimes = 8;       // behind which little is known, what follows finds loops of its own
  if (depth > 1 || loop.stay.size() < kFewCharacters) return false;
  // A count that ends a loop ends it there if all frames are equally far from the end of the rule, and else perhaps later.
  const bool is_exact = most == loop.most ? loop.is_exact : loop.are_counted && loop.is_even;
  if (!is_exact && most == loop.most && most < kFewTimes) return false;
  Rest rest{.stay = loop.stay,
            .leave = loop.leave,
            .most = int64_t{depth} + (is_exact ? CharacterLoop::kEndless : most),
            .longest = int64_t{depth} + longest_in(level.lone, loop),
            .has_first = depth == 0};
  const auto first =
      static_cast<size_t>(node == kRoot ? 0 : tree.nodes[static_cast<size_t>(node)].first_token);
  const auto last = static_cast<size_t>(tree.nodes[static_cast<size_t>(end)].first_token);
  budget_.charge(static_cast<int64_t>(last - first) / 8);
  const auto add = [&](const Characters& characters, int64_t num_characters) {
    if (depth == 0) {
      vocabulary_.add_consisting_of(characters, num_characters, mask);
    } else {
      set_tokens_going_on_with(tree, characters, first, last, depth + num_characters, mask);
    }
  };
  add(loop.stay, most);
  if (!is_exact && most <= kMostWithMany && machine_.is_counted(level.lone)) {
    const CharacterLoop& even = loops_.even_of(level.lone.frame);
    if (ends_exactly(even, loop)) {
      add(even.stay, room(level.lone, even));
      rest.counted = even.stay;
    }
  }
  find_rest(tree, rest, first, last);
  if (depth == 0 && most <= kMostExceeded && !rest.counted.empty())
    leave_out_what_ends(tree, rest, level.lone);
  walk_rest(tree, first, last, static_cast<size_t>(depth), max_depth, mask, ends);
  return true;
}

/// The same of a node's level: of several groups, of each by itself. False if some are left, which the level has then.
bool TokenMasks::take_loops(const Tree& tree, int32_t node, int32_t end, int max_depth, Level& level,
                            TokenMask& mask, std::vector<int32_t>* ends) {
  constexpr size_t kFewGroups = 4;
  constexpr int32_t kManyNodes = 500;  // that are worth a loop of each group
  if (is_lone(level)) return take_loop(tree, node, end, max_depth, level, mask, ends);
  if (end - node < kManyNodes) return false;
  const std::span<const Group> groups = groups_of(level);
  if (groups.size() > kFewGroups || !std::all_of(groups.begin(), groups.end(), [&](const Group& group) {
        return machine_.is_plain(group.frame);
      }))
    return false;
  const Stacks all(groups.begin(), groups.end());
  Stacks left;
  for (const Group& group : all) {
    level = {.lone = group};
    if (!take_loop(tree, node, end, max_depth, level, mask, ends)) left.push_back(group);
  }
  if (left.empty()) return true;
  level = level_of(left);
  return false;
}

/// Characters of a loop that a group may read at most.
int32_t TokenMasks::longest_in(const Group& group, const CharacterLoop& loop) const {
  if (!machine_.is_counted(group) || !loop.are_counted) return CharacterLoop::kEndless;
  const int32_t left = machine_.most_left(group);  // of those that the loop knows, each is counted
  return loop.most > left ? left : CharacterLoop::kEndless;
}

namespace {

constexpr size_t kBits = TokensOfCharacters::kTokensOfWord;

/// Of the word of places from `base` on, those from `first` to before `last`.
uint64_t places_within(size_t base, size_t first, size_t last) {
  uint64_t places = ~uint64_t{0};
  if (base < first) places &= ~uint64_t{0} << (first - base);
  if (last - base < kBits) places &= (uint64_t{1} << (last - base)) - 1;
  return places;
}

size_t place_of_first(uint64_t word, size_t base) {
  return base + static_cast<size_t>(std::countr_zero(word));
}

/// The next one that has a bit, from `first` on; `last` or more if there is none before that.
size_t next_place(std::span<const uint64_t> places, size_t first, size_t last) {
  if (first >= last) return last;
  size_t word = first / kBits;
  uint64_t left = places[word] & (~uint64_t{0} << (first % kBits));
  while (left == 0) {
    if (++word * kBits >= last) return last;
    left = places[word];
  }
  return place_of_first(left, word * kBits);
}

/// Of a word of places, those of tokens of more characters than that.
uint64_t longer_than(const Vocabulary::Tree& tree, int64_t num_characters, size_t word) {
  constexpr int64_t kMost = Vocabulary::kMostPlainCharacters;
  uint64_t longer = tree.longer[static_cast<size_t>(std::min(num_characters, kMost))][word];
  if (num_characters <= kMost) return longer;
  for (uint64_t left = longer; left != 0; left &= left - 1) {
    if (tree.lengths[place_of_first(left, word * kBits)] <= num_characters) longer &= ~(left & -left);
  }
  return longer;
}

}  // namespace

/// Of the tokens from `first` to before `last` those of at most so many characters, of which all but the first are of the
/// given ones.
void TokenMasks::set_tokens_going_on_with(const Tree& tree, const Characters& characters, size_t first,
                                          size_t last, int64_t most, TokenMask& mask) {
  const TokensOfCharacters::Lists others = tree.but_first.lists_of(characters.others());
  for (size_t block = first / kBits; block * kBits < last; block += TokensOfCharacters::kWords) {
    const TokensOfCharacters::Words words = TokensOfCharacters::having_none(others, block);
    for (size_t i = 0; i < words.size() && (block + i) * kBits < last; ++i) {
      const size_t base = (block + i) * kBits;
      for (uint64_t left = words[i] & places_within(base, first, last); left != 0; left &= left - 1) {
        const size_t place = place_of_first(left, base);
        if (tree.lengths[place] <= most) set_token(tree.tokens[place], mask);
      }
    }
  }
}

/// Finds rest_ from place `first` to before `last`.
void TokenMasks::find_rest(const Tree& tree, const Rest& rest, size_t first, size_t last) {
  const TokensOfCharacters& tokens = rest.has_first ? tree.whole : tree.but_first;
  const bool has_longer = rest.most < static_cast<int64_t>(vocabulary_.num_characters());
  rest_.resize(tree.tokens.size() / kBits + 1);
  const TokensOfCharacters::Lists leave = tokens.lists_of(rest.leave);
  const TokensOfCharacters::Lists others = tokens.lists_of(rest.stay.others());
  const TokensOfCharacters::Lists not_counted = tokens.lists_of(rest.counted.others());
  for (size_t block = first / kBits; block * kBits < last; block += TokensOfCharacters::kWords) {
    TokensOfCharacters::Words words = TokensOfCharacters::having(leave, block);
    const size_t num_words = std::min(words.size(), (last - 1) / kBits + 1 - block);
    if (has_longer) {
      const TokensOfCharacters::Words other = TokensOfCharacters::having(others, block);
      const TokensOfCharacters::Words open = TokensOfCharacters::having(not_counted, block);
      for (size_t i = 0; i < num_words; ++i) {
        const uint64_t longer = longer_than(tree, rest.most, block + i);
        if (longer == 0) continue;
        words[i] |= longer & (other[i] | (open[i] & ~longer_than(tree, rest.longest, block + i)));
      }
    }
    for (size_t i = 0; i < num_words; ++i)
      rest_[block + i] = words[i] & places_within((block + i) * kBits, first, last);
  }
}

namespace {

/// Is it printable ASCII? Of a loop's characters those that behind_many() looks at.
bool is_printable(char byte) {
  return byte >= ' ' && byte < 0x7f;
}

}  // namespace

/// Printable bytes of a loop that a group may read behind so many others of it, within its count. Nothing: too many frames are
/// reached.
std::optional<std::bitset<256>> TokenMasks::behind_many(const Group& group, const Characters& stay,
                                                        int64_t num_characters) {
  constexpr size_t kMostGroups = 16;
  std::bitset<256> bytes;
  std::vector<Group> level = {group};
  for (int64_t i = 0; i <= num_characters; ++i) {
    std::vector<Group> next;
    bytes.reset();
    for (const Group& at : level) {
      budget_.charge(Characters::kNumCodes);
      for (uint8_t byte = ' '; byte < 0x7f; ++byte) {
        if (!stay.has(byte)) continue;
        const Group behind = machine_.step(at, byte);
        if (behind.frame == StackMachine::kNone) continue;
        bytes.set(byte);
        if (next.empty() || next.back() != behind) next.push_back(behind);
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    if (next.size() > kMostGroups) return std::nullopt;
    level = std::move(next);
  }
  return bytes;
}

/// Takes tokens out of rest_ that have only characters of the loop, the first ones printable, and behind `most` of these one that
/// no text has there.
void TokenMasks::leave_out_what_ends(const Tree& tree, const Rest& rest, const Group& group) {
  const std::optional<std::bitset<256>> may_stand = behind_many(group, rest.stay, rest.most);
  if (!may_stand) return;
  const auto at = static_cast<size_t>(rest.most);
  const TokensOfCharacters::Lists others = tree.whole.lists_of(rest.stay.others());
  for (size_t block = 0; block < rest_.size(); block += TokensOfCharacters::kWords) {
    const TokensOfCharacters::Words staying = TokensOfCharacters::having_none(others, block);
    for (size_t i = 0; i < staying.size() && block + i < rest_.size(); ++i) {
      for (uint64_t left = rest_[block + i] & staying[i]; left != 0; left &= left - 1) {
        const std::string_view piece = tree.piece(place_of_first(left, (block + i) * kBits));
        if (piece.size() <= at || may_stand->test(static_cast<uint8_t>(piece[at]))) continue;
        const std::string_view begin = piece.substr(0, at + 1);
        if (std::all_of(begin.begin(), begin.end(), is_printable)) rest_[block + i] &= ~(left & -left);
      }
    }
  }
}

/// Tokens of rest_ from `first` to before `last`, in the order of their bytes, so that those that have some in common with the
/// one before go on where these end. All have the first `depth` bytes, of the level there.
void TokenMasks::walk_rest(const Tree& tree, size_t first, size_t last, size_t depth, int max_depth,
                           TokenMask& mask, std::vector<int32_t>* ends) {
  std::string_view before;  // the last one that was looked at
  size_t known = depth;     // bytes of it that may follow
  for (size_t place = next_place(rest_, first, last); place < last;) {
    const std::string_view bytes = tree.piece(place);
    budget_.charge(1);
    const auto common = static_cast<size_t>(
        std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end()).first - before.begin());
    if (!before.empty()) known = std::min(known, common);
    before = bytes;
    while (known < bytes.size() &&
           step(levels_[known], static_cast<uint8_t>(bytes[known]), max_depth, levels_[known + 1])) {
      ++known;
      if (ends != nullptr && may_end(levels_[known]))
        ends->push_back(static_cast<int32_t>(tree.node(place, known)));
    }
    if (known == bytes.size()) set_token(tree.tokens[place], mask);
    do {  // over those that have the byte that may not follow
      ++place;
    } while (place < last && tree.common[place] > known);
    place = next_place(rest_, place, last);
  }
}

const TokenMasks::Walk& TokenMasks::walk_from_root(FrameIndex frame, int max_depth) {
  // Calls and ends before the first byte are groups of their own.
  const Group alone = {frame, kBottom};
  const bool is_plain = plain_room(alone) && plain_text_of(frame)->height <= max_depth;
  const auto walked = [&](int depth) {
    Walk found{.mask = TokenMask(vocabulary_.num_words()),
               .tree = is_plain ? &vocabulary_.rest() : &vocabulary_.tree()};
    machine_.take_reached();
    if (is_plain) {
      add_plain(Vocabulary::kMostPlainCharacters, found.mask);
      machine_.reach(plain_text_of(frame)->height);
      walk(*found.tree, level_of({alone}), kRoot, depth, found.mask, &found.ends.nodes);
    } else {
      walk_all(level_of({alone}), depth, found.mask, &found.ends);
    }
    found.reached = machine_.take_reached();
    return found;
  };
  auto known = walks_.find(frame);
  if (known == walks_.end()) {
    Walk whole = walked(kMaxDepth);
    forget_if_too_much(whole.mask.size() * sizeof(whole.mask[0]) +
                       (whole.ends.nodes.size() + whole.ends.shapes.size()) * sizeof(int32_t));
    known = walks_.emplace(frame, std::move(whole)).first;
  }
  if (known->second.reached <= max_depth) return known->second;
  return deep_ = walked(max_depth);
}

/// Tokens that go on behind a node. `ends` are the nodes with whose byte all may have ended, if they are wanted.
void TokenMasks::walk(const Tree& tree, const Level& from, int32_t start, int max_depth, TokenMask& mask,
                      std::vector<int32_t>* ends) {
  const std::span<const Vocabulary::Node> nodes = tree.nodes;
  const size_t above = start == kRoot ? 0 : nodes[static_cast<size_t>(start)].depth;
  const int32_t end =
      start == kRoot ? static_cast<int32_t>(nodes.size() - 1) : nodes[static_cast<size_t>(start)].behind;
  if (start + 1 == end) return;
  levels_[above] = from;
  if (is_lone(from) && take_loop(tree, start, end, max_depth, levels_[above], mask, ends)) return;
  for (int32_t i = start + 1; i < end;) {
    const Vocabulary::Node& node = nodes[static_cast<size_t>(i)];
    budget_.charge(1);
    Level& level = levels_[node.depth];
    if (!step(levels_[node.depth - size_t{1}], node.byte, max_depth, level) ||
        take_loops(tree, i, node.behind, max_depth, level, mask, ends)) {
      i = node.behind;
      continue;
    }
    set_tokens(tree, static_cast<size_t>(i), static_cast<size_t>(i + 1), mask);
    if (ends != nullptr && may_end(level)) ends->push_back(i);
    ++i;
  }
}

/// Before the first byte.
TokenMasks::Level TokenMasks::level_of(const Stacks& stacks) {
  if (stacks.size() == 1 && machine_.is_plain(stacks.front().frame)) return {.lone = stacks.front()};
  const StackSets::Index set = sets_.of(stacks);
  if (set != StackSets::kNotKept) return {.set = set};
  return {.stacks = stacks};
}

bool TokenMasks::may_end(const Level& level) const {
  if (is_lone(level)) return false;
  return level.set != StackSets::kNotKept ? sets_.may_end(level.set) : machine_.may_end(level.stacks);
}

/// False if the byte may not follow.
bool TokenMasks::step(const Level& level, uint8_t byte, int max_depth, Level& next) {
  const bool keeps = max_depth == kMaxDepth;  // of another one, steps are not kept
  Group stepped = {StackMachine::kNone, kBottom};
  if (is_lone(level)) {
    stepped = machine_.step(level.lone, byte);
    if (stepped.frame == StackMachine::kNone) return false;
    const int needed = machine_.depth(level.lone.below) + machine_.height(stepped.frame);
    if (machine_.is_plain(stepped.frame) && needed <= max_depth) {
      machine_.reach(needed);
      next.lone = stepped;
      return true;
    }
  }
  next.lone = {StackMachine::kNone, kBottom};
  next.set = StackSets::kNotKept;
  if (stepped.frame != StackMachine::kNone) {
    if (keeps) next.set = sets_.step(level.lone, byte);
    if (next.set == StackSets::kNotKept) machine_.step({level.lone}, byte, max_depth, next.stacks);
  } else if (level.set == StackSets::kNotKept) {
    machine_.step(level.stacks, byte, max_depth, next.stacks);
  } else {
    if (keeps) next.set = sets_.step(level.set, byte);
    if (next.set == StackSets::kNotKept) machine_.step(sets_.stacks(level.set), byte, max_depth, next.stacks);
  }
  if (next.set == StackSets::kNone) return false;
  const Stacks& stacks = next.set != StackSets::kNotKept ? sets_.stacks(next.set) : next.stacks;
  if (stacks.empty()) return false;
  if (stacks.size() == 1 && machine_.is_plain(stacks.front().frame)) next.lone = stacks.front();
  return true;
}

void TokenMasks::set_tokens(const Tree& tree, size_t first, size_t end, TokenMask& mask) {
  for (int32_t i = tree.nodes[first].first_token; i < tree.nodes[end].first_token; ++i) {
    set_token(tree.tokens[static_cast<size_t>(i)], mask);
  }
}

}  // namespace soliton::constrain
