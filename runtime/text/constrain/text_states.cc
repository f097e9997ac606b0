#include "runtime/text/constrain/text_states.h"

#include <algorithm>
#include <set>

namespace soliton::constrain {

Nfa::Nfa(const TextRule& rule, std::shared_ptr<size_t> num_asserted)
    : is_negated_(rule.is_negated), num_asserted_(std::move(num_asserted)) {
  new_state();
  new_state();
  emit(rule.expression, kFirst, kLast);
  known_assertions_.clear();
  for (Assertion& assertion : assertions_) {
    assertion.first_label = labels_.size();
    const std::vector<const CodeSet*>& own = assertion.nfa->labels();
    labels_.insert(labels_.end(), own.begin(), own.end());
    if (assertion.is_behind) assertion.place = num_behind_++;
  }
  number({});
}

// ---- States

int Nfa::new_state() {
  if (states_.size() == kMostStates) throw TooMuch();
  states_.emplace_back();
  return static_cast<int>(states_.size()) - 1;
}

void Nfa::emit(const Expression& expression, int from, int to) {
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
    case Expression::kAhead:
    case Expression::kBehind:
      return link(from, to, kAsserted, assertion_of(expression));
    case Expression::kGraph:
      return emit_graph(expression, from, to);
    default:
      throw Error(ExitCode::kInternal, "pattern: expected no rules, got one");
  }
}

void Nfa::emit_graph(const Expression& expression, int from, int to) {
  std::vector<int> states;
  for (int i = 0; i < expression.graph->num_states; ++i) states.push_back(new_state());
  const auto state = [&](int index) { return states[static_cast<size_t>(index)]; };
  link(from, state(0));
  for (size_t i = 0; i < expression.parts.size(); ++i)
    emit(expression.parts[i], state(expression.graph->edges[i].from), state(expression.graph->edges[i].to));
  for (const int end : expression.graph->ends) link(state(end), to);
}

/// Of ASCII.
void Nfa::emit_text(const std::string& text, int from, int to) {
  for (const char c : text) {
    const auto code = static_cast<char32_t>(static_cast<unsigned char>(c));
    const int next = new_state();
    states_[static_cast<size_t>(from)].codes.push_back({label({{code, code}}), next});
    from = next;
  }
  link(from, to);
}

