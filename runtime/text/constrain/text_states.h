// A rule of texts as the states of a nondeterministic automaton over characters.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/text/constrain/text_machine.h"

namespace soliton::constrain {

/// A rule, or all of them together, have more states or take more steps than allowed.
struct TooMuch {};

/// Thompson's construction. Throws TooMuch.
class Nfa {
 public:
  enum When : char { kAlways, kAtStart, kAtEnd };

  explicit Nfa(const TextRule& rule) : is_negated_(rule.is_negated) {
    new_state();
    new_state();
    emit(rule.expression, kFirst, kLast);
  }

  static constexpr size_t kMostStates = 20'000;

  using Set = std::vector<int>;  // of states, ascending

  Set start() const { return closed({kFirst}, true, false); }
  bool is_negated() const { return is_negated_; }
  /// Of finding a set.
  size_t num_steps() const { return 16 + states_.size() / 8; }
  /// Whether a text may end with these states.
  bool accepts(const Set& set, bool is_at_start) const {
    const Set closure = closed(set, is_at_start, true);
    return std::binary_search(closure.begin(), closure.end(), kLast) != is_negated_;
  }
  template <class IsIn>
  Set step(const Set& set, IsIn&& is_in) const {
    Set next;
    for (const int state : set) {
      for (const Edge& edge : states_[static_cast<size_t>(state)].codes) {
        if (is_in(edge.label)) next.push_back(edge.to);
      }
    }
    return closed(std::move(next), false, false);
  }
  const std::vector<const CodeSet*>& labels() const { return labels_; }

 private:
  static constexpr int kFirst = 0;
  static constexpr int kLast = 1;
  struct Edge {
    size_t label;
    int to;
  };
  struct State {
    std::vector<Edge> codes = {};
    std::vector<std::pair<When, int>> empty = {};
  };

  int new_state() {
    if (states_.size() == kMostStates) throw TooMuch();
    states_.emplace_back();
    return static_cast<int>(states_.size()) - 1;
  }
  void link(int from, int to, When when = kAlways) {
    states_[static_cast<size_t>(from)].empty.emplace_back(when, to);
  }

  void emit(const Expression& expression, int from, int to) {
    switch (expression.kind) {
      case Expression::kText:
        return emit_text(expression.text, from, to);
      case Expression::kCodes:
        states_[static_cast<size_t>(from)].codes.push_back({label(expression.codes), to});
        return;
      case Expression::kSequence: {
        for (const Expression& part : expression.parts) {
          const int next = new_state();
          emit(part, from, next);
          from = next;
        }
        return link(from, to);
      }
      case Expression::kChoice:
        for (const Expression& part : expression.parts) emit(part, from, to);
        return;
      case Expression::kRepeat:
        return emit_repeat(expression, from, to);
      case Expression::kStart:
        return link(from, to, kAtStart);
      case Expression::kEnd:
        return link(from, to, kAtEnd);
      case Expression::kGraph:
        return emit_graph(expression, from, to);
      default:
        throw Error(ExitCode::kInternal, "pattern: expected no rules, got one");
    }
  }
  void emit_graph(const Expression& expression, int from, int to) {
    std::vector<int> states;
    for (int i = 0; i < expression.graph->num_states; ++i) states.push_back(new_state());
    const auto state = [&](int index) { return states[static_cast<size_t>(index)]; };
    link(from, state(0));
    for (size_t i = 0; i < expression.parts.size(); ++i)
      emit(expression.parts[i], state(expression.graph->edges[i].from), state(expression.graph->edges[i].to));
    for (const int end : expression.graph->ends) link(state(end), to);
  }
  /// Of ASCII.
  void emit_text(const std::string& text, int from, int to) {
    for (const char c : text) {
      const auto code = static_cast<char32_t>(static_cast<unsigned char>(c));
      const int next = new_state();
      states_[static_cast<size_t>(from)].codes.push_back({label({{code, code}}), next});
      from = next;
    }
    link(from, to);
  }
  void emit_repeat(const Expression& expression, int from, int to) {
    const Expression& part = expression.parts[0];
    const auto once_more = [&] {
      const int begin = new_state();  // what it begins with must not be entered from within
      const int next = new_state();
      link(from, begin);
      emit(part, begin, next);
      from = next;
    };
    for (int i = 0; i < expression.min; ++i) once_more();
    if (expression.max < 0) {
      const int loop = new_state();
      const int again = new_state();
      link(from, loop);
      link(loop, to);
      emit(part, loop, again);
      return link(again, loop);
    }
    for (int i = expression.min; i < expression.max; ++i) {
      link(from, to);
      once_more();
    }
    link(from, to);
  }

  /// Equal sets have one label.
  size_t label(const CodeSet& set) {
    for (size_t i = labels_.size(); i > 0 && i + 16 > labels_.size(); --i) {
      if (*labels_[i - 1] == set) return i - 1;
    }
    own_.push_back(std::make_unique<CodeSet>(set));
    labels_.push_back(own_.back().get());
    return labels_.size() - 1;
  }

  Set closed(Set set, bool is_at_start, bool is_at_end) const {
    std::vector<int> rest = set;
    std::vector<bool> is_in(states_.size());
    for (const int state : set) is_in[static_cast<size_t>(state)] = true;
    while (!rest.empty()) {
      const int state = rest.back();
      rest.pop_back();
      for (const auto& [when, to] : states_[static_cast<size_t>(state)].empty) {
        const bool may = when == kAlways || (when == kAtStart ? is_at_start : is_at_end);
        if (!may || is_in[static_cast<size_t>(to)]) continue;
        is_in[static_cast<size_t>(to)] = true;
        rest.push_back(to);
      }
    }
    set.clear();
    for (size_t i = 0; i < is_in.size(); ++i) {
      if (is_in[i]) set.push_back(static_cast<int>(i));
    }
    return set;
  }

  bool is_negated_;
  std::vector<State> states_;
  std::vector<const CodeSet*> labels_;
  std::vector<std::unique_ptr<CodeSet>> own_;
};

}  // namespace soliton::constrain
