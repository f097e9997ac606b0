// A grammar as states and edges: of each rule a nondeterministic automaton over bytes, whose edges may also call rules.
//
// What cannot come to an end has been cut off, so that every state leads to the end of its rule, and how many calls that
// takes inside one another is known (heights): who never exceeds a depth by them never meets a dead end.
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "runtime/text/constrain/budget.h"
#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

inline constexpr int kMaxDepth = 256;  // of calls inside one another
inline constexpr size_t kMaxStates = 200'000;
inline constexpr size_t kMaxEdges = 1'000'000;

struct ByteEdge {
  uint8_t first;
  uint8_t last;
  bool counts;  // a character begins
  int32_t target;

  auto operator<=>(const ByteEdge&) const = default;
};

/// What the bytes of characters that are not ASCII's lead to, character by character: besides the edges of their bytes.
struct FarEdge {
  uint8_t all;   // of these classes each character leads there: bit i is of Vocabulary::far_text()[i]
  uint8_t some;  // of these perhaps some
  bool counts;
  int32_t target;

  auto operator<=>(const FarEdge&) const = default;
};

struct CallEdge {
  int32_t rule;
  int32_t target;  // where it goes on when the rule has ended

  auto operator<=>(const CallEdge&) const = default;
};

/// How many characters a call may read.
struct Counter {
  int32_t min;
  int32_t max;
};

struct Automaton {
  struct State {
    std::vector<ByteEdge> bytes = {};
    std::vector<FarEdge> far = {};
    std::vector<CallEdge> calls = {};
    std::vector<int32_t> empty = {};  // states that are as good
    bool ends_rule = false;
  };

  static constexpr int32_t kNoHeight = 1 << 20;  // of what never ends
  static constexpr int32_t kNoCounter = -1;

  std::vector<State> states;
  std::vector<int32_t> starts;   // [rules]
  std::vector<int32_t> heights;  // [states]: calls inside one another that it takes to end the rule
  std::vector<uint8_t>
      only_ends;  // [states]: nothing follows but the end of the rule: a call need not return here
  std::vector<uint8_t> may_be_empty;  // [rules]
  std::vector<Counter> counters;
  std::vector<int32_t> counter_of;  // [states]: of calls that return to it; kNoCounter: none
  std::vector<int32_t>
      characters;               // [states]: how many more it takes to end the rule; empty without counters
  int32_t most_characters = 0;  // of these
  int root = 0;                 // rule

  /// Calls inside one another until the edge's target is reached and its rule ended.
  int32_t height(const CallEdge& call) const;
};

/// `bytes` are those that there are, one by one: what needs another one is cut off. Throws Error, naming the grammar and
/// the rule: kBadFile if a rule begins with itself (left recursion) or the root with nothing that ends, kOutOfMemory above
/// kMaxStates, kMaxEdges and what the budget allows.
Automaton make_automaton(const Grammar& grammar, const std::bitset<256>& bytes, Budget& budget);

}  // namespace soliton::constrain
