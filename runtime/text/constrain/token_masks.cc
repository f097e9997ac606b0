#include "runtime/text/constrain/token_masks.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace soliton::constrain {
namespace {

constexpr int32_t kNotCounted = -1;
constexpr uint8_t kFirstLead = 0xc0;  // of UTF-8's bytes, that a character of several begins with

bool is_continuation(uint8_t byte) {
  return byte >= 0x80 && byte < kFirstLead;
}

// Of a vocabulary of 128k tokens a mask has 16 KB, and a walk up to 1 MB.
constexpr size_t kMostBytes = size_t{12} << 20;

void set_token(int32_t token, TokenMask& mask) {
  const auto index = static_cast<size_t>(token);
  mask[index / kMaskBits] |= uint32_t{1} << (index % kMaskBits);
}

}  // namespace

const TokenMask& TokenMasks::allowed(const Stacks& stacks) {
  Stacks key = stacks;  // without counts that make no difference
  for (Group& group : key) {
    if (!machine_.may_count(group, static_cast<int>(vocabulary_.num_characters()))) group.count = kNotCounted;
  }
  const auto known = masks_.find(key);
  if (known != masks_.end()) return known->second;
  TokenMask mask(vocabulary_.num_words());
  for (const Group& group : stacks) allow(group, mask);
  forget_if_too_much(mask.size() * sizeof(mask[0]) + stacks.size() * sizeof(stacks[0]));
  return masks_.emplace(std::move(key), std::move(mask)).first->second;
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
    if (plain) add_plain(static_cast<size_t>(*plain), mask);
    return walk(plain ? vocabulary_.rest() : vocabulary_.tree(), {group}, kRoot, kMaxDepth, mask, nullptr);
  }
  const Walk& found = walk_from_root(group.frame, kMaxDepth - machine_.depth(group.below));
  budget_.charge(std::ssize(mask) / 8);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] |= found.mask[i];
  if (found.ends.empty()) return;
  const Stacks behind = machine_.behind(group.below);
  if (behind.empty()) return;
  for (const int32_t end : found.ends) walk(*found.tree, behind, end, kMaxDepth, mask, nullptr);
}

void TokenMasks::add_plain(size_t num_characters, TokenMask& mask) {
  const TokenMask& plain = vocabulary_.plain(num_characters);
  budget_.charge(std::ssize(mask) / 8);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] |= plain[i];
}

/// Plain characters that a group may read, up to kMostPlainCharacters: then only the other tokens have to be tried. Nothing:
/// all have to be.
std::optional<int32_t> TokenMasks::plain_room(const Group& group) {
  constexpr auto kMost = static_cast<int32_t>(Vocabulary::kMostPlainCharacters);
  const std::optional<PlainText::Room>& room = plain_text_.of(group.frame);
  if (!room) return std::nullopt;
  if (!machine_.is_counted(group)) return kMost;
  const int32_t most = machine_.room(group) + machine_.characters(group.frame) - room->characters;
  if (most >= kMost) return kMost;
  if (!room->are_counted || room->least_characters != room->characters) return std::nullopt;
  return std::max(0, most);
}

/// The loop that begins where a group is. Where a count may end it, one that this ends exactly.
const CharacterLoop& TokenMasks::loop_of(const Group& group) {
  const CharacterLoop& loop = longest_loop_of(group.frame);
  constexpr auto kLong = static_cast<int32_t>(Vocabulary::kMostPlainCharacters);
  if (loop.is_even || !machine_.is_counted(group) || room(group, loop) >= std::min(loop.most, kLong))
    return loop;
  return loops_.even_of(group.frame);
}

