// A context-free grammar of texts: what parsers of grammars and of schemas write, and the automaton is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/error.h"

namespace soliton::constrain {

inline constexpr char32_t kMaxCode = 0x10ffff;
inline constexpr int kMaxNesting = 64;                      // of groups, of schemas in schemas
inline constexpr int kMaxRepetitions = 4096;                // that bounds may say
inline constexpr int kMaxLength = 100'000'000;              // of texts, in characters, that bounds may say
inline constexpr size_t kMaxRules = 4000;                   // of a grammar
inline constexpr size_t kMaxSourceBytes = size_t{1} << 20;  // of a grammar's or a schema's text

/// Unicode code points from first to last, both included.
struct CodeRange {
  char32_t first;
  char32_t last;

  bool operator==(const CodeRange&) const = default;
};

/// Disjoint and ascending.
using CodeSet = std::vector<CodeRange>;

/// Ranges in any order as a set.
CodeSet code_set(std::vector<CodeRange> ranges);
CodeSet complement(const CodeSet& set);
CodeSet intersection(const CodeSet& a, const CodeSet& b);

/// The states of an automaton between which the parts of an expression are read; the first one is where it begins.
struct StateGraph {
  struct Edge {
    int from;
    int to;
  };
  std::vector<Edge> edges;  // one for each part
  std::vector<int> ends;    // states where the text may end
  int num_states = 0;
};

/// A set of byte strings.
struct Expression {
  enum Kind {
    kText,
    kCodes,
    kRule,
    kSequence,
    kChoice,
    kRepeat,
    kGraph,
    kCounted,
    kStart,
    kEnd,
    kAhead,
    kBehind
  };

  Kind kind = kSequence;                         // of nothing: the empty text
  std::string text = {};                         // kText
  CodeSet codes = {};                            // kCodes: one of them, as UTF-8; surrogates have none
  int rule = 0;                                  // kRule, kCounted: which
  std::vector<Expression> parts = {};            // kSequence, kChoice, kGraph; kRepeat has one
  int min = 0;                                   // kRepeat; kCounted: characters
  int max = 0;                                   // the same; negative: no bound
  bool counts = false;                           // kText, kCodes: is a character, within a counted rule
  bool is_negated = false;                       // kAhead, kBehind: it is not there
  std::shared_ptr<const StateGraph> graph = {};  // kGraph
  // Of patterns only are: kStart, kEnd: nothing, where the text begins or ends; kAhead, kBehind: nothing, where what stands
  // there begins or ends with its part.
};

Expression text(std::string_view bytes);
Expression codes(CodeSet set);
Expression rule(int index);
Expression sequence(std::vector<Expression> parts);
/// Of no alternatives: no text at all, not even the empty one.
Expression choice(std::vector<Expression> alternatives);
Expression repeat(Expression part, int min, int max = -1);
Expression optional(Expression part);
/// Texts of a rule that have `min` to `max` of the characters that count (negative: no bound), without states for each number
/// of them. The rule calls no others, and what it reads last is no character and stands nowhere before its end; as many
/// characters as `min` says can always be read before that.
Expression counted(int index, int min, int max);

struct Rule {
  std::string name;
  Expression expression;
  int line = 0;  // from 1, of the text that it was read from; 0: none
};

struct Grammar {
  std::string name;  // what errors call it: a file, a flag or a member of a request
  std::vector<Rule> rules;
  int root = 0;
  size_t max_rules = kMaxRules;  // of those that are made of one text; more where several are put together

  /// Throws kOutOfMemory above max_rules.
  int add(std::string rule_name, Expression expression = {}, int line = 0);
  /// Adds the rules of another grammar, whose root's index here it returns. Throws the same.
  int include(Grammar other);
};

}  // namespace soliton::constrain
