#include "runtime/text/constrain/text_until.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/text/tokenizer/utf8.h"

namespace soliton::constrain {
namespace {

using Codes = std::u32string;

/// How much of the mark the text ends with that consists of its first `length` characters and another one.
size_t matched_behind(const Codes& mark, size_t length, char32_t next) {
  const Codes text = mark.substr(0, length) + next;
  size_t matched = std::min(text.size(), mark.size());
  while (matched > 0 && text.compare(text.size() - matched, matched, mark, 0, matched) != 0) --matched;
  return matched;
}

Expression then(Expression first, int next) {
  std::vector<Expression> parts;
  parts.push_back(std::move(first));
  parts.push_back(rule(next));
  return sequence(std::move(parts));
}

}  // namespace

// A rule for each number of characters of the mark that the text ends with (Knuth, Morris, Pratt).
int text_until(Grammar& grammar, std::string_view mark) {
  const CodeSet any = {{0, kMaxCode}};
  if (tokenization::utf8_step(mark).kind != tokenization::Utf8Step::kValid)
    return grammar.add("text", sequence({repeat(codes(any), 0), text(mark)}));
  Codes characters;
  while (!mark.empty()) {
    const tokenization::Character character = tokenization::first_character(mark);
    characters.push_back(character.code);
    mark.remove_prefix(character.length);
  }
  std::vector<CodeRange> of_mark;
  for (const char32_t code : characters) of_mark.push_back({code, code});
  const CodeSet known = code_set(std::move(of_mark));
  const auto first = static_cast<int>(grammar.rules.size());
  for (size_t i = 0; i < characters.size(); ++i) grammar.add("text");
  for (size_t i = 0; i < characters.size(); ++i) {
    std::vector<Expression> alternatives = {then(codes(complement(known)), first)};
    for (const CodeRange& range : known) {
      for (char32_t code = range.first; code <= range.last; ++code) {
        const size_t matched = matched_behind(characters, i, code);
        Expression written = codes({{code, code}});
        alternatives.push_back(matched == characters.size()
                                   ? std::move(written)
                                   : then(std::move(written), first + static_cast<int>(matched)));
      }
    }
    grammar.rules[static_cast<size_t>(first) + i].expression = choice(std::move(alternatives));
  }
  return first;
}

}  // namespace soliton::constrain
