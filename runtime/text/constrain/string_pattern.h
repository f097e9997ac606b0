// Regular expressions of JSON schemas (ECMA-262's) as grammars of what stands between a JSON string's quotes.
#pragma once

#include <string>
#include <string_view>

#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

/// One character of a set, as it is written in a JSON string; control characters only if there is a short escape.
Expression in_json(const CodeSet& set);

/// Texts in which the pattern is found: anywhere, but for ^ and $ at the ends of its alternatives. Taken are classes, groups,
/// |, * + ? {m,n} and escapes; \D, \W, \S and . mean ASCII characters, so that dialects agree. `place` is what errors
/// call it. Throws Error: kMismatch for what else there is, naming it; kBadFile if it is malformed, kOutOfMemory
/// above kMaxNesting or kMaxRepetitions.
Expression pattern_grammar(std::string_view pattern, std::string_view place);

/// Texts that are all of what a pattern says, as they stand. `name` is what errors call it. Throws the same, and kOutOfMemory
/// above kMaxSourceBytes.
Grammar parse_pattern(std::string_view pattern, const std::string& name);

}  // namespace soliton::constrain
