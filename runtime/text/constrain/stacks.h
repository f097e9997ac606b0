// What has been read of a text, as far as it says what may follow: a pushdown automaton that is in many states at once.
//
// A stack's entries are the states where calls go on; stacks share their tails, and states behind the same tail are one
// frame. Frames and what a byte makes of them are found once and kept: within a rule the automaton is deterministic. A
// frame is closed under all that is reached without a byte and without a stack's growing: empty edges, calls that nothing
// follows, and what follows calls that may be empty. So what a byte leaves is known after one pass from the deepest stack
// down (rules that have ended) and one up (rules that begin), with a frame made once for each tail.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/text/constrain/automaton.h"

namespace soliton::constrain {

inline constexpr size_t kMaxStacks = 1000;  // at once

/// A set of states of the automaton, closed as above.
using FrameIndex = int32_t;
/// Where a call goes on and what is below it. kBottom: nothing.
using NodeIndex = int32_t;
inline constexpr NodeIndex kBottom = 0;

struct Group {
  FrameIndex frame;
  NodeIndex below;
  int32_t count = 0;  // characters that the call below has read, if these are counted

  auto operator<=>(const Group&) const = default;
};

/// Ascending by `below` and count, of which each pair is there once.
using Stacks = std::vector<Group>;

/// Of one grammar. Not for several threads at once. All but what only looks throws what the budget does, and is then as
/// before.
class StackMachine {
 public:
  /// The budget must outlive it.
  StackMachine(const Grammar& grammar, Automaton automaton, Budget& budget);

  /// Before the first byte.
  Stacks start();
  /// Behind a byte; empty if it may not follow. Throws Error (kOutOfMemory), naming the grammar, at a limit.
  Stacks step(const Stacks& stacks, uint8_t byte) {
    Stacks next;
    step(stacks, byte, kMaxDepth, next);
    return next;
  }
  /// The same with another limit of the depth.
  void step(const Stacks& stacks, uint8_t byte, int max_depth, Stacks& next);
  /// Where the call that `node` returns from goes on.
  Stacks behind(NodeIndex node);
  /// Whether the text may end here.
  bool may_end(const Stacks& stacks) const;

  const Automaton& automaton() const { return automaton_; }
  /// Where a rule begins.
  FrameIndex start_of_rule(size_t rule) { return closed_frame({&automaton_.starts[rule], 1}); }
  /// Of a frame, those with edges or an end, ascending.
  std::span<const int32_t> states(FrameIndex frame) const {
    return frames_[static_cast<size_t>(frame)].states;
  }

  /// What a byte makes of a frame by itself; kNone if nothing.
  FrameIndex step(FrameIndex frame, uint8_t byte) {
    const Steps* const known = frames_[static_cast<size_t>(frame)].next.get();
    if (known != nullptr && (*known)[byte] != kUnknown) return (*known)[byte];
    return find_step(frame, byte);
  }
  static constexpr FrameIndex kNone = -1;
  /// The same of a group; of frame kNone if the byte may not follow, or leads to more characters or fewer than are to be read.
  Group step(const Group& group, uint8_t byte) {
    const FrameIndex frame = step(group.frame, byte);
    if (frame == kNone || counter_of(group.below) == Automaton::kNoCounter)
      return {frame, group.below, group.count};
    return counted_step(group, byte, frame);
  }
  /// Whether it can make a difference within so many characters that a group's are counted.
  bool may_count(const Group& group, int num_characters) const;
  /// Whether a byte with which a frame has been stepped begins a character that is counted.
  bool counts(FrameIndex frame, uint8_t byte) const {
    return frames_[static_cast<size_t>(frame)].counts[byte];
  }
  bool is_counted(const Group& group) const { return counter_of(group.below) != Automaton::kNoCounter; }
  /// How many more characters a counted group may read, where those that end its rule are left.
  int32_t room(const Group& group) const;
  /// How many more characters a counted group may read, whatever is left.
  int32_t most_left(const Group& group) const;
  /// No call, and no end of the rule.
  bool is_plain(FrameIndex frame) const { return frames_[static_cast<size_t>(frame)].is_plain; }
  size_t num_states(FrameIndex frame) const { return frames_[static_cast<size_t>(frame)].states.size(); }
  bool ends_rule(FrameIndex frame) const { return frames_[static_cast<size_t>(frame)].ends_rule; }
  /// Calls inside one another that it takes to end the rule.
  int height(FrameIndex frame) const { return frames_[static_cast<size_t>(frame)].height; }
  /// Characters that it takes to end the rule, in a grammar that counts some.
  int32_t characters(FrameIndex frame) const { return frames_[static_cast<size_t>(frame)].characters; }
  /// Those that may follow in a frame.
  std::bitset<256> bytes(FrameIndex frame);
  /// Whether all bytes of a range make the same of a frame.
  bool are_alike(FrameIndex frame, uint8_t first, uint8_t last);
  /// Bit i: all of Vocabulary::far_text()[i] make the same of a frame; they come to it by plain frames.
  uint8_t alike_far(FrameIndex frame) const;
  /// What a character of such a class makes of it.
  FrameIndex step_far(FrameIndex frame, size_t index);
  /// What each byte makes of a frame, of all at once: in less time than one by one.
  void find_steps(FrameIndex frame);
  int depth(NodeIndex node) const { return nodes_[static_cast<size_t>(node)].depth; }
  /// The most that a depth and a height were together since take_reached() was called, were they within the limit or not.
  int take_reached() { return std::exchange(reached_, 0); }
  /// Of those who look at heights themselves.
  void reach(int height) { reached_ = std::max(reached_, height); }

