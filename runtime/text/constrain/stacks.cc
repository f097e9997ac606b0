#include "runtime/text/constrain/stacks.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace soliton::constrain {
namespace {

constexpr size_t kBytesOfEntry = 48;  // of a hash map, about

uint64_t pair_key(int32_t a, int32_t b) {
  return static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b);
}

bool is_before(const Group& a, const Group& b) {
  return std::tie(a.below, a.count, a.frame) < std::tie(b.below, b.count, b.frame);
}

uint64_t hash_of(std::span<const int32_t> states) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15u;
  uint64_t hash = states.size();
  for (const int32_t state : states) {
    hash = (hash ^ static_cast<uint32_t>(state)) * kMultiplier;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

StackMachine::StackMachine(const Grammar& grammar, Automaton automaton, Budget& budget)
    : name_(grammar.name),
      automaton_(std::move(automaton)),
      budget_(budget),
      marks_(automaton_.states.size(), 0),
      levels_(kMaxDepth + 2) {
  for (const Automaton::State& state : automaton_.states) {
    const bool calls = std::any_of(state.calls.begin(), state.calls.end(), [&](const CallEdge& call) {
      return automaton_.only_ends[static_cast<size_t>(call.target)] == 0;
    });
    is_kept_.push_back(!state.bytes.empty() || calls || state.ends_rule ? 1 : 0);
  }
  nodes_.push_back({.state = -1, .below = kBottom, .depth = 0, .counter = Automaton::kNoCounter});
}

Error StackMachine::too_many_stacks() const {
  return file_error(ExitCode::kOutOfMemory, name_,
                    "expected at most {} stacks at once, got more: make it less ambiguous", kMaxStacks);
}

// ---- Sets of states

void StackMachine::begin_set() {
  set_.clear();
  if (++mark_ != 0) return;
  std::fill(marks_.begin(), marks_.end(), 0);
  mark_ = 1;
}

/// Whether it was not in the set.
bool StackMachine::take(int32_t state) {
  if (marks_[static_cast<size_t>(state)] == mark_) return false;
  marks_[static_cast<size_t>(state)] = mark_;
  set_.push_back(state);
  return true;
}

/// Of states that need not be closed or unique.
FrameIndex StackMachine::closed_frame(std::span<const int32_t> states) {
  begin_set();
  for (const int32_t state : states) take(state);
  for (size_t i = 0; i < set_.size(); ++i) close(set_[i]);  // grows
  std::erase_if(set_, [&](int32_t state) { return is_kept_[static_cast<size_t>(state)] == 0; });
  return found_frame();
}

/// Takes what is reached from a state without a byte or a return.
void StackMachine::close(int32_t state) {
  const Automaton::State& at = automaton_.states[static_cast<size_t>(state)];
  budget_.charge(1 + std::ssize(at.empty) + std::ssize(at.calls));
  for (const int32_t target : at.empty) take(target);
  for (const CallEdge& call : at.calls) {
    if (automaton_.only_ends[static_cast<size_t>(call.target)] != 0)
      take(automaton_.starts[static_cast<size_t>(call.rule)]);
    if (automaton_.may_be_empty[static_cast<size_t>(call.rule)] != 0) take(call.target);
  }
}

/// The frame of the set, which is closed.
FrameIndex StackMachine::found_frame() {
  if (set_.empty()) return kNone;
  budget_.charge(std::ssize(set_));
  std::sort(set_.begin(), set_.end());
  const uint64_t hash = hash_of(set_);
  const auto [first, last] = frames_by_hash_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (frames_[static_cast<size_t>(known->second)].states == set_) return known->second;
  }
  return add_frame(hash);
}

FrameIndex StackMachine::add_frame(uint64_t hash) {
  constexpr int32_t kMany = std::numeric_limits<int32_t>::max();
  Frame frame{.states = set_, .height = Automaton::kNoHeight, .characters = kMany};
  for (const int32_t state : set_) {
    frame.ends_rule = frame.ends_rule || automaton_.states[static_cast<size_t>(state)].ends_rule;
    frame.height = std::min(frame.height, automaton_.heights[static_cast<size_t>(state)]);
    if (!automaton_.characters.empty())
      frame.characters = std::min(frame.characters, automaton_.characters[static_cast<size_t>(state)]);
  }
  find_calls(frame);
  frame.is_plain = !frame.ends_rule && frame.calls.empty();
  budget_.charge_bytes(sizeof(Frame) + kBytesOfEntry + frame.states.size() * sizeof(int32_t) +
                       frame.calls.size() * sizeof(Call) + frame.called.size() * sizeof(int32_t));
  const auto index = static_cast<FrameIndex>(frames_.size());
  frames_by_hash_.emplace(hash, index);
  frames_.push_back(std::move(frame));
  return index;
}

