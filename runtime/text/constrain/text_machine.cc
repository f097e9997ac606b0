#include "runtime/text/constrain/text_machine.h"

#include <algorithm>
#include <map>

#include "runtime/text/constrain/text_states.h"

namespace soliton::constrain {
namespace {

constexpr size_t kMostSteps = 20'000'000;  // a tenth of a second
constexpr size_t kStepsOfSchemas = 32;     // that take as long as one of copying schemas

/// Characters that no label tells apart, as classes.
class Alphabet {
 public:
  Alphabet(const std::vector<Nfa>& rules, const CodeSet& characters) {
    std::vector<char32_t> cuts;
    const auto cut = [&](const CodeSet& set) {
      for (const CodeRange& range : set) cuts.insert(cuts.end(), {range.first, range.last + 1});
    };
    cut(characters);
    for (const Nfa& rule : rules) {
      offsets_.push_back(num_labels_);
      num_labels_ += rule.labels().size();
      for (const CodeSet* const set : rule.labels()) cut(*set);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    if (cuts.size() * (num_labels_ + 1) > kMostSteps) throw TooMuch();
    std::map<std::vector<bool>, size_t> known;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (intersection(characters, {{cuts[i], cuts[i]}}).empty()) continue;
      std::vector<bool> labels;
      for (const Nfa& rule : rules) {
        for (const CodeSet* const set : rule.labels()) labels.push_back(is_in(*set, cuts[i]));
      }
      const auto [found, is_new] = known.emplace(labels, classes_.size());
      if (is_new) {
        classes_.emplace_back();
        labels_.push_back(std::move(labels));
      }
      classes_[found->second].push_back({cuts[i], cuts[i + 1] - 1});
    }
  }

  size_t size() const { return classes_.size(); }
  const std::vector<CodeRange>& codes(size_t index) const { return classes_[index]; }
  bool has(size_t index, size_t rule, size_t label) const { return labels_[index][offsets_[rule] + label]; }

 private:
  static bool is_in(const CodeSet& set, char32_t code) {
    const auto behind = std::upper_bound(
        set.begin(), set.end(), code, [](char32_t at, const CodeRange& range) { return at < range.first; });
    return behind != set.begin() && code <= (behind - 1)->last;
  }

  size_t num_labels_ = 0;
  std::vector<size_t> offsets_;                  // [rules]
  std::vector<std::vector<CodeRange>> classes_;  // [classes]
  std::vector<std::vector<bool>> labels_;        // [classes][labels of all rules]
};

/// Sets of states of one rule, numbered, with what each class makes of them.
class Subsets {
 public:
  Subsets(Nfa& nfa, size_t rule, const Alphabet& alphabet, size_t& num_steps)
      : nfa_(nfa), rule_(rule), alphabet_(alphabet), num_steps_(num_steps) {}

  static constexpr int kStart = 0;
  int start() { return number(nfa_.start()); }
  bool is_dead(int set) const {
    return nfa_.is_empty(*sets_[static_cast<size_t>(set)]) && !nfa_.is_negated();
  }
  bool accepts(int set, bool is_at_start) {
    return nfa_.accepts(*sets_[static_cast<size_t>(set)], is_at_start);
  }
  int step(int set, size_t code_class) {
    const size_t at = static_cast<size_t>(set) * alphabet_.size() + code_class;
    if (next_.size() <= at) next_.resize((static_cast<size_t>(set) + 1) * alphabet_.size(), kUnknown);
    if (next_[at] != kUnknown) return next_[at];
    const Nfa::Set& from = *sets_[static_cast<size_t>(set)];
    if ((num_steps_ += nfa_.num_steps() + from.size() * 4) > kMostSteps) throw TooMuch();
    const size_t num_asserted = nfa_.num_asserted();
    const int made =
        number(nfa_.step(from, [&](size_t label) { return alphabet_.has(code_class, rule_, label); }));
    num_steps_ += nfa_.num_asserted() - num_asserted;
    return next_[at] = made;
  }

 private:
  static constexpr int kUnknown = -1;

  int number(Nfa::Set set) {
    num_steps_ += set.size();
    const auto [found, is_new] = numbers_.emplace(std::move(set), static_cast<int>(sets_.size()));
    if (is_new) sets_.push_back(&found->first);
    return found->second;
  }

  Nfa& nfa_;
  size_t rule_;
  const Alphabet& alphabet_;
  size_t& num_steps_;
  std::map<Nfa::Set, int> numbers_;
  std::vector<const Nfa::Set*> sets_;
  std::vector<int> next_;
};

/// Tuples of sets and a count.
class Product {
 public:
  Product(std::vector<Subsets>& rules, const Alphabet& alphabet, const TextLimits& limits, size_t& num_steps)
      : rules_(rules), alphabet_(alphabet), limits_(limits), num_steps_(num_steps) {}

  void run() {
    std::vector<int> start;
    for (Subsets& rule : rules_) start.push_back(rule.start());
    start.push_back(0);           // characters
    start.push_back(kIsAtStart);  // no other state is this one
    number(start);
    for (size_t i = 0; i < tuples_.size(); ++i) {
      ends_.push_back(may_end(i));
      for (size_t k = 0; k < alphabet_.size(); ++k) step(i, k);
    }
  }