 private:
  static constexpr FrameIndex kUnknown = -2;
  static constexpr int32_t kMostCounted = 1 << 30;  // what is longer is counted no more
  using Steps = std::array<FrameIndex, 256>;

  /// Calls that return to the same state, as one: of rules that are in called_rules from `first` on.
  struct Call {
    int32_t target;  // where they return to
    int32_t inside;  // the least height of a start
    int32_t behind;  // height of the target
    uint32_t first;  // in Frame::called
    uint32_t count;
    FrameIndex start;  // of all of them; kUnknown: not yet found
  };
  struct Frame {
    std::vector<int32_t> states = {};  // those with edges or an end, ascending
    std::vector<Call> calls = {};      // but for those that nothing follows, which are in `states`
    std::vector<int32_t> called = {};  // rules
    bool ends_rule = false;
    bool is_plain = false;
    bool has_all_steps = false;
    int32_t height = 0;
    int32_t characters = 0;                      // to the end of the rule
    std::optional<std::bitset<256>> bytes = {};  // that may follow
    std::bitset<256> counts = {};                // bytes with which a character begins, of those in `next`
    std::unique_ptr<Steps> next = {};            // none before the first step
  };
  struct Node {
    int32_t state;  // where the call goes on
    NodeIndex below;
    int32_t depth;
    int32_t counter;
  };

  int32_t counter_of(NodeIndex node) const { return nodes_[static_cast<size_t>(node)].counter; }
  Group counted_step(const Group& group, uint8_t byte, FrameIndex frame) const {
    const Counter& counter = automaton_.counters[static_cast<size_t>(counter_of(group.below))];
    const Frame& next = frames_[static_cast<size_t>(frame)];
    const int32_t count = group.count + (frames_[static_cast<size_t>(group.frame)].counts[byte] ? 1 : 0);
    const bool may_be = next.characters <= counter.max - count && (!next.ends_rule || count >= counter.min);
    return {may_be ? frame : kNone, group.below, std::min(count, kMostCounted)};
  }
  FrameIndex closed_frame(std::span<const int32_t> states);
  void close(int32_t state);
  FrameIndex found_frame();
  FrameIndex add_frame(uint64_t hash);
  void find_calls(Frame& frame) const;
  FrameIndex united(FrameIndex a, FrameIndex b);
  FrameIndex united(std::span<const Group> groups);
  FrameIndex find_step(FrameIndex frame, uint8_t byte);
  FrameIndex start_of(FrameIndex frame, size_t call);
  FrameIndex behind_state(int32_t state);
  NodeIndex push(int32_t state, NodeIndex below);

  void begin_set();
  bool take(int32_t state);
  void close(Stacks& stacks, int max_depth);
  void end_rules(size_t level);
  void begin_rules(size_t level, int max_depth);
  void unite(std::vector<Group>& level);
  Error too_many_stacks() const;

  std::string name_;
  Automaton automaton_;
  Budget& budget_;
  std::vector<uint8_t> is_kept_;  // [states]: has bytes, calls that something follows, or an end
  std::vector<Frame> frames_;
  std::unordered_multimap<uint64_t, FrameIndex> frames_by_hash_;  // of their states
  std::unordered_map<uint64_t, FrameIndex> unions_;
  std::unordered_map<int32_t, FrameIndex> behind_;  // frames of states where calls go on
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, NodeIndex> node_of_;
  std::vector<int32_t> set_;                // of states, being made into a frame
  std::vector<uint32_t> marks_;             // [states]: in which set it was last
  uint32_t mark_ = 0;                       // of this one
  std::vector<std::vector<Group>> levels_;  // of close(): [depth]
  size_t deepest_ = 0;                      // of those, the last that is used
  int reached_ = 0;
};

}  // namespace soliton::constrain
