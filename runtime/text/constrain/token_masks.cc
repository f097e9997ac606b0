#include "runtime/text/constrain/token_masks.h"

#include <algorithm>

namespace soliton::constrain {
namespace {

// Of a vocabulary of 128k tokens a mask has 16 KB, and a walk up to 1 MB.
constexpr size_t kMostBytes = size_t{12} << 20;

}  // namespace

const TokenMask& TokenMasks::allowed(const Stacks& stacks) {
  const auto known = masks_.find(stacks);
  if (known != masks_.end()) return known->second;
  TokenMask mask(vocabulary_.num_words());
  for (const Group& group : stacks) allow(group, mask);
  forget_if_too_much(mask.size() * sizeof(mask[0]) + stacks.size() * sizeof(stacks[0]));
  return masks_.emplace(stacks, std::move(mask)).first->second;
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
  const Walk& found = walk_from_root(group.frame, kMaxDepth - machine_.depth(group.below));
  budget_.charge(std::ssize(mask) / 8);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] |= found.mask[i];
  if (found.ends.empty()) return;
  const Stacks behind = machine_.behind(group.below);
  if (behind.empty()) return;
  for (const int32_t end : found.ends) walk(behind, end, kMaxDepth, mask, nullptr);
}

const TokenMasks::Walk& TokenMasks::walk_from_root(FrameIndex frame, int max_depth) {
  // Calls and ends before the first byte are groups of their own.
  const Stacks alone = {{frame, kBottom}};
  const auto walked = [&](int depth) {
    Walk found{.mask = TokenMask(vocabulary_.num_words())};
    machine_.take_reached();
    walk(alone, kRoot, depth, found.mask, &found.ends);
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
void TokenMasks::walk(const Stacks& stacks, int32_t start, int max_depth, TokenMask& mask,
                      std::vector<int32_t>* ends) {
  const std::span<const Vocabulary::Node> nodes = vocabulary_.nodes();
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
    set_tokens(i, mask);
    const bool may_end = level.lone.frame == StackMachine::kNone && machine_.may_end(level.stacks);
    if (ends != nullptr && may_end) ends->push_back(static_cast<int32_t>(i));
    ++i;
  }
}

/// False if the byte may not follow.
bool TokenMasks::step(const Level& level, uint8_t byte, int max_depth, Level& next) {
  if (level.lone.frame != StackMachine::kNone) {
    const FrameIndex frame = machine_.step(level.lone.frame, byte);
    if (frame == StackMachine::kNone) return false;
    const int needed = machine_.depth(level.lone.below) + machine_.height(frame);
    if (machine_.is_plain(frame) && needed <= max_depth) {
      machine_.reach(needed);
      next.lone = {frame, level.lone.below};
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

void TokenMasks::set_tokens(size_t node, TokenMask& mask) const {
  const std::span<const Vocabulary::Node> nodes = vocabulary_.nodes();
  const auto tokens = vocabulary_.tokens();
  for (int32_t i = nodes[node].first_token; i < nodes[node + 1].first_token; ++i) {
    const auto token = static_cast<size_t>(tokens[static_cast<size_t>(i)]);
    mask[token / kMaskBits] |= uint32_t{1} << (token % kMaskBits);
  }
}

}  // namespace soliton::constrain
