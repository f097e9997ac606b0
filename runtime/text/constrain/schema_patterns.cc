#include "runtime/text/constrain/schema_patterns.h"

#include <algorithm>

#include "runtime/text/tokenizer/utf8.h"

namespace soliton::constrain {
namespace {

std::vector<TextRule> rules_of(const TextPattern& pattern) {
  std::vector<TextRule> rules = {found_somewhere(pattern.expression)};
  for (const TextPattern::Ahead& ahead : pattern.ahead)
    rules.push_back(found_somewhere(ahead.expression, ahead.is_negated));
  return rules;
}

}  // namespace

std::u32string codes_of(std::string_view text) {
  std::u32string codes;
  while (!text.empty()) {
    const tokenization::Character character = tokenization::first_character(text);
    codes.push_back(character.code);
    text.remove_prefix(character.length);
  }
  return codes;
}

const TextPattern& SchemaPatterns::read(const std::string& pattern, Dialects dialects,
                                        const std::string& place) {
  const auto known = known_.find({pattern, dialects});
  if (known != known_.end()) return known->second;
  spend_(pattern.size());
  return known_.emplace(std::pair(pattern, dialects), parse_text_pattern(pattern, place, dialects))
      .first->second;
}

std::vector<TextRule> SchemaPatterns::rules(const std::string& pattern, bool is_negated,
                                            const std::string& place) {
  const TextPattern& found = read(pattern, is_negated ? Dialects::kAny : Dialects::kAll, place);
  spend_(pattern.size());
  if (!is_negated) return rules_of(found);
  if (!found.ahead.empty())
    throw file_error(ExitCode::kMismatch, place,
                     "a pattern with (? that is not to be found is not supported");
  return {found_somewhere(found.expression, true)};
}

Fit SchemaPatterns::fits(const std::string& pattern, std::string_view text, const std::string& place) {
  const std::u32string codes = codes_of(text);
  const auto fits_all = [&](Dialects dialects) {
    const std::vector<TextRule> rules = rules_of(read(pattern, dialects, place));
    return std::all_of(rules.begin(), rules.end(),
                       [&](const TextRule& rule) { return is_text_of(rule, codes, spend_); });
  };
  const bool in_all = fits_all(Dialects::kAll);
  const bool in_any = fits_all(Dialects::kAny);
  // What an assertion forbids is taken as any dialect has it where all are asked: the other way round.
  if (in_all == in_any) return in_all ? Fit::kYes : Fit::kNo;
  return Fit::kMaybe;
}

}  // namespace soliton::constrain
