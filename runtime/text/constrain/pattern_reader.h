// The characters of a pattern: classes and escapes.
#pragma once

#include <string_view>

#include "runtime/text/constrain/code_classes.h"
#include "runtime/text/constrain/string_pattern.h"

namespace soliton::constrain {

constexpr Dialects opposite(Dialects dialects) {
  return dialects == Dialects::kAll ? Dialects::kAny : Dialects::kAll;
}

/// Reads a pattern from its beginning on. Throws what parse_text_pattern() does.
class PatternReader {
 protected:
  PatternReader(std::string_view pattern, std::string_view place, Dialects dialects)
      : pattern_(pattern), place_(place), dialects_(dialects) {}

  /// kEndOfText behind the last one.
  char32_t peek() const;
  char32_t take();
  /// Whether it is next; then it is taken.
  bool take(char c);
  Error error(ExitCode code, std::string_view message) const;
  Error unexpected(std::string_view expected) const;
  Error unsupported(std::string_view what) const;
  CodeSet read_class();
  CodeSet read_escape(bool in_class = false);
  /// A class, or all that is not in it. What is to be left out is taken as other dialects may have it.
  CodeSet taken(const CodeClass& known, bool is_negated) const;

  std::string_view pattern_;
  std::string_view place_;
  Dialects dialects_;
  size_t position_ = 0;

 private:
  CodeSet read_class_item();
  CodeSet read_category(bool is_negated);
  CodeSet read_control();
  CodeSet read_long_hex();
  CodeSet read_hex(int num_digits);
  /// What stands behind the first half of a surrogate pair makes a character with it. Half a pair is in no text.
  char32_t read_pair(char32_t first);

  bool joins_pairs_ = true;  // of surrogates
};

}  // namespace soliton::constrain
