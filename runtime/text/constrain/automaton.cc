// Looks at the whole that states_of() makes: how each state ends, and who begins with itself.
#include "runtime/text/constrain/automaton.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>

#include "runtime/text/constrain/automaton_builder.h"

namespace soliton::constrain {
namespace {

Error rule_error(ExitCode code, const Grammar& grammar, int rule, const std::string& message) {
  const Rule& at = grammar.rules[static_cast<size_t>(rule)];
  const std::string name =
      at.line > 0 ? fmt::format("{}:{}", grammar.name, at.line) : std::string(grammar.name);
  return file_error(code, name, "{}: {}", at.name, message);
}

// ---- Ends

/// Heights, lowest first, along the edges backwards.
class Heights {
 public:
  Heights(Automaton& automaton, Budget& budget)
      : automaton_(automaton),
        budget_(budget),
        before_(automaton.states.size()),
        calls_of_(automaton.starts.size()),
        rule_started_at_(automaton.states.size(), -1) {
    automaton_.heights.assign(automaton_.states.size(), Automaton::kNoHeight);
    for (size_t i = 0; i < automaton_.starts.size(); ++i) {
      rule_started_at_[static_cast<size_t>(automaton_.starts[i])] = static_cast<int32_t>(i);
    }
  }

  void run() {
    for (size_t i = 0; i < automaton_.states.size(); ++i) {
      const auto from = static_cast<int32_t>(i);
      const Automaton::State& state = automaton_.states[i];
      for (const int32_t target : state.empty)
        before_[static_cast<size_t>(target)].push_back({from, {-1, 0}});
      for (const ByteEdge& edge : state.bytes)
        before_[static_cast<size_t>(edge.target)].push_back({from, {-1, 0}});
      for (const CallEdge& call : state.calls) {
        before_[static_cast<size_t>(call.target)].push_back({from, call});
        calls_of_[static_cast<size_t>(call.rule)].push_back({from, call});
      }
      if (state.ends_rule) lower(from, 0);
    }
    while (!queue_.empty()) {
      const auto [height, state] = queue_.top();
      queue_.pop();
      if (height > automaton_.heights[static_cast<size_t>(state)]) continue;
      budget_.charge(1 + std::ssize(before_[static_cast<size_t>(state)]));
      for (const Edge& edge : before_[static_cast<size_t>(state)]) {
        lower(edge.from, edge.call.rule < 0 ? height : automaton_.height(edge.call));
      }
      const int32_t rule = rule_started_at_[static_cast<size_t>(state)];
      if (rule < 0) continue;
      for (const Edge& edge : calls_of_[static_cast<size_t>(rule)])
        lower(edge.from, automaton_.height(edge.call));
    }
  }

 private:
  struct Edge {
    int32_t from;
    CallEdge call;  // of rule -1: none
  };

  void lower(int32_t state, int32_t height) {
    int32_t& known = automaton_.heights[static_cast<size_t>(state)];
    if (height >= known) return;
    known = height;
    queue_.emplace(height, state);
  }

