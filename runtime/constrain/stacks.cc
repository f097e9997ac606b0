#include "runtime/constrain/stacks.h"

#include <algorithm>

namespace soliton::constrain {
namespace {

uint64_t pair_key(int32_t a, int32_t b) {
  return static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b);
}

}  // namespace

StackMachine::StackMachine(const Grammar& grammar, Automaton automaton)
    : name_(grammar.name), automaton_(std::move(automaton)) {
  nodes_.push_back({.state = -1, .below = kBottom, .depth = 0});
}

Error StackMachine::too_much(const char* what, size_t most) const {
  return file_error(ExitCode::kOutOfMemory, name_, "expected at most {} {}, got more: make it less ambiguous",
                    most, what);
}

// ---- Frames

/// Of states that need not be closed or unique.
FrameIndex StackMachine::frame_of(std::vector<int32_t> states) {
  for (size_t i = 0; i < states.size(); ++i) {  // grows
    for (const int32_t target : automaton_.states[static_cast<size_t>(states[i])].empty) {
      if (std::find(states.begin(), states.end(), target) == states.end()) states.push_back(target);
    }
  }
  std::erase_if(states, [&](int32_t state) {
    const Automaton::State& at = automaton_.states[static_cast<size_t>(state)];
    return at.bytes.empty() && at.calls.empty() && !at.ends_rule;
  });
  std::sort(states.begin(), states.end());
  states.erase(std::unique(states.begin(), states.end()), states.end());
  if (states.empty()) return kNone;
  const auto found = frame_of_states_.find(states);
  if (found != frame_of_states_.end()) return found->second;

  if (frames_.size() == kMaxFrames) throw too_much("sets of states", kMaxFrames);
  const auto index = static_cast<FrameIndex>(frames_.size());
  frame_of_states_.emplace(states, index);
  Frame& frame = frames_.emplace_back();
  frame.states = states;
  frame.height = Automaton::kNoHeight;
  frame.next.fill(kUnknown);
  std::vector<CallEdge> calls;
  for (const int32_t state : states) {
    const Automaton::State& at = automaton_.states[static_cast<size_t>(state)];
    frame.ends_rule = frame.ends_rule || at.ends_rule;
    frame.height = std::min(frame.height, automaton_.heights[static_cast<size_t>(state)]);
    calls.insert(calls.end(), at.calls.begin(), at.calls.end());
  }
  frame.is_plain = !frame.ends_rule && calls.empty();
  std::vector<Call> found_calls;
  for (const CallEdge& call : calls) {
    const int32_t start = automaton_.starts[static_cast<size_t>(call.rule)];
    const FrameIndex start_frame = frame_of({start});  // may move frames_
    found_calls.push_back({.start = start_frame,
                           .target = call.target,
                           .is_last = automaton_.only_ends(call.target),
                           .inside = automaton_.heights[static_cast<size_t>(start)],
                           .behind = automaton_.heights[static_cast<size_t>(call.target)]});
  }
  frames_[static_cast<size_t>(index)].calls = std::move(found_calls);
  return index;
}

FrameIndex StackMachine::united(FrameIndex a, FrameIndex b) {
  if (a == b) return a;
  const auto [entry, is_new] = unions_.try_emplace(pair_key(std::min(a, b), std::max(a, b)), kNone);
  if (!is_new) return entry->second;
  std::vector<int32_t> states = frames_[static_cast<size_t>(a)].states;
  const std::vector<int32_t>& others = frames_[static_cast<size_t>(b)].states;
  states.insert(states.end(), others.begin(), others.end());
  const FrameIndex both = frame_of(std::move(states));
  unions_[pair_key(std::min(a, b), std::max(a, b))] = both;
  return both;
}

FrameIndex StackMachine::find_step(FrameIndex frame, uint8_t byte) {
  std::vector<int32_t> targets;
  for (const int32_t state : frames_[static_cast<size_t>(frame)].states) {
    for (const ByteEdge& edge : automaton_.states[static_cast<size_t>(state)].bytes) {
      if (edge.first <= byte && byte <= edge.last) targets.push_back(edge.target);
    }
  }
  const FrameIndex next = targets.empty() ? kNone : frame_of(std::move(targets));
  frames_[static_cast<size_t>(frame)].next[byte] = next;
  return next;
}

