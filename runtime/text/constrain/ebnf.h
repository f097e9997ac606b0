// Grammars as llama.cpp writes them (GBNF): `name ::= ...`, of texts in quotes, [classes] of characters, names, groups, |
// and * + ? {m,n}; # begins a comment. A text is what `root` says.
#pragma once

#include <string_view>

#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

/// `name` is what errors call the text. Throws Error, naming line and column: kBadFile if it is malformed, names a rule
/// that is none or has two of a name; kOutOfMemory above kMaxSourceBytes, kMaxNesting, kMaxRules or kMaxRepetitions.
Grammar parse_ebnf(std::string_view text, std::string_view name);

}  // namespace soliton::constrain
