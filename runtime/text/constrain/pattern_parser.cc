// The reading of patterns.
#include <array>
#include <optional>
#include <utility>

#include "runtime/text/constrain/characters.h"
#include "runtime/text/constrain/code_classes.h"
#include "runtime/text/constrain/string_pattern.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::constrain {
namespace {

const CodeSet kDigits = {{'0', '9'}};
const CodeSet kLetters = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};

bool contains(const CodeSet& set, char32_t code) {
  return !intersection(set, {{code, code}}).empty();
}

Dialects opposite(Dialects dialects) {
  return dialects == Dialects::kAll ? Dialects::kAny : Dialects::kAll;
}

class PatternParser {
 public:
  PatternParser(std::string_view pattern, std::string_view place, Dialects dialects)
      : pattern_(pattern), place_(place), dialects_(dialects) {}

  TextPattern run() {
    TextPattern found;
    read_ahead(found);
    found.expression = read_choice(0);
    if (peek() != kEndOfText) throw unexpected("an alternative or the end");
    if (found.ahead.empty()) return found;
    if (has_alternatives_) throw unsupported("an assertion (? beside an alternative");
    found.expression = sequence({{.kind = Expression::kStart}, std::move(found.expression)});
    return found;
  }

 private:
  char32_t peek() const {
    return position_ < pattern_.size() ? tokenization::first_character(pattern_.substr(position_)).code
                                       : kEndOfText;
  }
  char32_t take() {
    if (position_ >= pattern_.size()) throw unexpected("a character");
    const tokenization::Character character = tokenization::first_character(pattern_.substr(position_));
    position_ += character.length;
    return character.code;
  }
  bool take(char c) {
    if (peek() != static_cast<char32_t>(c)) return false;
    ++position_;
    return true;
  }

  Error error(ExitCode code, std::string_view message) const {
    return Error(code,
                 fmt::format("{}: {}, at byte {} of {}", place_, message, position_, in_quotes(pattern_)));
  }
  Error unexpected(std::string_view expected) const {
    const std::string got =
        position_ < pattern_.size() ? in_quotes(pattern_.substr(position_, 1)) : std::string("the end");
    return error(ExitCode::kBadFile, fmt::format("expected {}, got {}", expected, got));
  }
  Error unsupported(std::string_view what) const {
    return error(ExitCode::kMismatch, fmt::format("{} is not supported", what));
  }

  /// Assertions behind ^, of which no more is left.
  void read_ahead(TextPattern& found) {
    const auto is_next = [this] {
      return pattern_.substr(position_).starts_with("(?=") || pattern_.substr(position_).starts_with("(?!");
    };
    if (peek() == '^') {
      ++position_;
      if (!is_next()) --position_;
    }
    while (position_ > 0 && is_next()) {
      const bool is_negated = pattern_[position_ + 2] == '!';
      position_ += 3;
      const Dialects outside = dialects_;
      if (is_negated) dialects_ = opposite(outside);
      Expression inside = read_choice(1);
      dialects_ = outside;
      if (!take(')')) throw unexpected("a )");
      found.ahead.push_back({sequence({{.kind = Expression::kStart}, std::move(inside)}), is_negated});
    }
    has_alternatives_ = false;
  }

  Expression read_choice(int depth) {
    if (depth > kMaxNesting)
      throw error(ExitCode::kOutOfMemory,
                  fmt::format("expected at most {} groups inside one another, got more", kMaxNesting));
    std::vector<Expression> alternatives;
    do {
      alternatives.push_back(read_sequence(depth));
    } while (take('|'));
    has_alternatives_ = has_alternatives_ || (depth == 0 && alternatives.size() > 1);
    return choice(std::move(alternatives));
  }

  Expression read_sequence(int depth) {
    std::vector<Expression> parts;
    for (;;) {
      const char32_t c = peek();
      if (c == kEndOfText || c == '|' || (c == ')' && depth > 0)) return sequence(std::move(parts));
      if (c == '^' || c == '$') {
        parts.push_back({.kind = c == '^' ? Expression::kStart : Expression::kEnd});
        take();
        continue;
      }
      Expression part = read_part(depth);
      read_repetition(part);
      parts.push_back(std::move(part));
    }
  }