  Automaton& automaton_;
  Budget& budget_;
  std::vector<std::vector<Edge>> before_;    // [states]
  std::vector<std::vector<Edge>> calls_of_;  // [rules]
  std::vector<int32_t> rule_started_at_;     // [states]; negative: none
  std::priority_queue<std::pair<int32_t, int32_t>, std::vector<std::pair<int32_t, int32_t>>, std::greater<>>
      queue_;
};

/// Characters until the end of the rule, along the edges backwards; calls that cannot be so short are cut off.
void find_characters(Automaton& automaton, Budget& budget) {
  if (automaton.counters.empty()) return;
  constexpr int32_t kNever = std::numeric_limits<int32_t>::max();
  std::vector<std::vector<std::pair<int32_t, int32_t>>> before(automaton.states.size());
  std::deque<int32_t> rest;
  automaton.characters.assign(automaton.states.size(), kNever);
  for (size_t i = 0; i < automaton.states.size(); ++i) {
    const auto from = static_cast<int32_t>(i);
    const Automaton::State& state = automaton.states[i];
    budget.charge(1 + std::ssize(state.bytes) + std::ssize(state.empty));
    for (const ByteEdge& edge : state.bytes)
      before[static_cast<size_t>(edge.target)].emplace_back(from, edge.counts ? 1 : 0);
    for (const int32_t target : state.empty) before[static_cast<size_t>(target)].emplace_back(from, 0);
    for (const CallEdge& call : state.calls) before[static_cast<size_t>(call.target)].emplace_back(from, 0);
    if (!state.ends_rule) continue;
    automaton.characters[i] = 0;
    rest.push_back(from);
  }
  while (!rest.empty()) {  // nearest first
    const int32_t state = rest.front();
    rest.pop_front();
    const int32_t known = automaton.characters[static_cast<size_t>(state)];
    budget.charge(1 + std::ssize(before[static_cast<size_t>(state)]));
    for (const auto& [from, length] : before[static_cast<size_t>(state)]) {
      int32_t& other = automaton.characters[static_cast<size_t>(from)];
      if (other <= known + length) continue;
      other = known + length;
      length == 0 ? rest.push_front(from) : rest.push_back(from);
    }
  }
  for (const int32_t characters : automaton.characters) {
    if (characters != kNever) automaton.most_characters = std::max(automaton.most_characters, characters);
  }
  for (Automaton::State& state : automaton.states) {
    std::erase_if(state.calls, [&](const CallEdge& call) {
      const int32_t counter = automaton.counter_of[static_cast<size_t>(call.target)];
      if (counter == Automaton::kNoCounter) return false;
      const int32_t start = automaton.starts[static_cast<size_t>(call.rule)];
      return automaton.characters[static_cast<size_t>(start)] >
             automaton.counters[static_cast<size_t>(counter)].max;
    });
  }
}

/// Cuts off what never ends.
void prune(Automaton& automaton) {
  const auto is_dead = [&](int32_t state) {
    return automaton.heights[static_cast<size_t>(state)] >= Automaton::kNoHeight;
  };
  for (Automaton::State& state : automaton.states) {
    std::erase_if(state.empty, is_dead);
    std::erase_if(state.bytes, [&](const ByteEdge& edge) { return is_dead(edge.target); });
    std::erase_if(state.far, [&](const FarEdge& edge) { return is_dead(edge.target); });
    std::erase_if(state.calls,
                  [&](const CallEdge& call) { return automaton.height(call) >= Automaton::kNoHeight; });
  }
}

// ---- What rules begin with

/// Which rules may be empty, and that none begins with itself.
class Beginnings {
 public:
  Beginnings(Automaton& automaton, const Grammar& grammar, Budget& budget)
      : automaton_(automaton),
        grammar_(grammar),
        budget_(budget),
        rule_of_(automaton.states.size(), kNone),
        waiting_(automaton.starts.size()),
        first_(automaton.starts.size()),
        looks_(automaton.starts.size(), kNew) {
    automaton_.may_be_empty.assign(automaton.starts.size(), 0);
  }

  void find() {
    for (size_t i = 0; i < automaton_.starts.size(); ++i)
      reach(automaton_.starts[i], static_cast<int32_t>(i));
    while (!rest_.empty()) {
      const int32_t state = rest_.back();
      rest_.pop_back();
      look_at(state);
    }
  }

  void refuse_left_recursion() {
    for (size_t i = 0; i < first_.size(); ++i) follow(static_cast<int32_t>(i));
  }

 private:
  static constexpr int32_t kNone = -1;
  enum Look : char { kNew, kOpen, kDone };

  /// A state, that of its rule stands at its beginning: nothing has to be read to come here.
  void reach(int32_t state, int32_t rule) {
    if (rule_of_[static_cast<size_t>(state)] != kNone) return;
    rule_of_[static_cast<size_t>(state)] = rule;
    rest_.push_back(state);
  }

