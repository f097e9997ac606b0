// What schemas say of strings, as expressions.
#pragma once

#include <string>

#include "runtime/text/constrain/json_rules.h"
#include "runtime/text/constrain/schema_document.h"

namespace soliton::constrain {

/// Of ~patterns. Throws kBadFile if it is no text.
const std::string& pattern_text(const SchemaDocument& document, const Schema& pattern,
                                const std::string& path);
/// Whether the text is one that is written of the format.
bool is_of_format(const SchemaDocument& document, const Schema& format, std::string_view text);

/// Texts that a flat schema takes, in quotes. Throws Error, naming path and keyword, as json_schema_grammar() does, and
/// NoValue.
Expression string_of(const SchemaDocument& document, JsonRules& json, const Schema& schema,
                     const std::string& path);

/// What a text has to be, beside what a schema says of it.
struct StringRules {
  std::vector<TextRule> rules;
  std::string keyword;  // that errors name
};
/// Adds what a flat schema says of texts; returns its minLength and maxLength. Throws NoValue if it takes no text, and
/// unsupported() where it says what rules do not.
std::pair<int, int> string_rules(const SchemaDocument& document, const Schema& schema,
                                 const std::string& path, StringRules& rules);
/// Texts in quotes that follow all rules and are `min` to `max` characters long (negative: no bound).
Expression text_of(const SchemaDocument& document, JsonRules& json, const StringRules& rules, int min,
                   int max, const std::string& path);
/// A text that is none of these.
TextRule none_of(const Schema& texts);

}  // namespace soliton::constrain
