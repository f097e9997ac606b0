#include "runtime/text/tokenizer/utf8.h"

#include <utf8proc.h>

namespace soliton::tokenization {

Utf8Step utf8_step(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, Utf8Step::kValid};
  if (lead < 0xc2 || lead > 0xf4) return {1, Utf8Step::kInvalid};
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte excludes overlong forms, surrogates and what lies past U+10FFFF.
  unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, Utf8Step::kIncomplete};
    if (byte(i) < low || byte(i) > high) return {i, Utf8Step::kInvalid};
    low = 0x80;
    high = 0xbf;
  }
  return {length, Utf8Step::kValid};
}

std::string take_characters(std::string& bytes) {
  std::string characters;
  size_t valid_from = 0;  // of the valid bytes not yet moved
  size_t i = 0;
  while (i < bytes.size()) {
    const Utf8Step step = utf8_step(std::string_view(bytes).substr(i));
    if (step.kind == Utf8Step::kIncomplete) break;
    if (step.kind == Utf8Step::kInvalid) {
      characters.append(bytes, valid_from, i - valid_from).append(kReplacement);
      valid_from = i + step.length;
    }
    i += step.length;
  }
  if (valid_from == 0 && i == bytes.size()) {  // the usual case needs no copy
    characters.swap(bytes);
    return characters;
  }
  characters.append(bytes, valid_from, i - valid_from);
  bytes.erase(0, i);
  return characters;
}

std::string valid_utf8(std::string bytes) {
  std::string text = take_characters(bytes);
  if (!bytes.empty()) text += kReplacement;
  return text;
}

Character first_character(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const auto tail = [&](size_t i) { return byte(i) & 0x3f; };
  switch (character_length(text[0])) {
    case 1:
      return {byte(0), 1};
    case 2:
      return {(byte(0) & 0x1f) << 6 | tail(1), 2};
    case 3:
      return {(byte(0) & 0x0f) << 12 | tail(1) << 6 | tail(2), 3};
    default:
      return {(byte(0) & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4};
  }
}

Character last_character(std::string_view text) {
  size_t start = text.size() - 1;
  while ((static_cast<unsigned char>(text[start]) & 0xc0) == 0x80) --start;
  return first_character(text.substr(start));
}

void append_character(std::string& text, char32_t code) {
  const auto put = [&text](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  if (code == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool is_word(char32_t code) {
  if (code == 0x200c || code == 0x200d) return true;  // Join_Control
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:  // letters in circles and squares are symbols, and yet Alphabetic
      return (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
             (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189);
  }
}

size_t leading_space(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const Character next = first_character(text.substr(length));
    if (!is_white_space(next.code)) break;
    length += next.length;
  }
  return length;
}

size_t trailing_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const Character last = last_character(text.substr(0, end));
    if (!is_white_space(last.code)) break;
    end -= last.length;
  }
  return text.size() - end;
}

}  // namespace soliton::tokenization