void StackMachine::find_calls(Frame& frame) const {
  std::vector<std::pair<int32_t, int32_t>> calls;  // to where, and of which rule
  for (const int32_t state : frame.states) {
    for (const CallEdge& call : automaton_.states[static_cast<size_t>(state)].calls) {
      if (automaton_.only_ends[static_cast<size_t>(call.target)] == 0)
        calls.emplace_back(call.target, call.rule);
    }
  }
  budget_.charge(std::ssize(calls));
  std::sort(calls.begin(), calls.end());
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  for (const auto& [target, rule] : calls) {
    if (frame.calls.empty() || frame.calls.back().target != target) {
      frame.calls.push_back({.target = target,
                             .inside = Automaton::kNoHeight,
                             .behind = automaton_.heights[static_cast<size_t>(target)],
                             .first = static_cast<uint32_t>(frame.called.size()),
                             .count = 0,
                             .start = kUnknown});
    }
    Call& call = frame.calls.back();
    const int32_t start = automaton_.starts[static_cast<size_t>(rule)];
    call.inside = std::min(call.inside, automaton_.heights[static_cast<size_t>(start)]);
    ++call.count;
    frame.called.push_back(rule);
  }
}

FrameIndex StackMachine::united(FrameIndex a, FrameIndex b) {
  if (a == b) return a;
  const uint64_t key = pair_key(std::min(a, b), std::max(a, b));
  const auto known = unions_.find(key);
  if (known != unions_.end()) return known->second;
  begin_set();
  for (const FrameIndex frame : {a, b}) {
    for (const int32_t state : frames_[static_cast<size_t>(frame)].states) take(state);
  }
  const FrameIndex both = found_frame();
  budget_.charge_bytes(kBytesOfEntry);
  unions_.emplace(key, both);
  return both;
}

/// Of groups with the same below.
FrameIndex StackMachine::united(std::span<const Group> groups) {
  if (groups.size() == 1) return groups[0].frame;
  if (groups.size() == 2) return united(groups[0].frame, groups[1].frame);
  begin_set();
  for (const Group& group : groups) {
    const std::vector<int32_t>& states = frames_[static_cast<size_t>(group.frame)].states;
    budget_.charge(std::ssize(states));
    for (const int32_t state : states) take(state);
  }
  return found_frame();
}

FrameIndex StackMachine::find_step(FrameIndex frame, uint8_t byte) {
  std::vector<int32_t> targets;
  bool counts = false;
  for (const int32_t state : frames_[static_cast<size_t>(frame)].states) {
    const std::vector<ByteEdge>& edges = automaton_.states[static_cast<size_t>(state)].bytes;
    budget_.charge(1 + std::ssize(edges));
    for (const ByteEdge& edge : edges) {
      if (edge.first > byte || byte > edge.last) continue;
      targets.push_back(edge.target);
      counts = counts || edge.counts;
    }
  }
  const FrameIndex next = targets.empty() ? kNone : closed_frame(targets);
  std::unique_ptr<Steps>& steps = frames_[static_cast<size_t>(frame)].next;
  if (steps == nullptr) {
    budget_.charge_bytes(sizeof(Steps));
    steps = std::make_unique<Steps>();
    steps->fill(kUnknown);
  }
  frames_[static_cast<size_t>(frame)].counts[byte] = counts;
  return (*steps)[byte] = next;
}

/// Bytes between two at which an edge begins or has ended lead to the same.
void StackMachine::find_steps(FrameIndex frame) {
  if (frames_[static_cast<size_t>(frame)].has_all_steps) return;
  std::bitset<257> differs;
  for (const int32_t state : frames_[static_cast<size_t>(frame)].states) {
    for (const ByteEdge& edge : automaton_.states[static_cast<size_t>(state)].bytes) {
      differs.set(edge.first);
      differs.set(edge.last + size_t{1});
    }
  }
  for (int byte = 0; byte <= 0xff; ++byte) {
    const auto at = static_cast<size_t>(byte);
    const FrameIndex next = byte == 0 || differs[at] ? step(frame, static_cast<uint8_t>(byte)) : kUnknown;
    if (next != kUnknown) continue;
    Frame& known = frames_[static_cast<size_t>(frame)];
    (*known.next)[at] = (*known.next)[at - 1];
    known.counts[at] = known.counts[at - 1];
  }
  frames_[static_cast<size_t>(frame)].has_all_steps = true;
}