/// Where plain text goes on for ever, whatever the frames are, and else the one that is found.
const CharacterLoop& TokenMasks::longest_loop_of(FrameIndex frame) {
  const std::optional<PlainText::Room>& room = plain_text_.of(frame);
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

/// Takes the tokens below a node, before `end`, with which the group that has come there stays in a loop: true if these are
/// all. Otherwise the walk looks only for those with which it leaves, if the node is so near the root that the characters
/// of all tokens below it are known from there on, and if there are so many that this saves time.
bool TokenMasks::take_loop(const Tree& tree, int32_t node, int32_t end, int max_depth, Level& level,
                           TokenMask& mask) {
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
  constexpr int kFewCharacters = 8;  // of these, few tokens are
  if (depth > 1 || loop.stay.size() < kFewCharacters) return false;
  const auto first =
      static_cast<size_t>(node == kRoot ? 0 : tree.nodes[static_cast<size_t>(node)].first_token);
  const auto last = static_cast<size_t>(tree.nodes[static_cast<size_t>(end)].first_token);
  budget_.charge(static_cast<int64_t>(last - first) / 8);
  if (depth == 0) {
    vocabulary_.add_consisting_of(loop.stay, most, mask);
  } else {
    set_tokens_going_on_with(tree, loop.stay, first, last, int64_t{depth} + most, mask);
  }
  // A count that ends a loop ends it there if all frames are equally far from the end of the rule, and else perhaps later.
  const bool is_exact = most == loop.most ? loop.is_exact : loop.are_counted && loop.is_even;
  level.loop = &loop;
  level.loop_end = end;
  level.is_in_character = false;
  level.loop_deepest = is_exact ? std::numeric_limits<int32_t>::max() : depth + most;
  return false;
}

/// Of the tokens from `first` to before `last` those of at most so many characters, of which all but the first are of the
/// given ones.
void TokenMasks::set_tokens_going_on_with(const Tree& tree, const Characters& characters, size_t first,
                                          size_t last, int64_t most, TokenMask& mask) {
  constexpr size_t kBits = TokensOfCharacters::kTokensOfWord;
  for (size_t word = first / kBits; word * kBits < last; word += TokensOfCharacters::kWords) {
    const TokensOfCharacters::Words words = tree.but_first.having_only(characters, word);
    for (size_t i = 0; i < words.size(); ++i) {
      const size_t base = (word + i) * kBits;
      if (base >= last) break;
      uint64_t left = words[i];
      if (base < first) left &= ~uint64_t{0} << (first - base);
      if (last - base < kBits) left &= (uint64_t{1} << (last - base)) - 1;
      for (; left != 0; left &= left - 1) {
        const size_t token = base + static_cast<size_t>(std::countr_zero(left));
        if (tree.lengths[token] <= most) set_token(tree.tokens[token], mask);
      }
    }
  }
}

/// Whether no token of a node or below it is missing, as a loop has taken those that stay in it.
bool TokenMasks::skips(const Level& level, int32_t index, const Vocabulary::Node& node) {
  if (level.loop == nullptr || index >= level.loop_end || node.deepest > level.loop_deepest) return false;
  if (level.is_in_character && !is_continuation(node.byte)) return false;
  const Characters& leave = level.loop->leave;
  return !(Characters::is_printed(node.byte) && leave.has(node.byte)) && !node.below.meet(leave);
}

/// Whether what follows a byte is still in the loop, or in a character that may lead back to it. The level has been stepped
/// to.
bool TokenMasks::stays(const Level& before, int32_t index, uint8_t byte, Level& level) {
  level.loop = nullptr;
  if (before.loop == nullptr || index >= before.loop_end) return false;
  const bool goes_on = is_continuation(byte) || (!before.is_in_character && byte >= kFirstLead);
  const bool is_of_loop =
      !before.is_in_character && Characters::is_printed(byte) && before.loop->stay.has(byte);
  if (!goes_on && !is_of_loop) return false;
  level.loop = before.loop;
  level.loop_end = before.loop_end;
  level.loop_deepest = before.loop_deepest;
  level.is_in_character = goes_on;
  return true;
}

const TokenMasks::Walk& TokenMasks::walk_from_root(FrameIndex frame, int max_depth) {
  // Calls and ends before the first byte are groups of their own.
  const Stacks alone = {{frame, kBottom}};
  const bool is_plain = plain_room(alone[0]) && plain_text_.of(frame)->height <= max_depth;
  const auto walked = [&](int depth) {
    Walk found{.mask = TokenMask(vocabulary_.num_words()),
               .tree = is_plain ? &vocabulary_.rest() : &vocabulary_.tree()};
    machine_.take_reached();
    if (is_plain) {
      add_plain(Vocabulary::kMostPlainCharacters, found.mask);
      machine_.reach(plain_text_.of(frame)->height);
    }
    walk(*found.tree, alone, kRoot, depth, found.mask, &found.ends);
    found.reached = machine_.take_reached();
    return found;
  };
  auto known = walks_.find(frame);
  if (known == walks_.end()) {
    Walk whole = walked(kMaxDepth);
    forget_if_too_much(whole.mask.size() * sizeof(whole.mask[0]) + whole.ends.size() * sizeof(whole.ends[0]));
    known = walks_.emplace(frame, std::move(whole)).first;
  }
  if (known->second.reached <= max_depth) return known->second;
  return deep_ = walked(max_depth);
}

/// Tokens that go on behind a node. `ends` are the nodes with whose byte all may have ended, if they are wanted.
void TokenMasks::walk(const Tree& tree, const Stacks& stacks, int32_t start, int max_depth, TokenMask& mask,
                      std::vector<int32_t>* ends) {
  const std::span<const Vocabulary::Node> nodes = tree.nodes;
  const size_t above = start == kRoot ? 0 : nodes[static_cast<size_t>(start)].depth;
  const int32_t end =
      start == kRoot ? static_cast<int32_t>(nodes.size() - 1) : nodes[static_cast<size_t>(start)].behind;
  begin_walk(levels_[above], stacks);
  if (is_lone(levels_[above])) take_loop(tree, start, end, max_depth, levels_[above], mask);
  for (int32_t i = start + 1; i < end;) {
    const Vocabulary::Node& node = nodes[static_cast<size_t>(i)];
    budget_.charge(1);
    const Level& before = levels_[node.depth - size_t{1}];
    Level& level = levels_[node.depth];
    if (skips(before, i, node) || !step(before, node.byte, max_depth, level)) {
      i = node.behind;
      continue;
    }
    const bool is_in_loop = stays(before, i, node.byte, level);
    if (is_lone(level) && !is_in_loop && take_loop(tree, i, node.behind, max_depth, level, mask)) {
      i = node.behind;
      continue;
    }
    set_tokens(tree, static_cast<size_t>(i), static_cast<size_t>(i + 1), mask);
    if (ends != nullptr && !is_lone(level) && machine_.may_end(level.stacks)) ends->push_back(i);
    ++i;
  }
}

/// Before the first byte.
void TokenMasks::begin_walk(Level& level, const Stacks& stacks) {
  const bool is_alone = stacks.size() == 1 && machine_.is_plain(stacks.front().frame);
  level.lone = is_alone ? stacks.front() : Group{StackMachine::kNone, kBottom};
  level.stacks = stacks;
  level.loop = nullptr;
}

/// False if the byte may not follow.
bool TokenMasks::step(const Level& level, uint8_t byte, int max_depth, Level& next) {
  if (level.lone.frame != StackMachine::kNone) {
    const Group stepped = machine_.step(level.lone, byte);
    if (stepped.frame == StackMachine::kNone) return false;
    const int needed = machine_.depth(level.lone.below) + machine_.height(stepped.frame);
    if (machine_.is_plain(stepped.frame) && needed <= max_depth) {
      machine_.reach(needed);
      next.lone = stepped;
      return true;
    }
    machine_.step({level.lone}, byte, max_depth, next.stacks);
  } else {
    machine_.step(level.stacks, byte, max_depth, next.stacks);
  }
  if (next.stacks.empty()) return false;
  const Group& first = next.stacks.front();
  const bool is_lone = next.stacks.size() == 1 && machine_.is_plain(first.frame);
  next.lone = is_lone ? first : Group{StackMachine::kNone, kBottom};
  return true;
}

void TokenMasks::set_tokens(const Tree& tree, size_t first, size_t end, TokenMask& mask) {
  for (int32_t i = tree.nodes[first].first_token; i < tree.nodes[end].first_token; ++i) {
    set_token(tree.tokens[static_cast<size_t>(i)], mask);
  }
}

}  // namespace soliton::constrain
