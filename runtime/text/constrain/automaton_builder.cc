// Thompson's construction, rule by rule.
#include "runtime/text/constrain/automaton_builder.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "runtime/text/constrain/far_classes.h"
#include "runtime/text/constrain/utf8_ranges.h"

namespace soliton::constrain {
namespace {

// Small rules that repeat nothing without a bound are written out where they are called: a text of many characters is
// then walked through within one rule.
constexpr int kMostInlined = 64;   // states, about
constexpr int kMostLooked = 300;   // rules, groups and repetitions inside one another
constexpr int kStatesOfCodes = 8;  // about

class Builder {
 public:
  Builder(const Grammar& grammar, const std::bitset<256>& bytes, Budget& budget)
      : grammar_(grammar), bytes_(bytes), budget_(budget), costs_(grammar.rules.size(), kUnknown) {
    has_far_bytes_ = true;
    for (size_t byte = 0x80; byte <= 0xf4; ++byte)
      has_far_bytes_ = has_far_bytes_ && (bytes[byte] || byte == 0xc0 || byte == 0xc1);
  }

  Automaton run() {
    for (size_t i = 0; i < grammar_.rules.size(); ++i) automaton_.starts.push_back(new_state());
    for (size_t i = 0; i < grammar_.rules.size(); ++i) {
      const int32_t end = new_state();
      automaton_.states[static_cast<size_t>(end)].ends_rule = true;
      emit(grammar_.rules[i].expression, automaton_.starts[i], end);
    }
    automaton_.root = grammar_.root;
    automaton_.counter_of.resize(automaton_.states.size(), Automaton::kNoCounter);
    for (Automaton::State& state : automaton_.states) {
      drop_duplicates(state.bytes);
      drop_duplicates(state.far);
      drop_duplicates(state.calls);
      drop_duplicates(state.empty);
    }
    budget_.charge_bytes(automaton_.states.size() * sizeof(Automaton::State) + num_edges_ * sizeof(ByteEdge));
    return std::move(automaton_);
  }

 private:
  static constexpr int kUnknown = -1;
  static constexpr int kLooking = -2;  // at it: it calls itself
  static constexpr int kCalled = kMostInlined + 1;

  int32_t new_state() {
    if (automaton_.states.size() == kMaxStates) {
      throw file_error(ExitCode::kOutOfMemory, grammar_.name,
                       "expected at most {} states, got more: lower the bounds of what repeats", kMaxStates);
    }
    budget_.charge(1);
    automaton_.states.emplace_back();
    return static_cast<int32_t>(automaton_.states.size()) - 1;
  }
  void count_edge() {
    if (num_edges_++ == kMaxEdges) {
      throw file_error(ExitCode::kOutOfMemory, grammar_.name,
                       "expected at most {} edges between states, got more: make it smaller", kMaxEdges);
    }
    budget_.charge(1);
  }
  template <class Edge>
  static void drop_duplicates(std::vector<Edge>& edges) {
    if (edges.size() < 2) return;
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }
  Automaton::State& at(int32_t state) { return automaton_.states[static_cast<size_t>(state)]; }
  void link(int32_t from, int32_t to) {
    count_edge();
    at(from).empty.push_back(to);
  }
  void call(int32_t from, CallEdge edge) {
    count_edge();
    at(from).calls.push_back(edge);
  }
  void link(int32_t from, ByteRange range, int32_t to, bool counts = false) {
    for (int byte = range.first; byte <= range.last; ++byte) {
      if (!bytes_[static_cast<size_t>(byte)]) continue;
      const int first = byte;
      while (byte < range.last && bytes_[static_cast<size_t>(byte) + 1]) ++byte;
      count_edge();
      at(from).bytes.push_back({static_cast<uint8_t>(first), static_cast<uint8_t>(byte), counts, to});
    }
  }

  void link_far(int32_t from, FarClasses classes, int32_t to, bool counts) {
    if ((classes.all | classes.some) == 0) return;
    count_edge();
    at(from).far.push_back({classes.all, classes.some, counts, to});
  }

  /// States of a rule that is written out where it is called, else kCalled.
  int cost_of_rule(int rule, int depth) {
    int& known = costs_[static_cast<size_t>(rule)];
    if (known == kLooking || depth > kMostLooked) return kCalled;
    if (known != kUnknown) return known;
    known = kLooking;
    const int cost = cost_of(grammar_.rules[static_cast<size_t>(rule)].expression, depth + 1);
    return costs_[static_cast<size_t>(rule)] = std::min(cost, kCalled);
  }

  int cost_of(const Expression& expression, int depth) {
    if (depth > kMostLooked) return kCalled;
    int cost = 1;
    for (const Expression& part : expression.parts) {
      cost += cost_of(part, depth + 1);
      if (cost >= kCalled) return kCalled;
    }
    switch (expression.kind) {
      case Expression::kText:
        return std::min<int>(kCalled, static_cast<int>(std::min<size_t>(expression.text.size(), kCalled)));
      case Expression::kCodes:
        return kStatesOfCodes;
      case Expression::kCounted:
        return kCalled;
      case Expression::kRule:
        return cost_of_rule(expression.rule, depth);
      case Expression::kRepeat:
        if (expression.max < 0) return kCalled;
        return std::min<int>(kCalled, cost * std::min(expression.max, kCalled));
      case Expression::kGraph:
        return std::min<int>(kCalled, cost + std::min(expression.graph->num_states, kCalled));
      default:
        return cost;
    }
  }