bool StackMachine::may_count(const Group& group, int num_characters) const {
  if (counter_of(group.below) == Automaton::kNoCounter) return false;
  const Counter& counter = automaton_.counters[static_cast<size_t>(counter_of(group.below))];
  return group.count < counter.min || counter.max - group.count < num_characters + automaton_.most_characters;
}

int32_t StackMachine::room(const Group& group) const {
  const Counter& counter = automaton_.counters[static_cast<size_t>(counter_of(group.below))];
  return counter.max - group.count - frames_[static_cast<size_t>(group.frame)].characters;
}

int32_t StackMachine::most_left(const Group& group) const {
  return automaton_.counters[static_cast<size_t>(counter_of(group.below))].max - group.count;
}

std::bitset<256> StackMachine::bytes(FrameIndex frame) {
  std::optional<std::bitset<256>>& known = frames_[static_cast<size_t>(frame)].bytes;
  if (known) return *known;
  std::bitset<256> taken;
  for (const int32_t state : states(frame)) {
    for (const ByteEdge& edge : automaton_.states[static_cast<size_t>(state)].bytes) {
      budget_.charge(1 + edge.last - edge.first);
      for (int byte = edge.first; byte <= edge.last; ++byte) taken.set(static_cast<size_t>(byte));
    }
  }
  return known.emplace(taken);
}

bool StackMachine::are_alike(FrameIndex frame, uint8_t first, uint8_t last) {
  std::bitset<257> differs;
  for (const int32_t state : frames_[static_cast<size_t>(frame)].states) {
    for (const ByteEdge& edge : automaton_.states[static_cast<size_t>(state)].bytes) {
      budget_.charge(1);
      differs.set(edge.first);
      differs.set(edge.last + size_t{1});
    }
  }
  const FrameIndex to = step(frame, first);
  const bool is_counted = counts(frame, first);
  for (size_t byte = first + size_t{1}; byte <= last; ++byte) {
    if (!differs[byte]) continue;
    if (step(frame, static_cast<uint8_t>(byte)) != to) return false;
    if (counts(frame, static_cast<uint8_t>(byte)) != is_counted) return false;
  }
  return true;
}

uint8_t StackMachine::alike_far(FrameIndex frame) const {
  uint8_t differing = 0;
  std::optional<bool> are_counted;
  for (const int32_t state : states(frame)) {
    for (const FarEdge& edge : automaton_.states[static_cast<size_t>(state)].far) {
      budget_.charge(1);
      if (are_counted && *are_counted != edge.counts) return 0;
      are_counted = edge.counts;
      differing |= edge.some;
    }
  }
  return static_cast<uint8_t>(~differing);
}

FrameIndex StackMachine::step_far(FrameIndex frame, size_t index) {
  std::vector<int32_t> targets;
  for (const int32_t state : states(frame)) {
    for (const FarEdge& edge : automaton_.states[static_cast<size_t>(state)].far) {
      if ((edge.all >> index & 1) != 0) targets.push_back(edge.target);
    }
  }
  budget_.charge(std::ssize(targets));
  return targets.empty() ? kNone : closed_frame(targets);
}

/// Of the rules of a frame's call.
FrameIndex StackMachine::start_of(FrameIndex frame, size_t call) {
  const Frame& at = frames_[static_cast<size_t>(frame)];
  const Call& known = at.calls[call];
  if (known.start != kUnknown) return known.start;
  std::vector<int32_t> starts;
  for (uint32_t i = 0; i < known.count; ++i)
    starts.push_back(automaton_.starts[static_cast<size_t>(at.called[known.first + i])]);
  const FrameIndex start = closed_frame(starts);  // may move frames_
  return frames_[static_cast<size_t>(frame)].calls[call].start = start;
}

FrameIndex StackMachine::behind_state(int32_t state) {
  const auto known = behind_.find(state);
  if (known != behind_.end()) return known->second;
  const FrameIndex frame = closed_frame({&state, 1});
  budget_.charge_bytes(kBytesOfEntry);
  behind_.emplace(state, frame);
  return frame;
}

// ---- Stacks

NodeIndex StackMachine::push(int32_t state, NodeIndex below) {
  const uint64_t key = pair_key(state, below);
  const auto known = node_of_.find(key);
  if (known != node_of_.end()) return known->second;
  budget_.charge_bytes(sizeof(Node) + kBytesOfEntry);
  const auto node = static_cast<NodeIndex>(nodes_.size());
  nodes_.push_back({.state = state,
                    .below = below,
                    .depth = depth(below) + 1,
                    .counter = automaton_.counter_of[static_cast<size_t>(state)]});
  node_of_.emplace(key, node);
  return node;
}

