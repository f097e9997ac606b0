// Regular expressions of JSON schemas (ECMA-262's) as grammars of what stands between a JSON string's quotes.
#pragma once

#include <optional>
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

inline constexpr int kMaxPatternRepetitions = 100'000;

/// What a text is searched for: code points, anchors and assertions. Taken are classes, groups, |, * + ? {m,n}, anchors,
/// \b, escapes, and assertions (?= (?! (?<= (?<!, of which none that looks back stands in another one. `place` is what errors
/// call the pattern. Throws Error: kMismatch for what else there is, naming it; kBadFile if it is malformed, kOutOfMemory
/// above kMaxNesting or kMaxPatternRepetitions.
Expression parse_text_pattern(std::string_view pattern, std::string_view place,
                              Dialects dialects = Dialects::kAll);

/// Whether it has no assertions, and anchors only at the ends of alternatives outside of groups.
bool is_plain(const Expression& pattern);
/// Whether any text of a plain pattern can have one more character at its end.
bool is_open_ended(const Expression& pattern);

/// A pattern of any length, and how many characters its texts have: negative: no bound.
struct CountedPattern {
  Expression pattern;
  int min;
  int max;
};
/// The same pattern, where that takes fewer states: ^ and $, between them one class of characters that is repeated so many
/// times, and parts that are all of one length, as ^[a-z][a-z0-9]{0,62}$.
std::optional<CountedPattern> counted_pattern(const Expression& pattern);

/// Texts in which the pattern is found, in JSON, by as many states as it has characters. Throws Error (kMismatch) if it
/// is not plain.
Expression pattern_grammar(Expression pattern, std::string_view place);

/// Texts that are all of what a pattern says, as they stand. `name` is what errors call it. Throws the same, and kOutOfMemory
/// above kMaxSourceBytes.
Grammar parse_pattern(std::string_view pattern, const std::string& name);

}  // namespace soliton::constrain
