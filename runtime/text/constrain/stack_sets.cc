#include "runtime/text/constrain/stack_sets.h"

#include <algorithm>
#include <utility>

namespace soliton::constrain {
namespace {

constexpr size_t kBytesOfStep = 64;  // of an entry of a hash map, about

uint64_t mixed(uint64_t hash, const Group& group) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15u;
  for (const int32_t value : {group.frame, group.below, group.count}) {
    hash = (hash ^ static_cast<uint32_t>(value)) * kMultiplier;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

size_t StackSets::Hash::operator()(const GroupByte& key) const {
  return mixed(key.byte, key.group);
}

bool StackSets::is_full() const {
  return num_bytes_ >= most_bytes_;
}

void StackSets::forget_if_full() {
  if (!is_full()) return;
  sets_.clear();
  by_hash_.clear();
  of_groups_.clear();
  num_bytes_ = 0;
}

StackSets::Index StackSets::of(const Stacks& stacks) {
  uint64_t hash = stacks.size();
  for (const Group& group : stacks) hash = mixed(hash, group);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (sets_[static_cast<size_t>(known->second)].stacks == stacks) return known->second;
  }
  if (is_full()) return kNotKept;
  num_bytes_ += sizeof(Set) + kBytesOfStep + stacks.size() * sizeof(Group);
  const auto index = static_cast<Index>(sets_.size());
  sets_.push_back({.stacks = stacks, .may_end = machine_.may_end(stacks)});
  by_hash_.emplace(hash, index);
  return index;
}

StackSets::Step StackSets::found(const Stacks& stacks, uint8_t byte) {
  const int reached_before = machine_.take_reached();
  machine_.step(stacks, byte, kMaxDepth, next_);
  const int reached = machine_.take_reached();
  machine_.reach(std::max(reached_before, reached));
  return {.to = next_.empty() ? kNone : of(next_), .reached = reached};
}

/// Before the first one.
StackSets::Steps StackSets::steps_of(const Stacks& stacks) const {
  Steps steps;
  for (const Group& group : stacks) steps.bytes |= machine_.bytes(group.frame);
  return steps;
}

StackSets::Index StackSets::step(Index index, uint8_t byte) {
  Set& set = sets_[static_cast<size_t>(index)];
  if (set.next == nullptr) {
    if (is_full()) return found(set.stacks, byte).to;
    num_bytes_ += sizeof(Steps);
    set.next = std::make_unique<Steps>(steps_of(set.stacks));
  }
  Steps& steps = *set.next;  // stays where it is
  if (!steps.bytes[byte]) return kNone;
  if (const uint8_t number = steps.number[byte]; number != 0) {
    const Step& known = steps.known[number - size_t{1}];
    machine_.reach(known.reached);
    return known.to;
  }
  const Step step = found(set.stacks, byte);  // may move sets_
  if (step.to == kNotKept || steps.known.size() == Steps::kMost) return step.to;
  num_bytes_ += sizeof(step);
  steps.known.push_back(step);
  steps.number[byte] = static_cast<uint8_t>(steps.known.size());
  return step.to;
}

StackSets::Index StackSets::step(const Group& group, uint8_t byte) {
  const GroupByte key{group, byte};
  const auto known = of_groups_.find(key);
  if (known != of_groups_.end()) {
    machine_.reach(known->second.reached);
    return known->second.to;
  }
  const Step step = found({group}, byte);
  if (step.to == kNotKept || is_full()) return step.to;
  num_bytes_ += kBytesOfStep;
  of_groups_.emplace(key, step);
  return step.to;
}

}  // namespace soliton::constrain
