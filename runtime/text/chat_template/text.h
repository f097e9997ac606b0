// Strings of a template: UTF-8 bytes, each with its origin, so that text a user typed can be told from the
// template's own all the way to the tokenizer. Characters follow Python's str.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace soliton::jinja {

/// Who wrote a byte: the template (its special tokens count), or a message, tool or variable (they do not).
enum class Origin : uint8_t { kTemplate, kMessage };

/// Valid UTF-8 with an origin for each byte, kept as runs.
class Text {
 public:
  struct Run {
    size_t end;  // bytes, exclusive; the run begins where the one before ends
    Origin origin;
  };

  Text() = default;
  Text(std::string_view bytes, Origin origin) { append(bytes, origin); }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  /// In order, none empty, neighbours differ in origin.
  const std::vector<Run>& runs() const { return runs_; }
  Origin origin_at(size_t byte) const;
  /// kMessage if any part is.
  Origin origin() const;
  /// Whether it is Markup to jinja2, as the filters safe and escape make it: what is added to it is escaped. Copies are
  /// too; other text made of it is not.
  bool is_markup() const { return is_markup_; }
  Text marked(bool is_markup = true) && {
    is_markup_ = is_markup;
    return std::move(*this);
  }

  void append(std::string_view bytes, Origin origin);
  void append(const Text& text) { append(text, 0, text.size()); }
  /// Appends bytes [begin, end) of `text`, which is another object.
  void append(const Text& text, size_t begin, size_t end);
  /// Bytes [begin, end).
  Text slice(size_t begin, size_t end) const;

 private:
  std::string bytes_;
  std::vector<Run> runs_;
  bool is_markup_ = false;
};

// ---- UTF-8 ----

/// The character at byte `position` of valid UTF-8; moves `position` behind it.
char32_t next_character(std::string_view text, size_t& position);
/// The byte at which the character before byte `position` begins.
size_t previous_position(std::string_view text, size_t position);
void append_utf8(std::string& bytes, char32_t character);
size_t count_characters(std::string_view text);
/// The byte at which the character with this index begins; text.size() if there are fewer.
size_t byte_position(std::string_view text, size_t character_index);
/// `bytes` with U+FFFD for each byte that belongs to no character.
std::string to_valid_utf8(std::string_view bytes);
bool is_valid_utf8(std::string_view bytes);

// ---- what Python says of characters ----

bool is_space(char32_t character);       // str.isspace
bool is_line_break(char32_t character);  // where str.splitlines splits
bool is_printable(char32_t character);   // str.isprintable
bool is_letter(char32_t character);      // str.isalpha
bool is_upper(char32_t character);
bool is_lower(char32_t character);
/// The one character that is the other case of it by itself.
char32_t upper_character(char32_t character);
char32_t lower_character(char32_t character);

}  // namespace soliton::jinja