FrameIndex StackMachine::behind_state(int32_t state) {
  const auto [entry, is_new] = behind_.try_emplace(state, kNone);
  if (is_new) entry->second = frame_of({state});
  return entry->second;
}

// ---- Stacks

NodeIndex StackMachine::push(int32_t state, NodeIndex below) {
  const auto [entry, is_new] =
      node_of_.try_emplace(pair_key(state, below), static_cast<NodeIndex>(nodes_.size()));
  if (is_new) {
    if (nodes_.size() == kMaxStackNodes) throw too_much("stacks in all", kMaxStackNodes);
    nodes_.push_back({.state = state, .below = below, .depth = depth(below) + 1});
  }
  return entry->second;
}

/// Whether that makes a difference.
bool StackMachine::add(Stacks& stacks, Group group) {
  const auto at = std::lower_bound(stacks.begin(), stacks.end(), group.below,
                                   [](const Group& a, NodeIndex below) { return a.below < below; });
  if (at == stacks.end() || at->below != group.below) {
    if (stacks.size() == kMaxStacks) throw too_much("stacks at once", kMaxStacks);
    stacks.insert(at, group);
    rest_.push_back(group);
    return true;
  }
  const size_t index = static_cast<size_t>(at - stacks.begin());
  const FrameIndex both = united(at->frame, group.frame);
  if (both == stacks[index].frame) return false;
  stacks[index].frame = both;
  rest_.push_back(stacks[index]);
  return true;
}

/// Adds what calls and ends of rules lead to, of rest_.
void StackMachine::close(Stacks& stacks, int max_depth) {
  while (!rest_.empty()) {
    const Group group = rest_.back();
    rest_.pop_back();
    if (is_plain(group.frame)) continue;
    if (ends_rule(group.frame) && group.below != kBottom) {
      const Node node = nodes_[static_cast<size_t>(group.below)];
      add(stacks, {behind_state(node.state), node.below});
    }
    const int level = depth(group.below);
    const size_t num_calls = frames_[static_cast<size_t>(group.frame)].calls.size();
    for (size_t i = 0; i < num_calls; ++i) {  // add() may move frames_
      const Call call = frames_[static_cast<size_t>(group.frame)].calls[i];
      const int needed = level + (call.is_last ? call.inside : std::max(call.inside + 1, call.behind));
      reached_ = std::max(reached_, needed);
      if (needed > max_depth) continue;
      add(stacks, {call.start, call.is_last ? group.below : push(call.target, group.below)});
    }
  }
}

Stacks StackMachine::start() {
  Stacks stacks;
  rest_.clear();
  add(stacks, {frame_of({automaton_.starts[static_cast<size_t>(automaton_.root)]}), kBottom});
  close(stacks, kMaxDepth);
  return stacks;
}

void StackMachine::step(const Stacks& stacks, uint8_t byte, int max_depth, Stacks& next) {
  next.clear();
  rest_.clear();
  for (const Group& group : stacks) {
    const FrameIndex frame = step(group.frame, byte);
    if (frame == kNone) continue;
    const int needed = depth(group.below) + height(frame);
    reached_ = std::max(reached_, needed);
    if (needed <= max_depth) add(next, {frame, group.below});
  }
  close(next, max_depth);
}

Stacks StackMachine::behind(NodeIndex node) {
  Stacks stacks;
  if (node == kBottom) return stacks;
  const Node at = nodes_[static_cast<size_t>(node)];
  rest_.clear();
  add(stacks, {behind_state(at.state), at.below});
  close(stacks, kMaxDepth);
  return stacks;
}

bool StackMachine::may_end(const Stacks& stacks) const {
  return !stacks.empty() && stacks.front().below == kBottom && ends_rule(stacks.front().frame);
}

}  // namespace soliton::constrain
