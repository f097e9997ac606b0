#include "runtime/text/constrain/schema_patterns.h"

#include <algorithm>

#include "runtime/text/tokenizer/utf8.h"

namespace soliton::constrain {
std::u32string codes_of(std::string_view text) {
  std::u32string codes;
  while (!text.empty()) {
    const tokenization::Character character = tokenization::first_character(text);
    codes.push_back(character.code);
    text.remove_prefix(character.length);
  }
  return codes;
}

const Expression& SchemaPatterns::read(const std::string& pattern, Dialects dialects,
                                       const std::string& place) {
  const auto known = known_.find({pattern, dialects});
  if (known != known_.end()) return known->second;
  spend_(pattern.size());
  return known_.emplace(std::pair(pattern, dialects), parse_text_pattern(pattern, place, dialects))
      .first->second;
}

TextRule SchemaPatterns::rule(const std::string& pattern, bool is_negated, const std::string& place) {
  spend_(pattern.size());
  return found_somewhere(read(pattern, is_negated ? Dialects::kAny : Dialects::kAll, place), is_negated);
}

Fit SchemaPatterns::fits(const std::string& pattern, std::string_view text, const std::string& place) {
  const std::u32string codes = codes_of(text);
  const auto is_found = [&](Dialects dialects) {
    return is_text_of(found_somewhere(read(pattern, dialects, place)), codes, spend_);
  };
  const bool in_all = is_found(Dialects::kAll);
  const bool in_any = is_found(Dialects::kAny);
  // What an assertion forbids is taken as any dialect has it where all are asked: the other way round.
  if (in_all == in_any) return in_all ? Fit::kYes : Fit::kNo;
  return Fit::kMaybe;
}

}  // namespace soliton::constrain
