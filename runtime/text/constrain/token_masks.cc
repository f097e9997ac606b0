#include "runtime/text/constrain/token_masks.h"

#include <algorithm>

namespace soliton::constrain {
namespace {

constexpr int32_t kNotCounted = -1;

// Of a vocabulary of 128k tokens a mask has 16 KB, and a walk up to 1 MB.
constexpr size_t kMostBytes = size_t{12} << 20;

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
    const bool is_plain = takes_plain_text(group.frame);
    if (is_plain) add_plain(static_cast<size_t>(std::max(0, machine_.room(group))), mask);
    return walk(is_plain ? vocabulary_.rest() : vocabulary_.tree(), {group}, kRoot, kMaxDepth, mask, nullptr);
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

const TokenMasks::Loops& TokenMasks::loops_of(FrameIndex frame) {
  const auto index = static_cast<size_t>(frame);
  if (index >= loops_.size()) {
    budget_.charge_bytes((index + 1 - loops_.size()) * sizeof(Loops));
    loops_.resize(index + 1);
  }
  if (loops_[index].is_known) return loops_[index];
  static const std::vector<ByteSequence> sequences =
      utf8_sequences(intersection(Vocabulary::plain_text(), {{0x80, kMaxCode}}));
  constexpr size_t kMostStates = 64;  // of frames of more, a step costs more than is saved
  Loops loops{.is_known = true};
  if (machine_.is_plain(frame) && machine_.num_states(frame) <= kMostStates) {
    for (uint8_t byte = ' '; byte < 0x7f; ++byte) {
      if (machine_.step(frame, byte) == frame) loops.ascii[byte / 64] |= uint64_t{1} << (byte % 64);
    }
    loops.any = (loops.ascii[0] | loops.ascii[1]) != 0;
    loops.others = std::all_of(sequences.begin(), sequences.end(),
                               [&](const ByteSequence& bytes) { return comes_back(frame, bytes, frame); });
  }
  return loops_[index] = loops;
}

/// Whether a frame stays as it is with every plain character: then only the other tokens have to be tried.
bool TokenMasks::takes_plain_text(FrameIndex frame) {
  const Loops& loops = loops_of(frame);
  if (!loops.others) return false;
  for (char32_t code = ' '; code < 0x7f; ++code) {
    if (code != '"' && code != '\\' && (loops.ascii[code / 64] >> (code % 64) & 1) == 0) return false;
  }
  return true;
}

/// Whether all tokens behind a node, with which a group has come so far, leave it as it is.
bool TokenMasks::takes_all_below(const Vocabulary::Node& node, const Group& group) {
  const Loops& loops = loops_of(group.frame);
  if (!loops.any || (node.has_others && !(loops.others && node.is_whole))) return false;
  if ((node.ascii[0] & ~loops.ascii[0]) != 0 || (node.ascii[1] & ~loops.ascii[1]) != 0) return false;
  return !machine_.is_counted(group) || machine_.room(group) >= node.deepest - node.depth;
}

bool TokenMasks::comes_back(FrameIndex from, std::span<const ByteRange> bytes, FrameIndex to) {
  FrameIndex last = StackMachine::kNone;
  for (int byte = bytes[0].first; byte <= bytes[0].last; ++byte) {
    const FrameIndex next = machine_.step(from, static_cast<uint8_t>(byte));
    if (next == StackMachine::kNone || !machine_.is_plain(next)) return false;
    if (bytes.size() == 1 ? next != to : next != last && !comes_back(next, bytes.subspan(1), to))
      return false;
    last = next;
  }
  return true;
}

const TokenMasks::Walk& TokenMasks::walk_from_root(FrameIndex frame, int max_depth) {
  // Calls and ends before the first byte are groups of their own.
  const Stacks alone = {{frame, kBottom}};
  const bool is_plain = takes_plain_text(frame) && machine_.height(frame) <= max_depth;
  const auto walked = [&](int depth) {
    Walk found{.mask = TokenMask(vocabulary_.num_words()),
               .tree = is_plain ? &vocabulary_.rest() : &vocabulary_.tree()};
    if (is_plain) add_plain(Vocabulary::kMostPlainCharacters, found.mask);
    machine_.take_reached();
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
  const size_t end =
      start == kRoot ? nodes.size() - 1 : static_cast<size_t>(nodes[static_cast<size_t>(start)].behind);
  levels_[above].lone.frame = StackMachine::kNone;
  levels_[above].stacks = stacks;
  for (auto i = static_cast<size_t>(start + 1); i < end;) {
    const Vocabulary::Node& node = nodes[i];
    budget_.charge(1);
    Level& level = levels_[node.depth];
    if (!step(levels_[node.depth - size_t{1}], node.byte, max_depth, level)) {
      i = static_cast<size_t>(node.behind);
      continue;
    }
    if (level.lone.frame != StackMachine::kNone && takes_all_below(node, level.lone)) {
      budget_.charge((node.behind - static_cast<int32_t>(i)) / 8);
      set_tokens(tree, i, static_cast<size_t>(node.behind), mask);
      i = static_cast<size_t>(node.behind);
      continue;
    }
    set_tokens(tree, i, i + 1, mask);
    const bool may_end = level.lone.frame == StackMachine::kNone && machine_.may_end(level.stacks);
    if (ends != nullptr && may_end) ends->push_back(static_cast<int32_t>(i));
    ++i;
  }
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
    const auto token = static_cast<size_t>(tree.tokens[static_cast<size_t>(i)]);
    mask[token / kMaskBits] |= uint32_t{1} << (token % kMaskBits);
  }
}

}  // namespace soliton::constrain
