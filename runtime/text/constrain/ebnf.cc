#include "runtime/text/constrain/ebnf.h"

#include <algorithm>
#include <map>

#include "runtime/text/constrain/characters.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::constrain {
namespace {

constexpr std::string_view kRoot = "root";
constexpr int kMostRepetitionsOfOne = 8;  // as in "a"*?{2}

bool is_digit(char32_t c) {
  return c >= '0' && c <= '9';
}

bool is_name(char32_t c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : text_(text) { grammar_.name = name; }

  Grammar run() {
    if (text_.size() > kMaxSourceBytes) {
      throw file_error(ExitCode::kOutOfMemory, grammar_.name, "expected at most {} bytes, got {}",
                       kMaxSourceBytes, text_.size());
    }
    if (tokenization::valid_utf8(std::string(text_)) != text_) {
      throw bad_file(grammar_.name, "expected UTF-8, got bytes that are none");
    }
    for (skip_space(true); peek() != kEndOfText; skip_space(true)) read_rule();
    for (const auto& [name, use] : uses_) {
      if (!use.is_defined) throw error(use.position, "a rule", in_quotes(name) + ", which is none");
    }
    const auto root = uses_.find(std::string(kRoot));
    if (root == uses_.end()) throw bad_file(grammar_.name, "expected a rule {}, got none", kRoot);
    grammar_.root = root->second.rule;
    return std::move(grammar_);
  }

 private:
  struct Use {
    int rule;
    size_t position;  // of the first use
    bool is_defined = false;
  };

  // ---- Characters

  char32_t peek() const {
    return position_ < text_.size() ? tokenization::first_character(text_.substr(position_)).code
                                    : kEndOfText;
  }
  char32_t take() {
    const tokenization::Character character = tokenization::first_character(text_.substr(position_));
    position_ += character.length;
    return character.code;
  }
  bool take(std::string_view word) {
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }

  void skip_space(bool over_lines) {
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == '#') {
        while (position_ + 1 < text_.size() && text_[position_ + 1] != '\n') ++position_;
      } else if (c != ' ' && c != '\t' && (!over_lines || (c != '\n' && c != '\r'))) {
        return;
      }
    }
  }

  int lines_between(size_t first, size_t last) const {
    const std::string_view between = text_.substr(first, last - first);
    return static_cast<int>(std::count(between.begin(), between.end(), '\n'));
  }

  Error error(size_t position, std::string_view expected, std::string_view got,
              ExitCode code = ExitCode::kBadFile) const {
    const size_t line_start = position == 0 ? 0 : text_.rfind('\n', position - 1) + 1;
    const auto column = 1 + std::count_if(text_.begin() + static_cast<ptrdiff_t>(line_start),
                                          text_.begin() + static_cast<ptrdiff_t>(position),
                                          [](char c) { return (c & 0xc0) != 0x80; });
    return Error(code, fmt::format("{}:{}:{}: expected {}, got {}", grammar_.name,
                                   1 + lines_between(0, position), column, expected, got));
  }
  Error unexpected(std::string_view expected) const {
    if (position_ >= text_.size()) return error(position_, expected, "the end");
    if (text_[position_] == '\n' || text_[position_] == '\r')
      return error(position_, expected, "the end of the line");
    const size_t length = tokenization::first_character(text_.substr(position_)).length;
    return error(position_, expected, in_quotes(text_.substr(position_, length)));
  }

  // ---- Rules

  std::string read_name() {
    const size_t start = position_;
    while (is_name(peek())) take();
    if (position_ == start) throw unexpected("the name of a rule");
    return std::string(text_.substr(start, position_ - start));
  }

  Use& use_of(const std::string& name, size_t position) {
    const auto found = uses_.find(name);
    if (found != uses_.end()) return found->second;
    return uses_.emplace(name, Use{.rule = grammar_.add(name), .position = position}).first->second;
  }

  void read_rule() {
    const size_t start = position_;
    const std::string name = read_name();
    skip_space(true);
    if (!take("::=")) throw unexpected("::=");
    Use& use = use_of(name, start);
    if (use.is_defined) throw error(start, "one rule of a name", "a second " + in_quotes(name));
    use.is_defined = true;
    skip_space(true);
    Expression expression = read_choice(0);
    if (peek() != kEndOfText && peek() != '\n' && peek() != '\r') throw unexpected("the end of the rule");
    Rule& made = grammar_.rules[static_cast<size_t>(use.rule)];
    made.expression = std::move(expression);
    lines_until_rule_ += lines_between(last_rule_, start);
    last_rule_ = start;
    made.line = 1 + lines_until_rule_;
  }

  Expression read_choice(int depth) {
    if (depth > kMaxNesting) {
      throw error(position_, fmt::format("at most {} groups inside one another", kMaxNesting), "more",
                  ExitCode::kOutOfMemory);
    }
    std::vector<Expression> alternatives;
    alternatives.push_back(read_sequence(depth));
    while (take("|")) {
      skip_space(true);
      alternatives.push_back(read_sequence(depth));
    }
    return choice(std::move(alternatives));
  }

  Expression read_sequence(int depth) {
    std::vector<Expression> parts;
    for (;;) {
      const char32_t c = peek();
      if (c == '"') {
        parts.push_back(read_text());
      } else if (c == '[') {
        parts.push_back(read_class());
      } else if (c == '.') {
        take();
        parts.push_back(codes({{0, kMaxCode}}));
      } else if (c == '(') {
        take();
        skip_space(true);
        parts.push_back(read_choice(depth + 1));
        if (!take(")")) throw unexpected("a )");
      } else if (is_name(c)) {
        const size_t start = position_;
        const std::string name = read_name();
        parts.push_back(rule(use_of(name, start).rule));
      } else {
        return sequence(std::move(parts));
      }
      skip_space(depth > 0);
      for (int i = 0; read_repetition(parts.back()); ++i) {
        if (i == kMostRepetitionsOfOne) throw unexpected("fewer repetitions of repetitions");
        skip_space(depth > 0);
      }
    }
  }

  /// What stands behind a part, if something does.
  bool read_repetition(Expression& part) {
    if (take("*")) {
      part = repeat(std::move(part), 0);
    } else if (take("+")) {
      part = repeat(std::move(part), 1);
    } else if (take("?")) {
      part = optional(std::move(part));
    } else if (take("{")) {
      const size_t start = position_;
      skip_space(true);
      const int min = read_count();
      skip_space(true);
      int max = min;
      if (take(",")) {
        skip_space(true);
        max = peek() == '}' ? -1 : read_count();
        skip_space(true);
      }
      if (!take("}")) throw unexpected("a }");
      if (max >= 0 && max < min) {
        throw error(start, fmt::format("at least {} as the second bound", min), std::to_string(max));
      }
      part = repeat(std::move(part), min, max);
    } else {
      return false;
    }
    return true;
  }

  int read_count() {
    if (!is_digit(peek())) throw unexpected("a number");
    const size_t start = position_;
    int count = 0;
    while (is_digit(peek())) {
      count = count * 10 + static_cast<int>(take() - '0');
      if (count > kMaxRepetitions) {
        throw error(start, fmt::format("at most {} repetitions", kMaxRepetitions), "more",
                    ExitCode::kOutOfMemory);
      }
    }
    return count;
  }

  // ---- Characters in quotes and classes

  Expression read_text() {
    take();
    std::string bytes;
    while (peek() != '"') {
      if (peek() == kEndOfText || peek() == '\n') throw unexpected("a \" that ends the text");
      tokenization::append_character(bytes, read_character());
    }
    take();
    return text(bytes);
  }

  Expression read_class() {
    take();
    const bool is_negated = take("^");
    std::vector<CodeRange> ranges;
    while (peek() != ']') {
      if (peek() == kEndOfText || peek() == '\n') throw unexpected("a ] that ends the class");
      const size_t start = position_;
      const char32_t first = read_character();
      char32_t last = first;
      if (peek() == '-' && !text_.substr(position_).starts_with("-]")) {
        take();
        if (peek() == kEndOfText || peek() == '\n') throw unexpected("a ] that ends the class");
        last = read_character();
      }
      if (last < first)
        throw error(start, "a range that ascends", in_quotes(text_.substr(start, position_ - start)));
      ranges.push_back({first, last});
    }
    take();
    CodeSet set = code_set(std::move(ranges));
    return codes(is_negated ? complement(set) : std::move(set));
  }

  char32_t read_character() {
    const size_t start = position_;
    const char32_t c = take();
    if (c != '\\') return c;
    const char32_t kind = peek();
    if (kind != kEndOfText) take();
    switch (kind) {
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'n':
        return '\n';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return kind;
      case 'x':
        return read_hex(start, 2);
      case 'u':
        return read_hex(start, 4);
      case 'U':
        return read_hex(start, 8);
      default:
        position_ = start;
        throw error(start, "an escape such as \\n, \\\" or \\x41", in_quotes(text_.substr(start, 2)));
    }
  }

  char32_t read_hex(size_t start, int num_digits) {
    uint64_t code = 0;
    for (int i = 0; i < num_digits; ++i) {
      const int digit = hex_digit(peek());
      if (digit < 0) throw unexpected(fmt::format("{} hexadecimal digits", num_digits));
      take();
      code = code * 16 + static_cast<uint64_t>(digit);
    }
    if (code > kMaxCode || (code >= 0xd800 && code <= 0xdfff)) {
      throw error(start, "a character", in_quotes(text_.substr(start, position_ - start)));
    }
    return static_cast<char32_t>(code);
  }

  std::string_view text_;
  size_t position_ = 0;
  size_t last_rule_ = 0;  // where it begins
  int lines_until_rule_ = 0;
  Grammar grammar_;
  std::map<std::string, Use> uses_;
};

}  // namespace

Grammar parse_ebnf(std::string_view text, std::string_view name) {
  return Parser(text, name).run();
}

}  // namespace soliton::constrain