  void emit(const Expression& expression, int32_t from, int32_t to) {
    budget_.charge(1);
    switch (expression.kind) {
      case Expression::kText:
        return emit_text(expression.text, from, to, expression.counts);
      case Expression::kCodes:
        return emit_codes(expression.codes, from, to, expression.counts);
      case Expression::kRule: {
        const bool is_called = cost_of_rule(expression.rule, 0) >= kCalled;
        if (is_called) return call(from, {expression.rule, to});
        return emit(grammar_.rules[static_cast<size_t>(expression.rule)].expression, from, to);
      }
      case Expression::kSequence: {
        for (size_t i = 0; i < expression.parts.size(); ++i) {
          const int32_t next = i + 1 == expression.parts.size() ? to : new_state();
          emit(expression.parts[i], from, next);
          from = next;
        }
        if (expression.parts.empty()) link(from, to);
        return;
      }
      case Expression::kChoice:
        for (const Expression& part : expression.parts) emit(part, from, to);
        return;
      case Expression::kRepeat:
        return emit_repeat(expression, from, to);
      case Expression::kGraph:
        return emit_graph(expression, from, to);
      case Expression::kCounted:
        return emit_counted(expression, from, to);
      case Expression::kStart:
      case Expression::kEnd:
      case Expression::kAhead:
      case Expression::kBehind:
        throw Error(ExitCode::kInternal, "grammar: anchors of a pattern are none of a grammar");
    }
  }

  /// What the call returns to says its counter.
  void emit_counted(const Expression& expression, int32_t from, int32_t to) {
    const int32_t behind = new_state();
    automaton_.counter_of.resize(automaton_.states.size(), Automaton::kNoCounter);
    automaton_.counter_of.back() = static_cast<int32_t>(automaton_.counters.size());
    automaton_.counters.push_back(
        {expression.min, expression.max < 0 ? std::numeric_limits<int32_t>::max() : expression.max});
    call(from, {expression.rule, behind});
    link(behind, to);
  }

  void emit_graph(const Expression& expression, int32_t from, int32_t to) {
    std::vector<int32_t> states;
    for (int i = 0; i < expression.graph->num_states; ++i) states.push_back(new_state());
    const auto state = [&](int index) { return states[static_cast<size_t>(index)]; };
    if (!states.empty()) link(from, states[0]);
    for (size_t i = 0; i < expression.parts.size(); ++i) {
      const StateGraph::Edge& edge = expression.graph->edges[i];
      emit(expression.parts[i], state(edge.from), state(edge.to));
    }
    for (const int end : expression.graph->ends) link(state(end), to);
  }

  void emit_text(const std::string& text, int32_t from, int32_t to, bool counts) {
    if (text.empty()) return link(from, to);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      const int32_t next = i + 1 == text.size() ? to : new_state();
      link(from, {byte, byte}, next, counts && i == 0);
      const bool is_lead = byte >= 0xc2 && byte <= 0xf4;  // of a character beyond ASCII
      if (is_lead) link_far(from, {.all = 0, .some = 0xff}, next, counts && i == 0);
      from = next;
    }
  }

  void emit_codes(const CodeSet& set, int32_t from, int32_t to, bool counts) {
    states_of_bytes_.clear();
    emit_bytes(utf8_sequences(set), from, to, counts);
    link_far(from, classes_of(set), to, counts);
  }

  /// One edge for those that begin alike, which are beside each other; what goes on alike shares a state.
  void emit_bytes(const std::vector<ByteSequence>& sequences, int32_t from, int32_t to, bool counts) {
    for (auto first = sequences.begin(); first != sequences.end();) {
      const ByteRange range = first->front();
      std::vector<ByteSequence> behind;
      auto last = first;
      for (; last != sequences.end() && last->front() == range; ++last) {
        if (last->size() > 1) behind.emplace_back(last->begin() + 1, last->end());
      }
      first = last;
      int32_t next = to;
      if (!behind.empty()) {
        const auto known = states_of_bytes_.find(behind);
        next = known != states_of_bytes_.end() ? known->second : new_state();
        if (known == states_of_bytes_.end()) {
          emit_bytes(behind, next, to, false);
          states_of_bytes_.emplace(std::move(behind), next);
        }
      }
      link(from, range, next, counts);
    }
  }

  /// Of characters that the bytes there are can write.
  FarClasses classes_of(const CodeSet& set) {
    if (set != last_set_) {
      budget_.charge(std::ssize(set));
      last_set_ = set;
      last_classes_ = far_classes(set);
      if (!has_far_bytes_) last_classes_.some |= std::exchange(last_classes_.all, 0);
    }
    return last_classes_;
  }

  void emit_repeat(const Expression& expression, int32_t from, int32_t to) {
    const Expression& part = expression.parts[0];
    int32_t here = new_state();
    link(from, here);
    const auto once_more = [&] {
      const int32_t next = new_state();
      emit(part, here, next);
      here = next;
    };
    for (int i = 0; i < expression.min; ++i) once_more();
    if (expression.max < 0) {
      const int32_t loop = new_state();
      link(here, loop);
      link(loop, to);
      const int32_t again = new_state();
      emit(part, loop, again);
      link(again, loop);
      return;
    }
    for (int i = expression.min; i < expression.max; ++i) {
      link(here, to);
      once_more();
    }
    link(here, to);
  }

  const Grammar& grammar_;
  const std::bitset<256>& bytes_;
  Budget& budget_;
  bool has_far_bytes_;                                            // all that UTF-8 has
  std::vector<int> costs_;                                        // [rules]
  std::map<std::vector<ByteSequence>, int32_t> states_of_bytes_;  // of the set that is being emitted
  CodeSet last_set_;
  FarClasses last_classes_;  // of it
  size_t num_edges_ = 0;
  Automaton automaton_;
};

}  // namespace

Automaton states_of(const Grammar& grammar, const std::bitset<256>& bytes, Budget& budget) {
  return Builder(grammar, bytes, budget).run();
}

}  // namespace soliton::constrain
