// Patterns of tokenizer.json: a literal or a regular expression. PCRE2 does the matching; what the
// reference's engine (Oniguruma with Ruby's syntax) reads differently is translated or refused by name.
// Letters and digits are those of PCRE2's Unicode (14 in PCRE2 10.42), the reference's those of Unicode 16.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/strict_json.h"
#include "runtime/text/tokenizer/text_limit.h"

namespace soliton::tokenization {

/// A match, or what lies between two; bytes.
struct Match {
  size_t begin;
  size_t end;
  bool matched;
};

/// Cuts text into its matches and what lies between them. Immutable, shared by copies; any number of threads
/// may use one.
class Pattern {
 public:
  /// Reads {"String": ...} or {"Regex": ...}. Throws kBadFile on a malformed pattern, kMismatch on one whose
  /// meaning differs between the engines.
  static Pattern read(const JsonView& pattern);
  /// `where` is what a bad pattern is reported as.
  static Pattern regex(std::string_view pattern, const JsonView& where);
  static Pattern literal(std::string text);

  /// Appends matches of valid UTF-8 text from left to right, with what lies between, so that they cover it.
  /// A match of nothing is one too, except where the last match ended. Throws kOutOfMemory if the text
  /// defeats the pattern's limit on backtracking, or comes near at more places than the limit allows.
  void find(std::string_view text, TextLimit& limit, std::vector<Match>& matches) const;

  /// `text` with every match replaced. Throws kOutOfMemory beyond the limit.
  std::string replace(std::string_view text, std::string_view content, TextLimit& limit) const;

  /// Whether every match is one character wherever the text is cut.
  bool is_one_character() const;

 private:
  struct Code;
  Pattern(std::string literal, std::shared_ptr<const Code> code);

  /// The first match at or after `from`; false if none.
  bool search(std::string_view text, size_t from, TextLimit& limit, Match& match) const;
  bool search_slowly(std::string_view text, size_t from, TextLimit& limit, Match& match) const;

  std::string literal_;
  std::shared_ptr<const Code> code_;  // null: the literal, which is not empty
};

}  // namespace soliton::tokenization
