#include "runtime/text/constrain/pattern_reader.h"

#include <array>
#include <optional>
#include <utility>

#include "runtime/text/constrain/characters.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::constrain {
namespace {

const CodeSet kDigits = {{'0', '9'}};
const CodeSet kLetters = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};

bool contains(const CodeSet& set, char32_t code) {
  return !intersection(set, {{code, code}}).empty();
}

bool is_surrogate(char32_t code) {
  return code >= 0xd800 && code <= 0xdfff;
}

}  // namespace

char32_t PatternReader::peek() const {
  return position_ < pattern_.size() ? tokenization::first_character(pattern_.substr(position_)).code
                                     : kEndOfText;
}

char32_t PatternReader::take() {
  if (position_ >= pattern_.size()) throw unexpected("a character");
  const tokenization::Character character = tokenization::first_character(pattern_.substr(position_));
  position_ += character.length;
  return character.code;
}

bool PatternReader::take(char c) {
  if (peek() != static_cast<char32_t>(c)) return false;
  ++position_;
  return true;
}

Error PatternReader::error(ExitCode code, std::string_view message) const {
  return Error(code,
               fmt::format("{}: {}, at byte {} of {}", place_, message, position_, in_quotes(pattern_)));
}

Error PatternReader::unexpected(std::string_view expected) const {
  const std::string got =
      position_ < pattern_.size() ? in_quotes(pattern_.substr(position_, 1)) : std::string("the end");
  return error(ExitCode::kBadFile, fmt::format("expected {}, got {}", expected, got));
}

Error PatternReader::unsupported(std::string_view what) const {
  return error(ExitCode::kMismatch, fmt::format("{} is not supported", what));
}

CodeSet PatternReader::taken(const CodeClass& known, bool is_negated) const {
  const bool is_least = (dialects_ == Dialects::kAll) != is_negated;
  const CodeSet& set = is_least ? known.least : known.most;
  return is_negated ? complement(set) : set;
}

CodeSet PatternReader::read_class() {
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
    const auto is_one = [](const CodeSet& set) { return set.size() == 1 && set[0].first == set[0].last; };
    // From half a pair on some dialects read up to another half, others up to the character that begins with it.
    const bool is_half = is_one(first) && is_surrogate(first[0].first);
    const bool outside_joins = std::exchange(joins_pairs_, !(is_half && dialects_ == Dialects::kAll));
    const CodeSet last = read_class_item();
    joins_pairs_ = outside_joins;
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

CodeSet PatternReader::read_class_item() {
  if (peek() == '\\') return read_escape(true);
  const char32_t c = take();
  return {{c, c}};
}

CodeSet PatternReader::read_escape(bool in_class) {
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

CodeSet PatternReader::read_category(bool is_negated) {
  const size_t end = pattern_.find('}', position_);
  if (!take('{') || end == std::string_view::npos) throw unexpected("a category in braces");
  const std::string_view name = pattern_.substr(position_, end - position_);
  const std::optional<CodeClass> known = category_codes(name);
  if (!known) throw unsupported(fmt::format("\\p of {}", in_quotes(name)));
  position_ = end + 1;
  return taken(*known, is_negated);
}

CodeSet PatternReader::read_control() {
  const char32_t letter = take() | 0x20;
  if (letter < 'a' || letter > 'z') throw unsupported("\\c without a letter");
  return {{letter & 0x1f, letter & 0x1f}};
}

CodeSet PatternReader::read_long_hex() {
  char32_t code = 0;
  for (int digit = hex_digit(peek()); digit >= 0 && code <= kMaxCode; digit = hex_digit(peek())) {
    take();
    code = code * 16 + static_cast<char32_t>(digit);
  }
  if (!take('}') || code > kMaxCode) throw unexpected("a hexadecimal number and }");
  return {{code, code}};
}

CodeSet PatternReader::read_hex(int num_digits) {
  char32_t code = 0;
  for (int i = 0; i < num_digits; ++i) {
    const int digit = hex_digit(peek());
    if (digit < 0) throw unexpected("a hexadecimal digit");
    take();
    code = code * 16 + static_cast<char32_t>(digit);
  }
  if (is_surrogate(code)) code = read_pair(code);
  return {{code, code}};
}

char32_t PatternReader::read_pair(char32_t first) {
  char32_t second = 0;
  const std::string_view rest = pattern_.substr(position_);
  const auto digit = [&](size_t i) { return hex_digit(static_cast<unsigned char>(rest[i])); };
  if (first < 0xdc00 && rest.size() >= 6 && rest.starts_with("\\u")) {
    for (size_t i = 2; i < 6 && digit(i) >= 0; ++i) second = second * 16 + static_cast<char32_t>(digit(i));
  }
  if (second < 0xdc00 || second > 0xdfff || !joins_pairs_) return first;
  position_ += 6;
  return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

}  // namespace soliton::constrain
