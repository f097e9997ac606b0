#include "runtime/text/constrain/string_pattern.h"

#include <array>
#include <utility>

#include "runtime/text/constrain/characters.h"
#include "runtime/text/constrain/json_rules.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::constrain {
namespace {

const CodeSet kDigits = {{'0', '9'}};
const CodeSet kWords = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CodeSet kSpaces = {{'\t', '\r'}, {' ', ' '}};
const CodeSet kAscii = {{0, 0x7f}};

struct ShortEscape {
  char32_t code;
  const char* written;
};
constexpr std::array<ShortEscape, 7> kShortEscapes = {{{'"', "\\\""},
                                                       {'\\', "\\\\"},
                                                       {'\b', "\\b"},
                                                       {'\f', "\\f"},
                                                       {'\n', "\\n"},
                                                       {'\r', "\\r"},
                                                       {'\t', "\\t"}}};

bool contains(const CodeSet& set, char32_t code) {
  return !intersection(set, {{code, code}}).empty();
}

class PatternParser {
 public:
  /// `is_whole`: a text is all of the pattern, and stands as it is; else it is found in a JSON string.
  PatternParser(std::string_view pattern, std::string_view place, bool is_whole)
      : pattern_(pattern), place_(place), is_whole_(is_whole) {}

  Expression run() {
    std::vector<Expression> alternatives;
    do {
      const bool is_start = take('^');
      std::vector<Expression> parts;
      if (!is_start && !is_whole_) parts.push_back(anything());
      parts.push_back(read_sequence(0));
      if (!take('$') && !is_whole_) parts.push_back(anything());
      alternatives.push_back(sequence(std::move(parts)));
    } while (take('|'));
    if (peek() != kEndOfText) throw unexpected("an alternative or the end");
    return choice(std::move(alternatives));
  }

 private:
  static Expression anything() { return repeat(in_json({{0, kMaxCode}}), 0); }

  Expression written(CodeSet set) const { return is_whole_ ? codes(std::move(set)) : in_json(set); }

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

  Expression read_choice(int depth) {
    if (depth > kMaxNesting)
      throw error(ExitCode::kOutOfMemory,
                  fmt::format("expected at most {} groups inside one another, got more", kMaxNesting));
    std::vector<Expression> alternatives;
    do {
      alternatives.push_back(read_sequence(depth));
    } while (take('|'));
    return choice(std::move(alternatives));
  }

  Expression read_sequence(int depth) {
    std::vector<Expression> parts;
    for (;;) {
      const char32_t c = peek();
      if (c == kEndOfText || c == '|' || (c == ')' && depth > 0) ||
          (c == '$' && depth == 0 && ends_alternative()))
        return sequence(std::move(parts));
      Expression part = read_part(depth);
      read_repetition(part);
      parts.push_back(std::move(part));
    }
  }

  bool ends_alternative() const { return position_ + 1 == pattern_.size() || pattern_[position_ + 1] == '|'; }

  Expression read_part(int depth) {
    const char32_t c = peek();
    switch (c) {
      case '(':
        return read_group(depth);
      case '[':
        return written(read_class());
      case '.':
        take();
        return written(intersection(kAscii, complement({{'\n', '\n'}, {'\r', '\r'}})));
      case '^':
      case '$':
        throw unsupported("an anchor that is not at the end of an alternative outside of groups");
      case '*':
      case '+':
      case '?':
      case '{':
      case '}':
      case ']':
      case ')':
        throw unexpected("something to repeat or an escape");
      case '\\':
        return written(read_escape());
      default:
        take();
        return written({{c, c}});
    }
  }

  Expression read_group(int depth) {
    take();
    if (take('?') && !take(':')) throw unsupported("a group of the kind (?");
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
    } else if (take('{')) {
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
    if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{') throw unexpected("one repetition");
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

  CodeSet read_class() {
    take();
    const bool is_negated = take('^');
    std::vector<CodeRange> ranges;
    bool names_kinds = false;
    while (!take(']')) {
      const CodeSet first = read_class_item();
      names_kinds = names_kinds || first.size() > 1 || first == kDigits;
      if (peek() != '-' || pattern_.substr(position_).starts_with("-]")) {
        ranges.insert(ranges.end(), first.begin(), first.end());
        continue;
      }
      take();
      const CodeSet last = read_class_item();
      const bool is_range = first.size() == 1 && last.size() == 1 && first[0].first == first[0].last &&
                            last[0].first == last[0].last && first[0].first <= last[0].first;
      if (!is_range) throw error(ExitCode::kBadFile, "expected a range that ascends, got another one");
      ranges.push_back({first[0].first, last[0].first});
    }
    CodeSet set = code_set(std::move(ranges));
    if (!is_negated) return set;
    return names_kinds ? intersection(kAscii, complement(set)) : complement(set);
  }

  CodeSet read_class_item() {
    if (peek() == '\\') return read_escape(true);
    const char32_t c = take();
    return {{c, c}};
  }

  CodeSet read_escape(bool in_class = false) {
    take();
    const char32_t c = take();
    const auto but = [](const CodeSet& set) { return intersection(kAscii, complement(set)); };
    switch (c) {
      case 'd':
        return kDigits;
      case 'D':
        return but(kDigits);
      case 'w':
        return kWords;
      case 'W':
        return but(kWords);
      case 's':
        return kSpaces;
      case 'S':
        return but(kSpaces);
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
        return read_hex(4);
      default:
        break;
    }
    const bool is_letter = contains(kWords, c) && c != '_';
    if (is_letter && !(in_class && c == 'b')) throw unsupported(fmt::format("\\{}", static_cast<char>(c)));
    if (is_letter) return {{'\b', '\b'}};
    return {{c, c}};
  }

  CodeSet read_hex(int num_digits) {
    char32_t code = 0;
    for (int i = 0; i < num_digits; ++i) {
      const int digit = hex_digit(peek());
      if (digit < 0) throw unexpected("a hexadecimal digit");
      take();
      code = code * 16 + static_cast<char32_t>(digit);
    }
    if (code >= 0xd800 && code <= 0xdfff) throw unsupported("half of a surrogate pair");
    return {{code, code}};
  }

  std::string_view pattern_;
  std::string_view place_;
  bool is_whole_;
  size_t position_ = 0;
};

}  // namespace

Expression in_json(const CodeSet& set) {
  std::vector<Expression> alternatives;
  CodeSet plain = intersection(set, JsonRules::plain_characters());
  if (!plain.empty()) alternatives.push_back(codes(std::move(plain)));
  for (const ShortEscape& escape : kShortEscapes) {
    if (contains(set, escape.code)) alternatives.push_back(text(escape.written));
  }
  return choice(std::move(alternatives));
}

Expression pattern_grammar(std::string_view pattern, std::string_view place) {
  return PatternParser(pattern, place, false).run();
}

Grammar parse_pattern(std::string_view pattern, const std::string& name) {
  if (pattern.size() > kMaxSourceBytes)
    throw file_error(ExitCode::kOutOfMemory, name, "expected at most {} bytes, got {}", kMaxSourceBytes,
                     pattern.size());
  Grammar grammar{.name = name, .rules = {}};
  grammar.root = grammar.add("pattern", PatternParser(pattern, name, true).run());
  return grammar;
}

}  // namespace soliton::constrain