  Expression read_part(int depth) {
    const char32_t c = peek();
    switch (c) {
      case '(':
        return read_group(depth);
      case '[':
        return codes(read_class());
      case '.':
        take();
        return codes(taken(line_codes(), false));
      case '*':
      case '+':
      case '?':
      case ')':
        throw unexpected("something to repeat or an escape");
      case '\\':
        return codes(read_escape());
      default:
        take();
        return codes({{c, c}});
    }
  }

  Expression read_group(int depth) {
    take();
    if (take('?') && !take(':')) {
      const bool is_named = pattern_.substr(position_).starts_with("<") &&
                            !pattern_.substr(position_).starts_with("<=") &&
                            !pattern_.substr(position_).starts_with("<!");
      const size_t end = pattern_.find('>', position_);
      if (!is_named || end == std::string_view::npos) throw unsupported("a group of the kind (?");
      position_ = end + 1;
    }
    Expression inside = read_choice(depth + 1);
    if (!take(')')) throw unexpected("a )");
    return inside;
  }

  void read_repetition(Expression& part) {
    if (take('*')) {
      part = repeat(std::move(part), 0);
    } else if (take('+')) {
      part = repeat(std::move(part), 1);
    } else if (take('?')) {
      part = optional(std::move(part));
    } else if (repeats_by_number()) {
      take();
      const int min = read_count();
      int max = min;
      if (take(',')) max = peek() == '}' ? -1 : read_count();
      if (!take('}')) throw unexpected("a }");
      if (max >= 0 && max < min)
        throw error(ExitCode::kBadFile, "expected bounds that ascend, got a lower second one");
      part = repeat(std::move(part), min, max);
    } else {
      return;
    }
    take('?');  // whether it is the shortest match makes no difference here
    if (peek() == '*' || peek() == '+' || peek() == '?' || repeats_by_number())
      throw unexpected("one repetition");
  }

  /// Else a brace stands for itself.
  bool repeats_by_number() const {
    return peek() == '{' && position_ + 1 < pattern_.size() &&
           contains(kDigits, static_cast<unsigned char>(pattern_[position_ + 1]));
  }

  int read_count() {
    int count = 0;
    if (!contains(kDigits, peek())) throw unexpected("a number");
    while (contains(kDigits, peek())) {
      count = count * 10 + static_cast<int>(take() - '0');
      if (count > kMaxRepetitions) {
        throw error(ExitCode::kOutOfMemory,
                    fmt::format("expected at most {} repetitions, got more", kMaxRepetitions));
      }
    }
    return count;
  }

  /// A class, or all that is not in it. What is to be left out is taken as other dialects may have it.
  CodeSet taken(const CodeClass& known, bool is_negated) const {
    const bool is_least = (dialects_ == Dialects::kAll) != is_negated;
    const CodeSet& set = is_least ? known.least : known.most;
    return is_negated ? complement(set) : set;
  }

  CodeSet read_class() {
    take();
    const bool is_negated = take('^');
    const Dialects outside = dialects_;
    if (is_negated) dialects_ = opposite(outside);
    std::vector<CodeRange> ranges;
    std::string kinds;  // letters of escapes
    while (!take(']')) {
      if (pattern_.substr(position_).starts_with('\\') && position_ + 1 < pattern_.size())
        kinds += pattern_[position_ + 1];
      const CodeSet first = read_class_item();
      if (peek() != '-' || pattern_.substr(position_).starts_with("-]")) {
        ranges.insert(ranges.end(), first.begin(), first.end());
        continue;
      }
      take();
      const CodeSet last = read_class_item();
      const auto is_one = [](const CodeSet& set) { return set.size() == 1 && set[0].first == set[0].last; };
      if (is_one(first) && is_one(last) && first[0].first <= last[0].first) {
        ranges.push_back({first[0].first, last[0].first});
      } else if (is_one(first) && is_one(last)) {
        throw error(ExitCode::kBadFile, "expected a range that ascends, got another one");
      } else {  // of a class and something else, as [\\w-.]
        ranges.insert(ranges.end(), first.begin(), first.end());
        ranges.push_back({'-', '-'});
        ranges.insert(ranges.end(), last.begin(), last.end());
      }
    }
    dialects_ = outside;
    // Whatever a kind has, it and what it has not are everything.
    for (const auto& [kind, rest] : {std::pair('s', 'S'), std::pair('w', 'W'), std::pair('d', 'D')}) {
      if (kinds.find(kind) != std::string::npos && kinds.find(rest) != std::string::npos)
        ranges.push_back({0, kMaxCode});
    }
    CodeSet set = code_set(std::move(ranges));
    return is_negated ? complement(set) : set;
  }