  Expression expression(Expression (*written)(const CodeSet&)) const {
    const std::vector<bool> is_live = live();
    if (!is_live[0]) return choice({});
    std::vector<int> index(tuples_.size(), -1);
    auto graph = std::make_shared<StateGraph>();
    for (size_t i = 0; i < tuples_.size(); ++i) {
      if (!is_live[i]) continue;
      index[i] = graph->num_states++;
      if (ends_[i]) graph->ends.push_back(index[i]);
    }
    Expression all{.kind = Expression::kGraph};
    for (const auto& [edge, ranges] : edges_) {
      if (!is_live[edge.first] || !is_live[edge.second]) continue;
      graph->edges.push_back({index[edge.first], index[edge.second]});
      all.parts.push_back(written(code_set(ranges)));
    }
    all.graph = std::move(graph);
    return all;
  }

 private:
  static constexpr int kIsAtStart = 1;

  int number(const std::vector<int>& tuple) {
    const auto [found, is_new] = numbers_.emplace(tuple, static_cast<int>(tuples_.size()));
    if (is_new) {
      if (tuples_.size() == limits_.most_states) throw TooMuch();
      tuples_.push_back(&found->first);
    }
    return found->second;
  }
  int count_at(size_t tuple) const { return (*tuples_[tuple])[rules_.size()]; }
  bool may_end(size_t tuple) const {
    const std::vector<int>& at = *tuples_[tuple];
    if (count_at(tuple) < limits_.min) return false;
    for (size_t i = 0; i < rules_.size(); ++i) {
      if (!rules_[i].accepts(at[i], at.back() == kIsAtStart)) return false;
    }
    return true;
  }
  void step(size_t tuple, size_t code_class) {
    if (++num_steps_ > kMostSteps) throw TooMuch();
    const int count = count_at(tuple);
    std::vector<int> next;
    for (size_t i = 0; i < rules_.size(); ++i) {
      next.push_back(rules_[i].step((*tuples_[tuple])[i], code_class));
      if (rules_[i].is_dead(next.back())) return;
    }
    next.push_back(std::min(count + 1, limits_.min));
    next.push_back(0);
    const auto to = static_cast<size_t>(number(next));
    std::vector<CodeRange>& ranges = edges_[{tuple, to}];
    ranges.insert(ranges.end(), alphabet_.codes(code_class).begin(), alphabet_.codes(code_class).end());
  }
  /// From which states a text ends.
  std::vector<bool> live() const {
    std::vector<std::vector<size_t>> before(tuples_.size());
    for (const auto& [edge, ranges] : edges_) before[edge.second].push_back(edge.first);
    std::vector<bool> is_live = ends_;
    std::vector<size_t> rest;
    for (size_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i]) rest.push_back(i);
    }
    while (!rest.empty()) {
      const size_t at = rest.back();
      rest.pop_back();
      for (const size_t from : before[at]) {
        if (is_live[from]) continue;
        is_live[from] = true;
        rest.push_back(from);
      }
    }
    return is_live;
  }

  std::vector<Subsets>& rules_;
  const Alphabet& alphabet_;
  const TextLimits& limits_;
  size_t& num_steps_;
  std::map<std::vector<int>, int> numbers_;
  std::vector<const std::vector<int>*> tuples_;
  std::vector<bool> ends_;
  std::map<std::pair<size_t, size_t>, std::vector<CodeRange>> edges_;
};

}  // namespace

TextRule found_somewhere(Expression expression, bool is_negated) {
  const Expression anything = repeat(codes({{0, kMaxCode}}), 0);
  std::vector<Expression> parts = {anything, std::move(expression), anything};
  return {sequence(std::move(parts)), is_negated};
}

std::optional<Expression> text_graph(const std::vector<TextRule>& rules, const TextLimits& limits,
                                     const CodeSet& characters, Expression (*written)(const CodeSet& set),
                                     const std::function<void(size_t)>& spend) {
  size_t num_steps = 0;
  std::optional<Expression> made;
  try {
    std::vector<Nfa> automata;
    for (const TextRule& rule : rules) automata.emplace_back(rule);
    const Alphabet alphabet(automata, characters);
    std::vector<Subsets> subsets;
    for (size_t i = 0; i < automata.size(); ++i) subsets.emplace_back(automata[i], i, alphabet, num_steps);
    Product product(subsets, alphabet, limits, num_steps);
    product.run();
    made = product.expression(written);
  } catch (const TooMuch&) {
  }
  spend(num_steps / kStepsOfSchemas);
  return made;
}

bool is_text_of(const TextRule& rule, std::u32string_view text, const std::function<void(size_t)>& spend) {
  try {
    Nfa nfa(rule);
    spend(nfa.num_steps());
    Nfa::Set set = nfa.start();
    for (const char32_t code : text) {
      spend((nfa.num_steps() + set.size()) / 8);
      set = nfa.step(set, [&](size_t label) {
        return !intersection(*nfa.labels()[label], {{code, code}}).empty();
      });
    }
    const bool is_one = nfa.accepts(set, text.empty());
    spend(nfa.num_asserted() / 8);
    return is_one;
  } catch (const TooMuch&) {
    throw Error(ExitCode::kOutOfMemory, "pattern: expected one of fewer states, got too many");
  }
}

}  // namespace soliton::constrain
