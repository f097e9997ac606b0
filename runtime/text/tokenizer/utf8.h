// UTF-8 in and out: a step that knows valid, invalid and unfinished characters, replacement of what is
// invalid, and the classes of characters that tokenizer.json's rules speak of.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace soliton::tokenization {

inline constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

/// What stands at the front of some bytes.
struct Utf8Step {
  size_t length;  // bytes to take: a character, or the longest start of one that went wrong
  enum { kValid, kInvalid, kIncomplete } kind;
};

/// The first character of non-empty text. kIncomplete: the text ends inside what could become a character.
Utf8Step utf8_step(std::string_view text);

/// Moves the whole characters at the front of `bytes` out of it, what is invalid as U+FFFD.
std::string take_characters(std::string& bytes);

/// The bytes with what is invalid, or unfinished at the end, as U+FFFD.
std::string valid_utf8(std::string bytes);

/// Bytes of the character that begins with `lead`, in valid UTF-8.
constexpr size_t character_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/// A character of valid text and the bytes that it takes.
struct Character {
  char32_t code;
  size_t length;
};

/// The first character of non-empty valid UTF-8.
Character first_character(std::string_view text);
/// The last one.
Character last_character(std::string_view text);

void append_character(std::string& text, char32_t code);

/// Unicode's White_Space.
bool is_white_space(char32_t code);
/// What can be part of a word: Alphabetic, marks, decimal digits, connectors and joiners.
bool is_word(char32_t code);

/// Bytes of white space at the front or the back of valid UTF-8.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

}  // namespace soliton::tokenization