  CodeSet read_class_item() {
    if (peek() == '\\') return read_escape(true);
    const char32_t c = take();
    return {{c, c}};
  }

  CodeSet read_escape(bool in_class = false) {
    take();
    const char32_t c = take();
    switch (c) {
      case 'd':
      case 'D':
        return taken(digit_codes(), c == 'D');
      case 'w':
      case 'W':
        return taken(word_codes(), c == 'W');
      case 's':
      case 'S':
        return taken(space_codes(), c == 'S');
      case 'p':
      case 'P':
        return read_category(c == 'P');
      case 'n':
        return {{'\n', '\n'}};
      case 't':
        return {{'\t', '\t'}};
      case 'r':
        return {{'\r', '\r'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      case 'x':
        return read_hex(2);
      case 'u':
        return take('{') ? read_long_hex() : read_hex(4);
      case 'c':
        return read_control();
      case '0':
        if (!contains(kDigits, peek())) return {{0, 0}};
        break;
      default:
        break;
    }
    const bool is_letter = contains(kLetters, c);
    if (is_letter && !(in_class && c == 'b')) throw unsupported(fmt::format("\\{}", static_cast<char>(c)));
    if (is_letter) return {{'\b', '\b'}};
    return {{c, c}};
  }

  CodeSet read_category(bool is_negated) {
    const size_t end = pattern_.find('}', position_);
    if (!take('{') || end == std::string_view::npos) throw unexpected("a category in braces");
    const std::string_view name = pattern_.substr(position_, end - position_);
    const std::optional<CodeClass> known = category_codes(name);
    if (!known) throw unsupported(fmt::format("\\p of {}", in_quotes(name)));
    position_ = end + 1;
    return taken(*known, is_negated);
  }

  CodeSet read_control() {
    const char32_t letter = take() | 0x20;
    if (letter < 'a' || letter > 'z') throw unsupported("\\c without a letter");
    return {{letter & 0x1f, letter & 0x1f}};
  }

  CodeSet read_long_hex() {
    char32_t code = 0;
    for (int digit = hex_digit(peek()); digit >= 0 && code <= kMaxCode; digit = hex_digit(peek())) {
      take();
      code = code * 16 + static_cast<char32_t>(digit);
    }
    if (!take('}') || code > kMaxCode) throw unexpected("a hexadecimal number and }");
    return {{code, code}};
  }

  CodeSet read_hex(int num_digits) {
    char32_t code = 0;
    for (int i = 0; i < num_digits; ++i) {
      const int digit = hex_digit(peek());
      if (digit < 0) throw unexpected("a hexadecimal digit");
      take();
      code = code * 16 + static_cast<char32_t>(digit);
    }
    if (code >= 0xd800 && code <= 0xdfff) code = read_pair(code);
    return {{code, code}};
  }

  /// What stands behind the first half of a surrogate pair.
  char32_t read_pair(char32_t first) {
    char32_t second = 0;
    const std::string_view rest = pattern_.substr(position_);
    const auto digit = [&](size_t i) { return hex_digit(static_cast<unsigned char>(rest[i])); };
    if (first < 0xdc00 && rest.size() >= 6 && rest.starts_with("\\u")) {
      for (size_t i = 2; i < 6 && digit(i) >= 0; ++i) second = second * 16 + static_cast<char32_t>(digit(i));
    }
    if (second < 0xdc00 || second > 0xdfff) throw unsupported("half of a surrogate pair");
    position_ += 6;
    return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
  }

  std::string_view pattern_;
  std::string_view place_;
  Dialects dialects_;
  size_t position_ = 0;
  bool has_alternatives_ = false;  // outside of groups
};

}  // namespace

TextPattern parse_text_pattern(std::string_view pattern, std::string_view place, Dialects dialects) {
  return PatternParser(pattern, place, dialects).run();
}

}  // namespace soliton::constrain