/// Adds what calls and ends of rules lead to. A rule that begins here and may be empty has no end to be looked at: what
/// follows it is in the frame that calls it.
void StackMachine::close(Stacks& stacks, int max_depth) {
  const bool is_closed =
      std::all_of(stacks.begin(), stacks.end(), [&](const Group& group) { return is_plain(group.frame); });
  if (is_closed) return;
  for (size_t level = 0; level <= deepest_; ++level) levels_[level].clear();
  deepest_ = 0;
  for (const Group& group : stacks) {
    const auto level = static_cast<size_t>(depth(group.below));
    levels_[level].push_back(group);
    deepest_ = std::max(deepest_, level);
  }
  for (size_t level = deepest_; level > 0; --level) end_rules(level);
  stacks.clear();
  for (size_t level = 0; level <= deepest_; ++level) {  // grows
    begin_rules(level, max_depth);
    stacks.insert(stacks.end(), levels_[level].begin(), levels_[level].end());
    if (stacks.size() > kMaxStacks) throw too_many_stacks();
  }
  std::sort(stacks.begin(), stacks.end(), is_before);
}

void StackMachine::end_rules(size_t level) {
  unite(levels_[level]);
  for (const Group& group : levels_[level]) {
    if (!ends_rule(group.frame)) continue;
    const Node node = nodes_[static_cast<size_t>(group.below)];
    levels_[level - 1].push_back({behind_state(node.state), node.below});
  }
}

void StackMachine::begin_rules(size_t level, int max_depth) {
  unite(levels_[level]);
  for (const Group& group : levels_[level]) {
    const size_t num_calls = frames_[static_cast<size_t>(group.frame)].calls.size();
    budget_.charge(1 + static_cast<int64_t>(num_calls));
    for (size_t i = 0; i < num_calls; ++i) {
      const Call call = frames_[static_cast<size_t>(group.frame)].calls[i];
      const int needed = static_cast<int>(level) + std::max(call.inside + 1, call.behind);
      reached_ = std::max(reached_, needed);
      if (needed > max_depth) continue;
      deepest_ = std::max(deepest_, level + 1);
      levels_[level + 1].push_back({start_of(group.frame, i), push(call.target, group.below)});
      if (levels_[level + 1].size() > 2 * kMaxStacks) throw too_many_stacks();
    }
  }
}

/// One group of each below.
void StackMachine::unite(std::vector<Group>& level) {
  if (level.size() < 2) return;
  budget_.charge(std::ssize(level));
  std::sort(level.begin(), level.end(), is_before);
  level.erase(std::unique(level.begin(), level.end()), level.end());
  size_t num_united = 0;
  for (size_t first = 0; first < level.size();) {
    size_t last = first + 1;
    while (last < level.size() && level[last].below == level[first].below &&
           level[last].count == level[first].count)
      ++last;
    const FrameIndex frame = united(std::span(level).subspan(first, last - first));
    level[num_united++] = {frame, level[first].below, level[first].count};
    first = last;
  }
  level.resize(num_united);
}

Stacks StackMachine::start() {
  const int32_t state = automaton_.starts[static_cast<size_t>(automaton_.root)];
  Stacks stacks = {{closed_frame({&state, 1}), kBottom}};
  close(stacks, kMaxDepth);
  return stacks;
}

void StackMachine::step(const Stacks& stacks, uint8_t byte, int max_depth, Stacks& next) {
  next.clear();
  budget_.charge(std::ssize(stacks));
  for (const Group& group : stacks) {
    const Group stepped = step(group, byte);
    if (stepped.frame == kNone) continue;
    const int needed = depth(group.below) + height(stepped.frame);
    reached_ = std::max(reached_, needed);
    if (needed <= max_depth) next.push_back(stepped);
  }
  close(next, max_depth);
}

Stacks StackMachine::behind(NodeIndex node) {
  if (node == kBottom) return {};
  const Node at = nodes_[static_cast<size_t>(node)];
  Stacks stacks = {{behind_state(at.state), at.below}};
  close(stacks, kMaxDepth);
  return stacks;
}

bool StackMachine::may_end(const Stacks& stacks) const {
  return !stacks.empty() && stacks.front().below == kBottom && ends_rule(stacks.front().frame);
}

}  // namespace soliton::constrain
