// A rule of texts as the states of a nondeterministic automaton over characters.
//
// An assertion that looks ahead is an automaton of its own, begun wherever a way passes it: the way goes on with what the rest
// of the text has to be, or must not be. One that looks back is an automaton that reads along from the beginning.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/text/constrain/text_machine.h"

namespace soliton::constrain {

/// A rule, or all of them together, have more states or take more steps than allowed.
struct TooMuch {};

/// Thompson's construction. What takes too much throws TooMuch.
class Nfa {
 public:
  enum When : char { kAlways, kAtStart, kAtEnd, kAsserted };

  explicit Nfa(const TextRule& rule) : Nfa(rule, std::make_shared<size_t>(0)) {}
  Nfa(Nfa&&) = default;

  static constexpr size_t kMostStates = 20'000;

  /// What is known behind some text: the sets of assertions that look back by their numbers, then the ways that are open,
  /// ascending, each of which is a state and what the rest of the text owes to it.
  using Set = std::vector<int>;
  /// Whether a character has a label.
  using IsIn = std::function<bool(size_t label)>;

  Set start(bool is_at_start = true);
  Set step(const Set& set, const IsIn& is_in);
  bool is_negated() const { return is_negated_; }
  /// Whether no way is open.
  bool is_empty(const Set& set) const { return set.size() == num_behind_; }
  /// Whether a text may end there.
  bool accepts(const Set& set, bool is_at_start) { return is_found(set, is_at_start, true) != is_negated_; }
  /// Of finding a set.
  size_t num_steps() const { return 16 + states_.size() / 8; }
  /// Steps that assertions have taken so far.
  size_t num_asserted() const { return *num_asserted_; }
  /// Those of assertions too.
  const std::vector<const CodeSet*>& labels() const { return labels_; }

 private:
  static constexpr int kFirst = 0;
  static constexpr int kLast = 1;
  struct Edge {
    size_t label;
    int to;
  };
  struct EmptyEdge {
    When when;
    int to;
    size_t assertion;
  };
  struct State {
    std::vector<Edge> codes = {};
    std::vector<EmptyEdge> empty = {};
  };
  struct Assertion {
    std::unique_ptr<Nfa> nfa;
    bool is_behind;
    bool is_negated;
    size_t first_label = 0;  // of its own in labels_
    size_t place = 0;        // in sets, if it looks back
    std::map<Set, int> numbers = {};
    std::vector<const Set*> sets = {};

    int number(Set set);
    const Set& at(int number) const { return *sets[static_cast<size_t>(number)]; }
    Set next(int number, const IsIn& is_in);
  };
  /// Assertions that look ahead, each with what is known of it so far; ascending.
  using Debts = std::vector<std::pair<size_t, int>>;

  Nfa(const TextRule& rule, std::shared_ptr<size_t> num_asserted);

  int new_state();
  void link(int from, int to, When when = kAlways, size_t assertion = 0) {
    states_[static_cast<size_t>(from)].empty.push_back({when, to, assertion});
  }
  void emit(const Expression& expression, int from, int to);
  void emit_graph(const Expression& expression, int from, int to);
  void emit_text(const std::string& text, int from, int to);
  void emit_repeat(const Expression& expression, int from, int to);
  size_t assertion_of(const Expression& expression);
  size_t label(const CodeSet& set);

  int way(int state, int debts) const { return state + static_cast<int>(states_.size()) * debts; }
  int state_of(int way) const { return way % static_cast<int>(states_.size()); }
  int debts_of(int way) const { return way / static_cast<int>(states_.size()); }

  bool is_found(const Set& set, bool is_at_start, bool is_at_end);
  std::vector<int> closed(std::vector<int> ways, const Set& behind, bool is_at_start, bool is_at_end);
  std::vector<int> closed_plainly(const std::vector<int>& ways, bool is_at_start, bool is_at_end) const;
  /// What is owed behind an edge; nothing if it is closed.
  std::optional<int> passed(const EmptyEdge& edge, int debts, const Set& behind, bool is_at_start,
                            bool is_at_end);
  std::optional<int> passed_assertion(size_t index, int debts, const Set& behind, bool is_at_start,
                                      bool is_at_end);
  std::optional<int> stepped(int debts, const IsIn& is_in);
  /// Adds a debt, unless the text has paid it already. False if it never can.
  bool add(Debts& debts, size_t index, Set set);
  int number(Debts debts);
  void count(size_t steps = 1) {
    if ((*num_asserted_ += steps) > kMostAsserted) throw TooMuch();
  }

  static constexpr size_t kMostAsserted = 5'000'000;  // steps: a tenth of a second
  static constexpr int kMostDebts = 50'000;           // times states, of which a way is one

  bool is_negated_;
  std::vector<State> states_;
  std::vector<const CodeSet*> labels_;
  std::vector<std::unique_ptr<CodeSet>> own_;
  std::vector<Assertion> assertions_;
  std::map<const Expression*, size_t> known_assertions_;  // as repeated parts are emitted again
  size_t num_behind_ = 0;
  std::map<Debts, int> numbers_;
  std::vector<const Debts*> debts_;
  std::shared_ptr<size_t> num_asserted_;  // with those of its assertions
};

}  // namespace soliton::constrain
