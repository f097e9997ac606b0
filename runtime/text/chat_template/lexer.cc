// Follows jinja2's lexer rule by rule: what a tag strips before it depends on the text since the last line
// break, what it strips behind it on its own end.
#include "runtime/text/chat_template/lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/text/chat_template/fault.h"
#include "runtime/text/chat_template/text.h"

namespace soliton::jinja {
namespace {

constexpr std::array<std::string_view, 27> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";", ""};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// All line ends as "\n", the last one dropped.
std::string normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    const bool pair = source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
    if (!pair) text += source[i] == '\r' ? '\n' : source[i];
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string_view without_trailing_space(std::string_view text) {
  while (!text.empty()) {
    const size_t last = previous_position(text, text.size());
    size_t position = last;
    if (!is_space(next_character(text, position))) break;
    text = text.substr(0, last);
  }
  return text;
}

class Lexer {
 public:
  Lexer(std::string_view source, std::string_view name) : source_(normalized(source)), name_(name) {}

  std::vector<Token> run() {
    while (position_ < source_.size()) {
      const size_t tag = next_tag();
      const std::string_view text = std::string_view(source_).substr(position_, tag - position_);
      if (tag == source_.size()) {
        add_text(text);
        break;
      }
      read_tag(text, tag);
    }
    add(Token::kEnd, "");
    return std::move(tokens_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw bad_file(fmt::format("{}:{}", name_, line_), "{}",
                   fmt::format(format, std::forward<Args>(args)...));
  }

  std::string_view rest() const { return std::string_view(source_).substr(position_); }
  bool at(std::string_view text) const { return rest().starts_with(text); }
  void add(Token::Kind kind, std::string_view text) { tokens_.push_back({kind, std::string(text), line_}); }
  void add_text(std::string_view text) {
    if (!text.empty()) add(Token::kText, text);
  }

  /// Moves on, counting lines.
  void advance(size_t count) {
    const std::string_view passed = rest().substr(0, count);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    position_ += count;
  }
  void skip_space() {
    while (position_ < source_.size()) {
      size_t next = position_;
      if (!is_space(next_character(source_, next))) break;
      advance(next - position_);
    }
  }
  bool skip(std::string_view text) {
    if (!at(text)) return false;
    advance(text.size());
    return true;
  }

  /// Where the next {{, {% or {# begins; the end if there is none.
  size_t next_tag() const {
    for (size_t brace = position_; (brace = source_.find('{', brace)) + 1 < source_.size(); ++brace) {
      if (brace == std::string::npos) break;
      const char kind = source_[brace + 1];
      if (kind == '{' || kind == '%' || kind == '#') return brace;
    }
    return source_.size();
  }

  /// `text` less what the tag behind it strips: with "-" all space, for blocks and comments the space since
  /// the last line break, if there is nothing else.
  std::string_view stripped(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return without_trailing_space(text);
    if (sign == '+' || is_variable) return text;
    const size_t line_break = text.rfind('\n');
    if (line_break == std::string_view::npos && !line_starting_) return text;
    const size_t begin = line_break == std::string_view::npos ? 0 : line_break + 1;
    return without_trailing_space(text.substr(begin)).empty() ? text.substr(0, begin) : text;
  }

  void read_tag(std::string_view text, size_t tag) {
    const char kind = source_[tag + 1];
    const char after = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const char sign = after == '-' || after == '+' ? after : '\0';
    add_text(stripped(text, sign, kind == '{'));
    advance(text.size() + (sign == '\0' ? 2 : 3));
    const size_t begin = position_;
    if (kind == '#') {
      read_comment();
    } else if (kind == '{') {
      add(Token::kOpen, "{{");
      read_code(Token::kClose);
    } else if (const int line = line_; skip_raw_begin()) {
      read_raw(line);
    } else {
      position_ = begin;
      line_ = line;
      add(Token::kOpenTag, "{%");
      read_code(Token::kCloseTag);
    }
    line_starting_ = source_[position_ - 1] == '\n';
  }

  void read_comment() {
    const size_t end = source_.find("#}", position_);
    if (end == std::string::npos) fail("expected the comment to end, got the end of the template");
    const char sign = end > position_ ? source_[end - 1] : '\0';
    advance(end - position_);
    finish_tag(sign, "#}");
  }

  /// Consumes the end of a block or comment and the space that it strips.
  void finish_tag(char sign, std::string_view end) {
    advance(end.size());
    if (sign == '-') {
      skip_space();
    } else if (sign != '+') {
      skip("\n");  // trim_blocks
    }
  }

  bool skip_raw_begin() {
    skip_space();
    if (!skip("raw")) return false;
    skip_space();
    if (skip("-%}")) {
      skip_space();
      return true;
    }
    return skip("%}");
  }

  /// Text up to {% endraw %}.
  void read_raw(int opened_at) {
    const size_t begin = position_;
    for (size_t tag = begin; (tag = source_.find("{%", tag)) != std::string::npos; ++tag) {
      position_ = tag + 2;
      const char sign = at("-") ? '-' : at("+") ? '+' : '\0';
      if (sign != '\0') ++position_;
      skip_space();
      if (!skip("endraw")) continue;
      skip_space();
      const char end_sign = at("-%}") ? '-' : at("+%}") ? '+' : '\0';
      if (end_sign != '\0') ++position_;
      if (!at("%}")) continue;
      line_ = opened_at;  // counted on the way, and where other tags looked like the end
      const std::string_view text = std::string_view(source_).substr(begin, tag - begin);
      add_text(stripped(text, sign, false));
      const size_t end = position_;
      position_ = begin;
      advance(end - begin);
      finish_tag(end_sign, "%}");
      return;
    }
    line_ = opened_at;
    fail("expected {{% endraw %}}, got the end of the template");
  }

  /// Tokens up to the end of the tag. Brackets have to match; inside them "}}" is no end.
  void read_code(Token::Kind close) {
    const std::string_view end = close == Token::kClose ? "}}" : "%}";
    brackets_.clear();
    while (true) {
      skip_space();
      if (position_ == source_.size()) fail("expected \"{}\", got the end of the template", end);
      if (brackets_.empty() && skip_end(close, end)) return;
      if (is_digit(source_[position_])) {
        read_number();
      } else if (is_name_start(source_[position_])) {
        read_name();
      } else if (at("'") || at("\"")) {
        read_string();
      } else {
        read_operator();
      }
    }
  }

  bool skip_end(Token::Kind close, std::string_view end) {
    const char sign = at("-") ? '-' : at("+") && close == Token::kCloseTag ? '+' : '\0';
    if (!rest().substr(sign == '\0' ? 0 : 1).starts_with(end)) return false;
    add(close, end);
    if (sign != '\0') ++position_;
    if (close == Token::kCloseTag) {
      finish_tag(sign, end);
    } else {
      advance(end.size());
      if (sign == '-') skip_space();
    }
    return true;
  }

  void read_name() {
    size_t end = position_;
    while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end]))) ++end;
    add(Token::kName, rest().substr(0, end - position_));
    position_ = end;
  }

  /// Behind digits at `from`, each one but the first perhaps with "_" before it.
  template <class IsDigit>
  size_t digits_end(size_t from, IsDigit is_one) const {
    size_t end = from;
    while (end < source_.size()) {
      const size_t digit = source_[end] == '_' && end > from ? end + 1 : end;
      if (digit >= source_.size() || !is_one(source_[digit])) break;
      end = digit + 1;
    }
    return end;
  }

  void read_number() {
    const auto add_number = [this](Token::Kind kind, size_t end) {
      std::string text = source_.substr(position_, end - position_);
      std::erase(text, '_');
      add(kind, text);
      position_ = end;
    };
    if (const auto end = float_end()) return add_number(Token::kFloat, *end);
    const char base =
        position_ + 1 < source_.size() ? static_cast<char>(source_[position_ + 1] | 0x20) : '\0';
    if (source_[position_] == '0' && (base == 'x' || base == 'o' || base == 'b')) {
      const int limit = base == 'x' ? 16 : base == 'o' ? 8 : 2;
      const size_t begin =
          position_ + (position_ + 2 < source_.size() && source_[position_ + 2] == '_' ? 3 : 2);
      const size_t end =
          digits_end(begin, [limit](char c) { return hex_digit(c) >= 0 && hex_digit(c) < limit; });
      if (end > begin) return add_number(Token::kInteger, end);
    }
    const bool zero = source_[position_] == '0';
    add_number(Token::kInteger,
               digits_end(position_, [zero](char c) { return zero ? c == '0' : is_digit(c); }));
  }

  /// The end of the floating-point number here, if there is one. Behind a dot there is none: x.0.1.
  std::optional<size_t> float_end() const {
    if (position_ > 0 && source_[position_ - 1] == '.') return std::nullopt;
    const size_t whole = digits_end(position_, is_digit);
    size_t end = whole;
    if (end < source_.size() && source_[end] == '.') {
      const size_t fraction = digits_end(end + 1, is_digit);
      if (fraction > end + 1) end = fraction;
    }
    if (end < source_.size() && (source_[end] | 0x20) == 'e') {
      size_t digits = end + 1;
      if (digits < source_.size() && (source_[digits] == '+' || source_[digits] == '-')) ++digits;
      const size_t exponent = digits_end(digits, is_digit);
      if (exponent > digits) end = exponent;
    }
    return end > whole ? std::optional(end) : std::nullopt;
  }

  void read_string() {
    const char quote = source_[position_];
    const int line = line_;
    size_t end = position_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("expected the string to end, got the end of the template");
    const std::string_view literal = rest().substr(1, end - position_ - 1);
    tokens_.push_back({Token::kString, unescaped(literal), line});
    advance(end + 1 - position_);
  }

  std::string unescaped(std::string_view literal) const {
    static constexpr std::string_view kLetters = "abfnrtv\\'\"";
    static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
    std::string text;
    for (size_t i = 0; i < literal.size(); ++i) {
      if (literal[i] != '\\') {
        text += literal[i];
        continue;
      }
      const char letter = literal[++i];
      if (const size_t known = kLetters.find(letter); known != std::string_view::npos) {
        text += kMeanings[known];
      } else if (letter == 'x' || letter == 'u' || letter == 'U') {
        const size_t length = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
        append_utf8(text, escaped_character(literal.substr(i + 1, length), length));
        i += length;
      } else if (letter >= '0' && letter <= '7') {
        char32_t character = 0;
        size_t end = i;
        for (; end < std::min(i + 3, literal.size()) && literal[end] >= '0' && literal[end] <= '7'; ++end) {
          character = character * 8 + static_cast<char32_t>(literal[end] - '0');
        }
        append_utf8(text, character);
        i = end - 1;
      } else if (letter == 'N') {
        fail("expected no \\N{{...}} in a string: characters by name are not supported");
      } else if (letter != '\n') {  // a line break behind a backslash is nothing
        text += '\\';
        text += letter;
      }
    }
    return text;
  }

  char32_t escaped_character(std::string_view digits, size_t length) const {
    constexpr char32_t kLast = 0x10ffff;
    char32_t character = 0;
    for (const char digit : digits) {
      if (hex_digit(digit) < 0)
        fail("expected {} hexadecimal digits in a string's escape, got {}", length, in_quotes(digits));
      character = character << 4 | static_cast<char32_t>(hex_digit(digit));
    }
    const bool surrogate = character >= 0xd800 && character < 0xe000;
    if (digits.size() < length || character > kLast || surrogate) {
      fail("expected a character in a string's escape, got {}", in_quotes(digits));
    }
    return character;
  }

  void read_operator() {
    const auto found =
        std::find_if(kOperators.begin(), kOperators.end(), [this](std::string_view op) { return at(op); });
    if (found->empty()) {
      size_t end = position_;
      next_character(source_, end);
      fail("expected an expression, got {}", in_quotes(rest().substr(0, end - position_)));
    }
    static constexpr std::string_view kOpening = "([{";
    static constexpr std::string_view kClosing = ")]}";
    if (const size_t opening = kOpening.find(*found); opening != std::string_view::npos) {
      brackets_ += kClosing[opening];
    } else if (kClosing.find(*found) != std::string_view::npos) {
      if (brackets_.empty()) fail("expected no \"{}\", as no bracket is open", *found);
      if (brackets_.back() != found->front()) fail("expected \"{}\", got \"{}\"", brackets_.back(), *found);
      brackets_.pop_back();
    }
    add(Token::kOperator, *found);
    position_ += found->size();
  }

  const std::string source_;
  const std::string_view name_;
  size_t position_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // nothing but a line break since the last tag, or the template's begin
  std::string brackets_;       // the closing ones that are due, innermost last
  std::vector<Token> tokens_;
};

}  // namespace

std::string Token::describe() const {
  switch (kind) {
    case kText:
      return "text";
    case kString:
      return "string " + in_quotes(text);
    case kEnd:
      return "the end of the template";
    default:
      return in_quotes(text);
  }
}

std::vector<Token> tokenize(std::string_view source, std::string_view name) {
  return Lexer(source, name).run();
}

}  // namespace soliton::jinja
