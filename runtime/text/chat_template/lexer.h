// From a template's source to tokens, with the whitespace rules of trim_blocks and lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace soliton::jinja {

struct Token {
  enum Kind {
    kText,      // between tags; raw blocks too
    kOpen,      // {{
    kClose,     // }}
    kOpenTag,   // {%
    kCloseTag,  // %}
    kName,
    kString,  // `text` is what the literal means
    kInteger,
    kFloat,
    kOperator,
    kEnd,
  };

  Kind kind;
  std::string text;  // what is written; digits without "_"
  int line;          // from 1

  /// For messages: what was met.
  std::string describe() const;
};

/// Tokens of `source`, the last one kEnd. `name` is what errors call the template. Throws kBadFile on
/// anything that is no token, and on tags and brackets that do not end.
std::vector<Token> tokenize(std::string_view source, std::string_view name);

}  // namespace soliton::jinja
