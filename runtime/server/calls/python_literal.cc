#include "runtime/server/calls/python_literal.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "models/strict_json.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 64;

struct Word {
  std::string_view text;
  Json value;
};
const std::array<Word, 6> kWords = {{{"True", true},
                                     {"False", false},
                                     {"None", nullptr},
                                     {"true", true},
                                     {"false", false},
                                     {"null", nullptr}}};
constexpr std::array<std::pair<char, char>, 7> kEscapes = {
    {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'b', '\b'}, {'f', '\f'}, {'0', '\0'}, {'/', '/'}}};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<Json> arguments() {
    Json all = Json::object();
    std::set<std::string> keys;
    for (skip_space(); !take(')'); skip_space()) {
      if (!keys.empty() && !take(',')) return std::nullopt;
      skip_space();
      if (!keys.empty() && take(')')) break;  // behind a last comma
      std::string key = name();
      skip_space();
      if (key.empty() || !take('=') || !keys.insert(key).second) return std::nullopt;
      auto read = value(1);
      if (!read) return std::nullopt;
      add(all, std::move(key), std::move(*read));
    }
    return all;
  }

  std::string_view rest() const { return text_; }

 private:
  /// The keys are told apart by whoever calls: an ordered object would look at all of them.
  static void add(Json& object, std::string key, Json value) {
    object.get_ref<Json::object_t&>().push_back({std::move(key), std::move(value)});
  }

  void skip_space() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size())); }
  bool take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  std::string name() {
    const auto is_part = [](char c) {
      return c == '_' || static_cast<unsigned char>(c) >= 0x80 || ('0' <= c && c <= '9') ||
             ('a' <= (c | 0x20) && (c | 0x20) <= 'z');
    };
    const auto end = std::ranges::find_if_not(text_, is_part);
    std::string found(text_.begin(), end);
    text_.remove_prefix(found.size());
    return found;
  }

  std::optional<Json> value(int depth) {
    skip_space();
    if (text_.empty() || depth > kMaxDepth) return std::nullopt;
    const char first = text_[0];
    if (first == '"' || first == '\'') {
      const auto text = string();
      return text ? std::optional<Json>(*text) : std::nullopt;
    }
    if (take('[')) return list(']', depth);
    if (take('(')) return list(')', depth);
    if (take('{')) return dictionary(depth);
    for (const Word& word : kWords) {
      if (!text_.starts_with(word.text)) continue;
      text_.remove_prefix(word.text.size());
      return word.value;
    }
    return number();
  }

  std::optional<Json> number() {
    const std::string_view digits = text_.substr(0, text_.find_first_not_of("+-.0123456789eE"));
    if (digits.empty()) return std::nullopt;
    text_.remove_prefix(digits.size());
    auto json = parse_if_json(digits, "call");
    if (!json || !json->is_number()) return std::nullopt;
    return json;
  }

  std::optional<Json> list(char close, int depth) {
    Json all = Json::array();
    for (skip_space(); !take(close); skip_space()) {
      if (!all.empty() && !take(',')) return std::nullopt;
      skip_space();
      if (!all.empty() && take(close)) break;
      auto read = value(depth + 1);
      if (!read) return std::nullopt;
      all.push_back(std::move(*read));
    }
    return all;
  }

  std::optional<Json> dictionary(int depth) {
    Json all = Json::object();
    std::set<std::string> keys;
    for (skip_space(); !take('}'); skip_space()) {
      if (!keys.empty() && !take(',')) return std::nullopt;
      skip_space();
      if (!keys.empty() && take('}')) break;
      auto key = string();
      skip_space();
      if (!key || !take(':') || !keys.insert(*key).second) return std::nullopt;
      auto read = value(depth + 1);
      if (!read) return std::nullopt;
      add(all, std::move(*key), std::move(*read));
    }
    return all;
  }

  std::optional<std::string> string() {
    if (text_.empty() || (text_[0] != '"' && text_[0] != '\'')) return std::nullopt;
    const char quote = text_[0];
    std::string read;
    size_t at = 1;
    for (; at < text_.size() && text_[at] != quote; ++at) {
      if (text_[at] != '\\') {
        read += text_[at];
      } else if (++at < text_.size() && !unescape(at, read)) {
        return std::nullopt;
      }
    }
    if (at >= text_.size()) return std::nullopt;
    text_.remove_prefix(at + 1);
    return tokenization::valid_utf8(std::move(read));
  }

  /// `at` is behind the backslash, and then at the last character of what is escaped.
  bool unescape(size_t& at, std::string& read) const {
    const char c = text_[at];
    const auto plain = std::ranges::find(kEscapes, c, &std::pair<char, char>::first);
    if (plain != kEscapes.end()) {
      read += plain->second;
      return true;
    }
    if (c != 'u' && c != 'x') {
      if (c != '\\' && c != '"' && c != '\'') read += '\\';  // as Python leaves others
      read += c;
      return true;
    }
    const auto unit_at = [&](size_t from, size_t num_digits) -> std::optional<char32_t> {
      const std::string_view digits = text_.substr(std::min(from, text_.size()), num_digits);
      if (digits.size() < num_digits || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos)
        return std::nullopt;
      return static_cast<char32_t>(std::stoul(std::string(digits), nullptr, 16));
    };
    const size_t num_digits = c == 'u' ? 4 : 2;
    auto code = unit_at(at + 1, num_digits);
    if (!code) return false;
    at += num_digits;
    // Two halves of a character, as JSON writes it.
    const bool is_first = 0xd800 <= *code && *code < 0xdc00;
    const auto second =
        is_first && text_.substr(at + 1).starts_with("\\u") ? unit_at(at + 3, 4) : std::nullopt;
    if (second && 0xdc00 <= *second && *second < 0xe000) {
      code = 0x10000 + ((*code - 0xd800) << 10) + (*second - 0xdc00);
      at += 6;
    }
    if (0xd800 <= *code && *code < 0xe000) return false;
    tokenization::append_character(read, *code);
    return true;
  }

  std::string_view text_;
};

}  // namespace

std::optional<Json> read_keyword_arguments(std::string_view& text) {
  Reader reader(text);
  try {
    auto arguments = reader.arguments();
    text = reader.rest();
    return arguments;
  } catch (const std::exception&) {  // a number beyond all bounds
    return std::nullopt;
  }
}

}  // namespace soliton
