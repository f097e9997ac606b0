// Runs of equal origin, UTF-8, and the properties of characters: from the C library's C.UTF-8 locale, except
// where Python's own lists are short enough to write down.
#include "runtime/text/chat_template/text.h"

#include <algorithm>
#include <clocale>
#include <cwctype>

#include "models/error.h"

namespace soliton::jinja {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

size_t length_by_lead(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/// Bytes of the character at the front of `bytes`; 0 if they form none.
size_t valid_length(std::string_view bytes) {
  const auto at = [bytes](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const size_t length = length_by_lead(bytes[0]);
  if (bytes.size() < length) return 0;
  // The second byte excludes overlong forms, surrogates and what lies past U+10FFFF.
  const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (at(1) < low || at(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

locale_t unicode_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr)
    throw Error(ExitCode::kNotFound, "locale C.UTF-8: expected to be installed, got none");
  return locale;
}

wint_t wide(char32_t character) {
  return static_cast<wint_t>(character);
}

}  // namespace

Origin Text::origin_at(size_t byte) const {
  const auto run =
      std::upper_bound(runs_.begin(), runs_.end(), byte, [](size_t at, const Run& r) { return at < r.end; });
  return run == runs_.end() ? Origin::kTemplate : run->origin;
}

Origin Text::origin() const {
  const bool any =
      std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.origin == Origin::kMessage; });
  return any ? Origin::kMessage : Origin::kTemplate;
}

void Text::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().origin == origin) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), origin});
  }
}

void Text::append(const Text& text, size_t begin, size_t end) {
  auto run = std::upper_bound(text.runs_.begin(), text.runs_.end(), begin,
                              [](size_t at, const Run& r) { return at < r.end; });
  for (; begin < end; ++run) {
    const size_t stop = std::min(end, run->end);
    append(std::string_view(text.bytes_).substr(begin, stop - begin), run->origin);
    begin = stop;
  }
}

Text Text::slice(size_t begin, size_t end) const {
  Text result;
  result.append(*this, begin, end);
  return result;
}

char32_t next_character(std::string_view text, size_t& position) {
  const auto byte = [&] { return static_cast<unsigned char>(text[position++]); };
  const size_t length = length_by_lead(text[position]);
  if (length == 1) return byte();
  char32_t character = byte() & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) character = character << 6 | (byte() & 0x3fU);
  return character;
}

size_t previous_position(std::string_view text, size_t position) {
  do {
    --position;
  } while ((static_cast<unsigned char>(text[position]) & 0xc0) == 0x80);
  return position;
}

void append_utf8(std::string& bytes, char32_t character) {
  const auto put = [&bytes](char32_t byte) { bytes += static_cast<char>(byte); };
  const auto tail = [&](int shift) { put(0x80 | ((character >> shift) & 0x3f)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xc0 | character >> 6);
    tail(0);
  } else if (character < 0x10000) {
    put(0xe0 | character >> 12);
    tail(6);
    tail(0);
  } else {
    put(0xf0 | character >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

size_t byte_position(std::string_view text, size_t character_index) {
  size_t position = 0;
  while (position < text.size() && character_index-- > 0) position += length_by_lead(text[position]);
  return position;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = valid_length(bytes);
    text += length > 0 ? bytes.substr(0, length) : kReplacement;
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

bool is_valid_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t length = valid_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_printable(char32_t c) {
  if (c < 0x7f) return c >= ' ';
  if (is_space(c) || c == 0xad || c == 0xfeff) return false;
  const bool format = c == 0x61c || c == 0x6dd || c == 0x70f || c == 0x180e || c == 0x890 || c == 0x891 ||
                      c == 0x8e2 || (c >= 0x600 && c <= 0x605) || (c >= 0x200b && c <= 0x200f) ||
                      (c >= 0x202a && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
                      (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
  const bool private_use = (c >= 0xe000 && c <= 0xf8ff) || c >= 0xf0000;
  return !format && !private_use && iswprint_l(wide(c), unicode_locale()) != 0;
}

bool is_letter(char32_t c) {
  return iswalpha_l(wide(c), unicode_locale()) != 0 && (c >= 0x80 || c > '9' || c < '0');
}

bool is_upper(char32_t c) {
  return iswupper_l(wide(c), unicode_locale()) != 0;
}

bool is_lower(char32_t c) {
  return iswlower_l(wide(c), unicode_locale()) != 0;
}

char32_t upper_character(char32_t c) {
  return static_cast<char32_t>(towupper_l(wide(c), unicode_locale()));
}

char32_t lower_character(char32_t c) {
  return static_cast<char32_t>(towlower_l(wide(c), unicode_locale()));
}

}  // namespace soliton::jinja
