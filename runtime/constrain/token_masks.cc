#include "runtime/constrain/token_masks.h"

#include <algorithm>
#include <array>

namespace soliton::constrain {
namespace {

// Of a vocabulary of 128k tokens a mask has 16 KB.
constexpr size_t kMostMasks = 256;
constexpr size_t kMostWalks = 512;

}  // namespace

const TokenMask& TokenMasks::allowed(const Stacks& stacks) {
  const auto known = masks_.find(stacks);
  if (known != masks_.end()) return known->second;
  if (masks_.size() == kMostMasks) masks_.clear();
  TokenMask mask(vocabulary_.num_words());
  constexpr std::array<int32_t, 1> kStart = {kRoot};
  for (const Group& group : stacks) allow(group, kStart, mask);
  return masks_.emplace(stacks, std::move(mask)).first->second;
}

/// Tokens of which a group reads what is behind the start nodes.
void TokenMasks::allow(const Group& group, std::span<const int32_t> starts, TokenMask& mask) {
  const int max_depth = kMaxDepth - machine_.depth(group.below);
  std::vector<int32_t> ends;
  if (starts.size() == 1 && starts[0] == kRoot) {
    const Walk& found = walk_from_root(group.frame, max_depth);
    for (size_t i = 0; i < mask.size(); ++i) mask[i] |= found.mask[i];
    ends = found.ends;
  } else {
    Walk found{.mask = std::move(mask)};
    for (const int32_t start : starts) walk(group.frame, start, max_depth, found);
    mask = std::move(found.mask);
    ends = std::move(found.ends);
  }
  if (ends.empty()) return;
  for (const Group& next : machine_.behind(group.below)) allow(next, ends, mask);
}

const TokenMasks::Walk& TokenMasks::walk_from_root(FrameIndex frame, int max_depth) {
  auto known = walks_.find(frame);
  if (known == walks_.end()) {
    if (walks_.size() == kMostWalks) walks_.clear();
    Walk whole{.mask = TokenMask(vocabulary_.num_words())};
    walk(frame, kRoot, kMaxDepth, whole);
    known = walks_.emplace(frame, std::move(whole)).first;
  }
  if (known->second.reached <= max_depth) return known->second;
  deep_ = {.mask = TokenMask(vocabulary_.num_words())};
  walk(frame, kRoot, max_depth, deep_);
  return deep_;
}

void TokenMasks::walk(FrameIndex frame, int32_t start, int max_depth, Walk& walk) {
  const std::span<const Vocabulary::Node> nodes = vocabulary_.nodes();
  const size_t above = start == kRoot ? 0 : nodes[static_cast<size_t>(start)].depth;
  const size_t end =
      start == kRoot ? nodes.size() - 1 : static_cast<size_t>(nodes[static_cast<size_t>(start)].behind);
  machine_.take_reached();
  // Calls and ends before the first byte are groups of their own.
  levels_[above].frame = StackMachine::kNone;
  levels_[above].stacks.assign({Group{frame, kBottom}});
  for (auto i = static_cast<size_t>(start + 1); i < end;) {
    const Vocabulary::Node& node = nodes[i];
    Level& level = levels_[node.depth];
    if (!step(levels_[node.depth - size_t{1}], node.byte, max_depth, level)) {
      i = static_cast<size_t>(node.behind);
      continue;
    }
    set_tokens(i, walk.mask);
    if (level.frame == StackMachine::kNone && machine_.may_end(level.stacks))
      walk.ends.push_back(static_cast<int32_t>(i));
    ++i;
  }
  walk.reached = std::max(walk.reached, machine_.take_reached());
}

/// False if the byte may not follow.
bool TokenMasks::step(const Level& level, uint8_t byte, int max_depth, Level& next) {
  if (level.frame != StackMachine::kNone) {
    const FrameIndex frame = machine_.step(level.frame, byte);
    if (frame == StackMachine::kNone) return false;
    if (machine_.is_plain(frame) && machine_.height(frame) <= max_depth) {
      machine_.reach(machine_.height(frame));
      next.frame = frame;
      return true;
    }
    const Stacks alone = {{level.frame, kBottom}};
    machine_.step(alone, byte, max_depth, next.stacks);
  } else {
    machine_.step(level.stacks, byte, max_depth, next.stacks);
  }
  if (next.stacks.empty()) return false;
  const Group& first = next.stacks.front();
  const bool is_plain = next.stacks.size() == 1 && first.below == kBottom && machine_.is_plain(first.frame);
  next.frame = is_plain ? first.frame : StackMachine::kNone;
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
