// Texts that fit several patterns at once, or do not fit some, and are of a given length: as the states of one automaton over
// characters.
//
// Each pattern is a nondeterministic automaton, whose sets of states are found as they are reached (subset construction);
// what is made are the reachable tuples of one set for each pattern and a count of characters. States from which no text
// ends are left out.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

/// What texts have to be: all of an expression over characters (with what only patterns have, without rules), or not.
struct TextRule {
  Expression expression;
  bool is_negated = false;
};

/// A rule for texts in which something is found.
TextRule found_somewhere(Expression expression, bool is_negated = false);

struct TextLimits {
  int min = 0;  // characters
  size_t most_states = 4000;
};

/// An expression of the texts of `characters` that follow all rules, each character written by `written`; a choice of nothing
/// if there are none. Nothing is returned if it has more states than allowed, or costs too much work. `spend` is told about
/// the steps.
std::optional<Expression> text_graph(const std::vector<TextRule>& rules, const TextLimits& limits,
                                     const CodeSet& characters, Expression (*written)(const CodeSet& set),
                                     const std::function<void(size_t)>& spend);

/// Whether a text is one of the rule's.
bool is_text_of(const TextRule& rule, std::u32string_view text, const std::function<void(size_t)>& spend);

}  // namespace soliton::constrain
