// Stacks that bytes of tokens lead to, each kept once with what every byte makes of it: many tokens lead to the same, as spaces
// do, and ends of texts.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/text/constrain/stacks.h"

namespace soliton::constrain {

/// Of one grammar. Not for several threads at once. Throws what StackMachine does, and is then as before.
class StackSets {
 public:
  using Index = int32_t;
  static constexpr Index kNone = -1;     // the byte may not follow
  static constexpr Index kNotKept = -2;  // as there are too many

  static constexpr size_t kMostBytes = size_t{4} << 20;

  /// The machine must outlive this. Of about so many bytes at most.
  explicit StackSets(StackMachine& machine, size_t most_bytes = kMostBytes)
      : machine_(machine), most_bytes_(most_bytes) {}

  /// Forgets all if there are so many that none is added any more. No index holds after that.
  void forget_if_full();
  Index of(const Stacks& stacks);
  /// What a byte makes of one, within kMaxDepth.
  Index step(Index set, uint8_t byte);
  /// The same of a group by itself.
  Index step(const Group& group, uint8_t byte);
  /// Holds until the next one is added.
  const Stacks& stacks(Index set) const { return sets_[static_cast<size_t>(set)].stacks; }
  bool may_end(Index set) const { return sets_[static_cast<size_t>(set)].may_end; }

 private:
  /// Where it leads, and the most that a depth and a height were together: see StackMachine::take_reached().
  struct Step {
    Index to;
    int reached;
  };
  /// By bytes. Most that may follow are never asked for.
  struct Steps {
    static constexpr size_t kMost = 255;

    std::bitset<256> bytes = {};           // that may follow
    std::array<uint8_t, 256> number = {};  // of each in `known`, from 1 on; 0: not yet found
    std::vector<Step> known = {};
  };
  struct Set {
    Stacks stacks;
    bool may_end;
    std::unique_ptr<Steps> next = {};  // none before the first step
  };
  struct GroupByte {
    Group group;
    uint8_t byte;

    bool operator==(const GroupByte&) const = default;
  };
  struct Hash {
    size_t operator()(const GroupByte& key) const;
  };

  bool is_full() const;
  Steps steps_of(const Stacks& stacks) const;
  Step found(const Stacks& stacks, uint8_t byte);

  StackMachine& machine_;
  size_t most_bytes_;
  std::vector<Set> sets_;
  std::unordered_multimap<uint64_t, Index> by_hash_;  // of their stacks
  std::unordered_map<GroupByte, Step, Hash> of_groups_;
  size_t num_bytes_ = 0;  // of all, about
  Stacks next_;           // being found
};

}  // namespace soliton::constrain
