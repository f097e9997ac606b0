#include "runtime/text/constrain/json_rules.h"

#include <algorithm>
#include <string>
#include <utility>

namespace soliton::constrain {
namespace {

constexpr int kMaxDigits = 15;         // before the point, and behind it
constexpr int kMaxExponentDigits = 2;  // no number is infinite
constexpr int kMaxIndentSpaces = 32;
constexpr int kMaxIndentTabs = 16;

Expression digit(char first = '0', char last = '9') {
  return codes({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
}

/// Digits as many as both have, between them.
Expression digits_between(std::string_view low, std::string_view high) {
  if (low.empty()) return {};
  const std::string_view low_rest = low.substr(1);
  const std::string_view high_rest = high.substr(1);
  const auto rest = static_cast<int>(low_rest.size());
  if (low[0] == high[0]) return sequence({text(low.substr(0, 1)), digits_between(low_rest, high_rest)});
  std::vector<Expression> alternatives;
  char first = low[0];
  char last = high[0];
  if (low_rest.find_first_not_of('0') != std::string_view::npos) {
    alternatives.push_back(
        sequence({text(low.substr(0, 1)), digits_between(low_rest, std::string(low_rest.size(), '9'))}));
    ++first;
  }
  if (high_rest.find_first_not_of('9') != std::string_view::npos) {
    alternatives.push_back(
        sequence({text(high.substr(0, 1)), digits_between(std::string(high_rest.size(), '0'), high_rest)}));
    --last;
  }
  if (first <= last) alternatives.push_back(sequence({digit(first, last), repeat(digit(), rest, rest)}));
  return choice(std::move(alternatives));
}

/// Behind the point, nothing if there is no digit.
Expression fraction_of(int most_digits) {
  return most_digits > 0 ? sequence({text("."), repeat(digit(), 1, most_digits)}) : choice({});
}
/// The same of more than 0.
Expression fraction_above_nothing(int most_digits) {
  if (most_digits <= 0) return choice({});
  return sequence({text("."), repeat(digit(), 0, std::max(0, most_digits - 3)), digit('1', '9'),
                   repeat(digit(), 0, std::min(2, most_digits - 1))});
}

/// Numbers from low, at least 0, to high, with fractions. Beside open bounds they have at most as many digits as a double tells
/// apart: whoever reads them as such must not read the bound.
Expression real_magnitudes_between(Bound low, Bound high) {
  const auto digits_left = [](int64_t whole) {
    return kMaxDigits - static_cast<int>(std::to_string(whole).size());
  };
  std::vector<Expression> alternatives;
  alternatives.push_back(
      magnitudes_between(low.value + (low.is_open ? 1 : 0), high.value - (high.is_open ? 1 : 0)));
  int64_t next = low.value;
  if (low.is_open && low.value < high.value) {
    alternatives.push_back(
        sequence({text(std::to_string(low.value)), fraction_above_nothing(digits_left(low.value))}));
    ++next;
  }
  int64_t last = high.value - 1;
  if (high.is_open && next <= last) {
    alternatives.push_back(sequence({text(std::to_string(last)), fraction_of(digits_left(last))}));
    --last;
  }
  if (next <= last)
    alternatives.push_back(sequence({magnitudes_between(next, last), fraction_of(kMaxDigits)}));
  return choice(std::move(alternatives));
}

}  // namespace

Expression magnitudes_between(int64_t low, int64_t high) {
  std::vector<Expression> alternatives;
  for (int64_t first = 0, last = 9; first <= high; first = last + 1, last = last * 10 + 9) {
    const int64_t from = std::max(low, first);
    const int64_t to = std::min(high, last);
    if (from <= to) alternatives.push_back(digits_between(std::to_string(from), std::to_string(to)));
  }
  return choice(std::move(alternatives));
}

Expression integers_between(int64_t low, int64_t high) {
  std::vector<Expression> alternatives;
  if (high >= 0) alternatives.push_back(magnitudes_between(std::max<int64_t>(low, 0), high));
  if (low < 0)
    alternatives.push_back(sequence({text("-"), magnitudes_between(std::max<int64_t>(-high, 1), -low)}));
  return choice(std::move(alternatives));
}

Expression numbers_between(Bound low, Bound high) {
  std::vector<Expression> alternatives;
  if (high.value >= 0) {
    const Bound least = low.value >= 0 ? low : Bound{0};
    alternatives.push_back(real_magnitudes_between(least, high));
  }
  if (low.value < 0) {
    const Bound least = high.value < 0 ? Bound{-high.value, high.is_open} : Bound{0, true};
    alternatives.push_back(sequence({text("-"), real_magnitudes_between(least, {-low.value, low.is_open})}));
  }
  return choice(std::move(alternatives));
}

// ---- Rules

Expression JsonRules::once(std::optional<int>& index, const char* name, Expression (JsonRules::*make)()) {
  if (!index) {
    index = grammar_.add(name);
    Expression made = (this->*make)();  // may add rules, which ask for this one
    grammar_.rules[static_cast<size_t>(*index)].expression = std::move(made);
  }
  return rule(*index);
}

Expression JsonRules::space() {
  return once(space_, "JSON space", &JsonRules::make_space);
}
Expression JsonRules::value() {
  return once(value_, "JSON value", &JsonRules::make_value);
}
Expression JsonRules::object() {
  return once(object_, "JSON object", &JsonRules::make_object);
}
Expression JsonRules::array() {
  return once(array_, "JSON array", &JsonRules::make_array);
}
Expression JsonRules::string() {
  return once(string_, "JSON string", &JsonRules::make_string);
}
Expression JsonRules::string(Expression content, int min, int max) {
  Expression rest = sequence({std::move(content), text("\"")});
  if (min > 0 || max >= 0) rest = counted(grammar_.add("text", std::move(rest)), min, max);
  return sequence({text("\""), std::move(rest)});
}

/// Behind its first quote.
int JsonRules::rest_of_string() {
  return once(rest_of_string_, "JSON string", &JsonRules::make_rest_of_string).rule;
}
Expression JsonRules::string(int min, int max) {
  return sequence({text("\""), counted(rest_of_string(), min, max)});
}
Expression JsonRules::number() {
  return once(number_, "JSON number", &JsonRules::make_number);
}
Expression JsonRules::integer() {
  return once(integer_, "JSON integer", &JsonRules::make_integer);
}

Expression JsonRules::boolean() const {
  return choice({text("true"), text("false")});
}

Expression JsonRules::make_space() {
  const Expression indent =
      choice({repeat(text(" "), 0, kMaxIndentSpaces), repeat(text("\t"), 1, kMaxIndentTabs)});
  return choice({text(""), text(" "), sequence({text("\n"), indent})});
}

Expression JsonRules::make_value() {
  return choice({object(), array(), string(), number(), boolean(), text("null")});
}

Expression in_brackets(JsonRules& rules, const char* open, Expression filled, bool may_be_empty,
                       const char* close) {
  Expression inside = sequence({std::move(filled), rules.space()});
  if (may_be_empty) inside = optional(std::move(inside));
  return sequence({text(open), rules.space(), std::move(inside), text(close)});
}

Expression JsonRules::make_object() {
  const Expression member = sequence({string(), text(":"), space(), value()});
  Expression members = sequence({member, repeat(sequence({text(","), space(), member}), 0)});
  return in_brackets(*this, "{", std::move(members), true, "}");
}

Expression JsonRules::make_array() {
  Expression values = sequence({value(), repeat(sequence({text(","), space(), value()}), 0)});
  return in_brackets(*this, "[", std::move(values), true, "]");
}

CodeSet JsonRules::plain_characters() {
  return complement(code_set({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}));
}

/// No halves of surrogate pairs: what they stand for needs no escape.
Expression JsonRules::character() {
  const CodeSet hex = code_set({{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
  const CodeSet hex_but_d = code_set({{'0', '9'}, {'a', 'c'}, {'e', 'f'}, {'A', 'C'}, {'E', 'F'}});
  const Expression code =
      choice({sequence({codes(hex_but_d), repeat(codes(hex), 3, 3)}),
              sequence({codes({{'D', 'D'}, {'d', 'd'}}), digit('0', '7'), repeat(codes(hex), 2, 2)})});
  const Expression escape = choice({codes(code_set({{'"', '"'},
                                                    {'\\', '\\'},
                                                    {'/', '/'},
                                                    {'b', 'b'},
                                                    {'f', 'f'},
                                                    {'n', 'n'},
                                                    {'r', 'r'},
                                                    {'t', 't'}})),
                                    sequence({text("u"), code})});
  Expression plain = codes(plain_characters());
  Expression escaped = text("\\");
  plain.counts = escaped.counts = true;
  return choice({std::move(plain), sequence({std::move(escaped), escape})});
}

Expression JsonRules::make_string() {
  return sequence({text("\""), repeat(character(), 0), text("\"")});
}

Expression JsonRules::make_rest_of_string() {
  return sequence({repeat(character(), 0), text("\"")});
}

Expression JsonRules::make_number() {
  const Expression whole =
      choice({text("0"), sequence({digit('1', '9'), repeat(digit(), 0, kMaxDigits - 1)})});
  const Expression fraction = sequence({text("."), repeat(digit(), 1, kMaxDigits)});
  const Expression exponent =
      sequence({codes({{'E', 'E'}, {'e', 'e'}}), optional(codes({{'+', '+'}, {'-', '-'}})),
                repeat(digit(), 1, kMaxExponentDigits)});
  return sequence({optional(text("-")), whole, optional(fraction), optional(exponent)});
}

Expression JsonRules::make_integer() {
  return integers_between(-kMaxJsonInteger, kMaxJsonInteger);
}

}  // namespace soliton::constrain