  void look_at(int32_t index) {
    const Automaton::State& state = automaton_.states[static_cast<size_t>(index)];
    const int32_t rule = rule_of_[static_cast<size_t>(index)];
    budget_.charge(1 + std::ssize(state.empty) + std::ssize(state.calls));
    for (const int32_t target : state.empty) reach(target, rule);
    for (const CallEdge& call : state.calls) {
      first_[static_cast<size_t>(rule)].push_back(call.rule);
      if (automaton_.may_be_empty[static_cast<size_t>(call.rule)] != 0) {
        reach(call.target, rule);
      } else {
        waiting_[static_cast<size_t>(call.rule)].push_back({call.target, rule});
      }
    }
    if (!state.ends_rule || automaton_.may_be_empty[static_cast<size_t>(rule)] != 0) return;
    automaton_.may_be_empty[static_cast<size_t>(rule)] = 1;
    for (const auto& [target, caller] : waiting_[static_cast<size_t>(rule)]) reach(target, caller);
  }

  void follow(int32_t rule) {
    char& look = looks_[static_cast<size_t>(rule)];
    if (look == kDone) return;
    path_.push_back(rule);
    if (look == kOpen) {
      std::string cycle;
      for (auto at = std::find(path_.begin(), path_.end(), rule); at != path_.end(); ++at) {
        cycle += (cycle.empty() ? "" : " -> ") + grammar_.rules[static_cast<size_t>(*at)].name;
      }
      throw rule_error(ExitCode::kBadFile, grammar_, rule,
                       "expected a rule that does not begin with itself (left recursion), got " + cycle);
    }
    look = kOpen;
    for (const int32_t next : first_[static_cast<size_t>(rule)]) follow(next);
    look = kDone;
    path_.pop_back();
  }

  Automaton& automaton_;
  const Grammar& grammar_;
  Budget& budget_;
  std::vector<int32_t> rule_of_;  // [states]: of those that have been reached
  std::vector<int32_t> rest_;     // reached and not looked at
  std::vector<std::vector<std::pair<int32_t, int32_t>>>
      waiting_;                              // [rules]: if it may be empty, what to reach
  std::vector<std::vector<int32_t>> first_;  // [rules]: those that it may begin with
  std::vector<char> looks_;                  // [rules]
  std::vector<int32_t> path_;
};

bool leads_to_the_end(const Automaton& automaton, int32_t state) {
  constexpr int kMostSteps = 16;  // that a call is spared is worth a short look only
  for (int i = 0; i < kMostSteps; ++i) {
    const Automaton::State& at = automaton.states[static_cast<size_t>(state)];
    if (!at.bytes.empty() || !at.calls.empty()) return false;
    if (at.ends_rule) return at.empty.empty();
    if (at.empty.size() != 1) return false;
    state = at.empty[0];
  }
  return false;
}

}  // namespace

int32_t Automaton::height(const CallEdge& call) const {
  const int32_t inside = heights[static_cast<size_t>(starts[static_cast<size_t>(call.rule)])];
  const int32_t behind = heights[static_cast<size_t>(call.target)];
  if (inside >= kNoHeight || behind >= kNoHeight) return kNoHeight;
  return only_ends[static_cast<size_t>(call.target)] != 0 ? inside : std::max(inside + 1, behind);
}

Automaton make_automaton(const Grammar& grammar, const std::bitset<256>& bytes, Budget& budget) {
  Automaton automaton = states_of(grammar, bytes, budget);
  for (size_t i = 0; i < automaton.states.size(); ++i)
    automaton.only_ends.push_back(automaton.counter_of[i] == Automaton::kNoCounter &&
                                          leads_to_the_end(automaton, static_cast<int32_t>(i))
                                      ? 1
                                      : 0);
  find_characters(automaton, budget);
  Heights(automaton, budget).run();
  if (automaton.heights[static_cast<size_t>(automaton.starts[static_cast<size_t>(grammar.root)])] >
      kMaxDepth) {
    throw rule_error(ExitCode::kBadFile, grammar, grammar.root,
                     "expected some text that it can be, got none that ends");
  }
  prune(automaton);
  Beginnings beginnings(automaton, grammar, budget);
  beginnings.find();
  beginnings.refuse_left_recursion();
  return automaton;
}

}  // namespace soliton::constrain
