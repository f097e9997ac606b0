// The patterns of a schema: read once, and what texts they are found in.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/text/constrain/string_pattern.h"
#include "runtime/text/constrain/text_machine.h"

namespace soliton::constrain {

/// Whether something fits: kMaybe where dialects differ, or it is not decided here.
enum class Fit { kNo, kMaybe, kYes };

constexpr Fit both(Fit a, Fit b) {
  return a < b ? a : b;
}
constexpr Fit opposite(Fit fit) {
  return fit == Fit::kMaybe ? fit : fit == Fit::kYes ? Fit::kNo : Fit::kYes;
}

/// The characters of valid UTF-8.
std::u32string codes_of(std::string_view text);

/// Patterns by what is written of them. For one thread.
class SchemaPatterns {
 public:
  /// `spend` is told the steps that looking takes.
  explicit SchemaPatterns(std::function<void(size_t)> spend) : spend_(std::move(spend)) {}

  /// What parse_text_pattern() makes of it, and throws.
  const Expression& read(const std::string& pattern, Dialects dialects, const std::string& place);
  /// The rule of texts in which the pattern is found, or is not. Of the first, texts are left out that some dialects would
  /// not find it in; so are, of the second, those that some would.
  TextRule rule(const std::string& pattern, bool is_negated, const std::string& place);
  Fit fits(const std::string& pattern, std::string_view text, const std::string& place);

 private:
  std::function<void(size_t)> spend_;
  std::map<std::pair<std::string, Dialects>, Expression> known_;
};

}  // namespace soliton::constrain
