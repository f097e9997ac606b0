// Regular expressions of JSON schemas (ECMA-262's) as grammars of what stands between a JSON string's quotes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

/// One character of a set, as it is written in a JSON string; control characters only if there is a short escape.
Expression in_json(const CodeSet& set);

/// How dialects are taken that differ in what a class has: `kAll` is what every one of them takes, `kAny` what one does.
/// \d, \w and \s are ASCII's in some, and Unicode's in others.
enum class Dialects { kAll, kAny };

/// What a text is searched for.
struct TextPattern {
  Expression expression;  // of code points, with kStart and kEnd; where it is found somewhere, the text fits
  struct Ahead {
    Expression expression;  // the same
    bool is_negated;
  };
  std::vector<Ahead> ahead = {};  // what else the text has to fit, from its beginning on
};

/// Taken are classes, groups, |, * + ? {m,n}, anchors, escapes, and assertions (?=) and (?!) at the beginning. `place` is
/// what errors call the pattern. Throws Error: kMismatch for what else there is, naming it; kBadFile if it is malformed,
/// kOutOfMemory above kMaxNesting or kMaxRepetitions.
TextPattern parse_text_pattern(std::string_view pattern, std::string_view place,
                               Dialects dialects = Dialects::kAll);

/// Whether it has no assertions, and anchors only at the ends of alternatives outside of groups.
bool is_plain(const TextPattern& pattern);

/// Texts in which the pattern is found, in JSON, by as many states as it has characters. Throws Error (kMismatch) if it
/// is not plain.
Expression pattern_grammar(TextPattern pattern, std::string_view place);

/// Texts that are all of what a pattern says, as they stand. `name` is what errors call it. Throws the same, and kOutOfMemory
/// above kMaxSourceBytes.
Grammar parse_pattern(std::string_view pattern, const std::string& name);

}  // namespace soliton::constrain
