// What has been read of a text, as far as it says what may follow: a pushdown automaton that is in many states at once.
//
// A stack's entries are the states where calls go on; stacks share their tails, and states behind the same tail are one
// frame. Frames and what a byte makes of them are found once and kept: within a rule the automaton is deterministic.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/constrain/automaton.h"

namespace soliton::constrain {

inline constexpr size_t kMaxStacks = 1000;         // at once
inline constexpr size_t kMaxFrames = 50'000;       // of a grammar, met by texts and tokens so far
inline constexpr size_t kMaxStackNodes = 1 << 20;  // the same

/// A set of states of the automaton, closed under empty edges.
using FrameIndex = int32_t;
/// Where a call goes on and what is below it. kBottom: nothing.
using NodeIndex = int32_t;
inline constexpr NodeIndex kBottom = 0;

struct Group {
  FrameIndex frame;
  NodeIndex below;

  auto operator<=>(const Group&) const = default;
};

/// Ascending by `below`, of which each is there once.
using Stacks = std::vector<Group>;

/// Of one grammar. Not for several threads at once.
class StackMachine {
 public:
  explicit StackMachine(const Grammar& grammar, Automaton automaton);

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

  /// What a byte makes of a frame by itself; kNone if nothing.
  FrameIndex step(FrameIndex frame, uint8_t byte) {
    const FrameIndex known = frames_[static_cast<size_t>(frame)].next[byte];
    return known != kUnknown ? known : find_step(frame, byte);
  }
  static constexpr FrameIndex kNone = -1;
  /// No call, and no end of the rule.
  bool is_plain(FrameIndex frame) const { return frames_[static_cast<size_t>(frame)].is_plain; }
  bool ends_rule(FrameIndex frame) const { return frames_[static_cast<size_t>(frame)].ends_rule; }
  /// Calls inside one another that it takes to end the rule.
  int height(FrameIndex frame) const { return frames_[static_cast<size_t>(frame)].height; }
  int depth(NodeIndex node) const { return nodes_[static_cast<size_t>(node)].depth; }
  NodeIndex below(NodeIndex node) const { return nodes_[static_cast<size_t>(node)].below; }
  /// The most that a depth and a height were together since take_reached() was called, were they within the limit or not.
  int take_reached() { return std::exchange(reached_, 0); }
  /// Of those who look at heights themselves.
  void reach(int height) { reached_ = std::max(reached_, height); }

  size_t num_frames() const { return frames_.size(); }

 private:
  static constexpr FrameIndex kUnknown = -2;

  struct Call {
    FrameIndex start;
    int32_t target;  // where it returns to
    bool is_last;    // nothing follows: its return is that of this rule
    int32_t inside;  // height of the start
    int32_t behind;  // height of the target
  };
  struct Frame {
    std::vector<int32_t> states = {};  // those with edges or an end, ascending
    std::vector<Call> calls = {};
    bool ends_rule = false;
    bool is_plain = false;
    int32_t height = 0;
    std::array<FrameIndex, 256> next;
  };
  struct Node {
    int32_t state;  // where the call goes on
    NodeIndex below;
    int32_t depth;
  };

  FrameIndex frame_of(std::vector<int32_t> states);
  FrameIndex united(FrameIndex a, FrameIndex b);
  FrameIndex find_step(FrameIndex frame, uint8_t byte);
  FrameIndex behind_state(int32_t state);
  NodeIndex push(int32_t state, NodeIndex below);
  bool add(Stacks& stacks, Group group);
  void close(Stacks& stacks, int max_depth);
  Error too_much(const char* what, size_t most) const;

  std::string name_;
  Automaton automaton_;
  std::vector<Frame> frames_;
  std::map<std::vector<int32_t>, FrameIndex> frame_of_states_;
  std::unordered_map<uint64_t, FrameIndex> unions_;
  std::unordered_map<int32_t, FrameIndex> behind_;  // frames of states where calls go on
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, NodeIndex> node_of_;
  std::vector<Group> rest_;  // of close()
  int reached_ = 0;
};

}  // namespace soliton::constrain