void Nfa::emit_repeat(const Expression& expression, int from, int to) {
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

size_t Nfa::assertion_of(const Expression& expression) {
  const auto [known, is_new] = known_assertions_.emplace(&expression, assertions_.size());
  if (!is_new) return known->second;
  const bool is_behind = expression.kind == Expression::kBehind;
  const Expression anything = repeat(codes({{0, kMaxCode}}), 0);
  std::vector<Expression> parts = {expression.parts[0]};
  parts.insert(is_behind ? parts.begin() : parts.end(), anything);
  std::unique_ptr<Nfa> nfa(new Nfa(TextRule{sequence(std::move(parts))}, num_asserted_));
  count(nfa->num_steps());
  assertions_.push_back({.nfa = std::move(nfa), .is_behind = is_behind, .is_negated = expression.is_negated});
  return known->second;
}

/// Equal sets have one label.
size_t Nfa::label(const CodeSet& set) {
  for (size_t i = labels_.size(); i > 0 && i + 16 > labels_.size(); --i) {
    if (*labels_[i - 1] == set) return i - 1;
  }
  own_.push_back(std::make_unique<CodeSet>(set));
  labels_.push_back(own_.back().get());
  return labels_.size() - 1;
}

// ---- Sets

Nfa::Set Nfa::start(bool is_at_start) {
  Set set;
  for (Assertion& assertion : assertions_) {
    if (assertion.is_behind) set.push_back(assertion.number(assertion.nfa->start(is_at_start)));
  }
  const std::vector<int> ways = closed({kFirst}, set, is_at_start, false);
  set.insert(set.end(), ways.begin(), ways.end());
  return set;
}

Nfa::Set Nfa::step(const Set& set, const IsIn& is_in) {
  Set next;
  for (Assertion& assertion : assertions_) {
    if (!assertion.is_behind) continue;
    count(assertion.nfa->num_steps());
    next.push_back(assertion.number(assertion.next(set[assertion.place], is_in)));
  }
  std::map<int, std::optional<int>> debts = {{0, 0}};
  std::vector<int> ways;
  for (size_t i = num_behind_; i < set.size(); ++i) {
    const int owed = debts_of(set[i]);
    for (const Edge& edge : states_[static_cast<size_t>(state_of(set[i]))].codes) {
      if (!is_in(edge.label)) continue;
      const auto [known, is_new] = debts.emplace(owed, std::nullopt);
      if (is_new) known->second = stepped(owed, is_in);
      if (known->second) ways.push_back(way(edge.to, *known->second));
    }
  }
  ways = closed(std::move(ways), next, false, false);
  next.insert(next.end(), ways.begin(), ways.end());
  return next;
}

/// Whether the last state is reached there, with no debts left when the text ends.
bool Nfa::is_found(const Set& set, bool is_at_start, bool is_at_end) {
  const std::vector<int> ways = closed({set.begin() + static_cast<std::ptrdiff_t>(num_behind_), set.end()},
                                       set, is_at_start, is_at_end);
  return std::any_of(ways.begin(), ways.end(), [&](int each) {
    if (state_of(each) != kLast) return false;
    const Debts& owed = *debts_[static_cast<size_t>(debts_of(each))];
    return std::all_of(owed.begin(), owed.end(), [&](const auto& debt) {
      if (!is_at_end) return false;
      Assertion& assertion = assertions_[debt.first];
      count(assertion.nfa->num_steps());
      return assertion.nfa->is_found(assertion.at(debt.second), is_at_start, true) != assertion.is_negated;
    });
  });
}

std::vector<int> Nfa::closed_plainly(const std::vector<int>& ways, bool is_at_start, bool is_at_end) const {
  std::vector<int> rest = ways;
  std::vector<bool> is_in(states_.size());
  for (const int state : ways) is_in[static_cast<size_t>(state)] = true;
  while (!rest.empty()) {
    const int state = rest.back();
    rest.pop_back();
    for (const EmptyEdge& edge : states_[static_cast<size_t>(state)].empty) {
      const bool may = edge.when == kAlways || (edge.when == kAtStart ? is_at_start : is_at_end);
      if (!may || is_in[static_cast<size_t>(edge.to)]) continue;
      is_in[static_cast<size_t>(edge.to)] = true;
      rest.push_back(edge.to);
    }
  }
  std::vector<int> all;
  for (size_t i = 0; i < is_in.size(); ++i) {
    if (is_in[i]) all.push_back(static_cast<int>(i));
  }
  return all;
}

std::vector<int> Nfa::closed(std::vector<int> ways, const Set& behind, bool is_at_start, bool is_at_end) {
  if (assertions_.empty()) return closed_plainly(ways, is_at_start, is_at_end);
  std::set<int> all(ways.begin(), ways.end());
  while (!ways.empty()) {
    const int from = ways.back();
    ways.pop_back();
    for (const EmptyEdge& edge : states_[static_cast<size_t>(state_of(from))].empty) {
      count();
      const std::optional<int> owed = passed(edge, debts_of(from), behind, is_at_start, is_at_end);
      if (owed && all.insert(way(edge.to, *owed)).second) ways.push_back(way(edge.to, *owed));
    }
  }
  // Who owes something says nothing beside who owes nothing in the same state.
  std::copy_if(all.begin(), all.end(), std::back_inserter(ways),
               [&](int each) { return debts_of(each) == 0 || !all.contains(state_of(each)); });
  return ways;
}

// ---- Assertions

int Nfa::Assertion::number(Set set) {
  const auto [found, is_new] = numbers.emplace(std::move(set), static_cast<int>(sets.size()));
  if (is_new) sets.push_back(&found->first);
  return found->second;
}

Nfa::Set Nfa::Assertion::next(int from, const IsIn& is_in) {
  return nfa->step(at(from), [&](size_t label) { return is_in(first_label + label); });
}

std::optional<int> Nfa::passed(const EmptyEdge& edge, int debts, const Set& behind, bool is_at_start,
                               bool is_at_end) {
  if (edge.when == kAsserted) return passed_assertion(edge.assertion, debts, behind, is_at_start, is_at_end);
  const bool may = edge.when == kAlways || (edge.when == kAtStart ? is_at_start : is_at_end);
  return may ? std::optional<int>(debts) : std::nullopt;
}

std::optional<int> Nfa::passed_assertion(size_t index, int debts, const Set& behind, bool is_at_start,
                                         bool is_at_end) {
  Assertion& assertion = assertions_[index];
  count(assertion.nfa->num_steps());
  if (assertion.is_behind) {
    const Set& read = assertion.at(behind[assertion.place]);
    const bool holds = assertion.nfa->is_found(read, is_at_start, is_at_end) != assertion.is_negated;
    return holds ? std::optional<int>(debts) : std::nullopt;
  }
  Debts owed = *debts_[static_cast<size_t>(debts)];
  count(16 * owed.size());
  if (!add(owed, index, assertion.nfa->start(is_at_start))) return std::nullopt;
  return number(std::move(owed));
}

std::optional<int> Nfa::stepped(int debts, const IsIn& is_in) {
  Debts next;
  for (const auto& [index, set] : *debts_[static_cast<size_t>(debts)]) {
    count(assertions_[index].nfa->num_steps());
    if (!add(next, index, assertions_[index].next(set, is_in))) return std::nullopt;
  }
  return number(std::move(next));
}

bool Nfa::add(Debts& debts, size_t index, Set set) {
  Assertion& assertion = assertions_[index];
  // Anything may stand behind what is found.
  if (assertion.nfa->is_found(set, false, false)) return !assertion.is_negated;
  if (assertion.nfa->is_empty(set)) return assertion.is_negated;
  debts.emplace_back(index, assertion.number(std::move(set)));
  return true;
}

int Nfa::number(Debts debts) {
  std::sort(debts.begin(), debts.end());
  debts.erase(std::unique(debts.begin(), debts.end()), debts.end());
  const auto [found, is_new] = numbers_.emplace(std::move(debts), static_cast<int>(debts_.size()));
  if (is_new && debts_.size() == kMostDebts) throw TooMuch();
  if (is_new) debts_.push_back(&found->first);
  return found->second;
}

}  // namespace soliton::constrain
