// Mappings to one character are those of the C library's C.UTF-8 locale; the others, and title case where it differs from
// upper case, are written down as Unicode's SpecialCasing and UnicodeData have them.
#include "runtime/text/chat_template/casing.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

namespace soliton::jinja {
namespace {

constexpr char32_t kDottedI = 0x130;
constexpr char32_t kSigma = 0x3a3;
constexpr char32_t kFinalSigma = 0x3c2;

struct SpecialCase {
  char32_t code;
  const char* upper;
  const char* title;
};

/// By code. In Georgian title case changes nothing, which is no row each.
constexpr auto kSpecialCases = std::to_array<SpecialCase>({
    {0x00df, "SS", "Ss"},
    {0x0149, "\u02bcN", "\u02bcN"},
    {0x01c4, "\u01c4", "\u01c5"},
    {0x01c5, "\u01c4", "\u01c5"},
    {0x01c6, "\u01c4", "\u01c5"},
    {0x01c7, "\u01c7", "\u01c8"},
    {0x01c8, "\u01c7", "\u01c8"},
    {0x01c9, "\u01c7", "\u01c8"},
    {0x01ca, "\u01ca", "\u01cb"},
    {0x01cb, "\u01ca", "\u01cb"},
    {0x01cc, "\u01ca", "\u01cb"},
    {0x01f0, "J\u030c", "J\u030c"},
    {0x01f1, "\u01f1", "\u01f2"},
    {0x01f2, "\u01f1", "\u01f2"},
    {0x01f3, "\u01f1", "\u01f2"},
    {0x0390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x03b0, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
    {0x0587, "\u0535\u0552", "\u0535\u0582"},
    {0x1e96, "H\u0331", "H\u0331"},
    {0x1e97, "T\u0308", "T\u0308"},
    {0x1e98, "W\u030a", "W\u030a"},
    {0x1e99, "Y\u030a", "Y\u030a"},
    {0x1e9a, "A\u02be", "A\u02be"},
    {0x1f50, "\u03a5\u0313", "\u03a5\u0313"},
    {0x1f52, "\u03a5\u0313\u0300", "\u03a5\u0313\u0300"},
    {0x1f54, "\u03a5\u0313\u0301", "\u03a5\u0313\u0301"},
    {0x1f56, "\u03a5\u0313\u0342", "\u03a5\u0313\u0342"},
    {0x1f80, "\u1f08\u0399", "\u1f88"},
    {0x1f81, "\u1f09\u0399", "\u1f89"},
    {0x1f82, "\u1f0a\u0399", "\u1f8a"},
    {0x1f83, "\u1f0b\u0399", "\u1f8b"},
    {0x1f84, "\u1f0c\u0399", "\u1f8c"},
    {0x1f85, "\u1f0d\u0399", "\u1f8d"},
    {0x1f86, "\u1f0e\u0399", "\u1f8e"},
    {0x1f87, "\u1f0f\u0399", "\u1f8f"},
    {0x1f88, "\u1f08\u0399", "\u1f88"},
    {0x1f89, "\u1f09\u0399", "\u1f89"},
    {0x1f8a, "\u1f0a\u0399", "\u1f8a"},
    {0x1f8b, "\u1f0b\u0399", "\u1f8b"},
    {0x1f8c, "\u1f0c\u0399", "\u1f8c"},
    {0x1f8d, "\u1f0d\u0399", "\u1f8d"},
    {0x1f8e, "\u1f0e\u0399", "\u1f8e"},
    {0x1f8f, "\u1f0f\u0399", "\u1f8f"},
    {0x1f90, "\u1f28\u0399", "\u1f98"},
    {0x1f91, "\u1f29\u0399", "\u1f99"},
    {0x1f92, "\u1f2a\u0399", "\u1f9a"},
    {0x1f93, "\u1f2b\u0399", "\u1f9b"},
    {0x1f94, "\u1f2c\u0399", "\u1f9c"},
    {0x1f95, "\u1f2d\u0399", "\u1f9d"},
    {0x1f96, "\u1f2e\u0399", "\u1f9e"},
    {0x1f97, "\u1f2f\u0399", "\u1f9f"},
    {0x1f98, "\u1f28\u0399", "\u1f98"},
    {0x1f99, "\u1f29\u0399", "\u1f99"},
    {0x1f9a, "\u1f2a\u0399", "\u1f9a"},
    {0x1f9b, "\u1f2b\u0399", "\u1f9b"},
    {0x1f9c, "\u1f2c\u0399", "\u1f9c"},
    {0x1f9d, "\u1f2d\u0399", "\u1f9d"},
    {0x1f9e, "\u1f2e\u0399", "\u1f9e"},
    {0x1f9f, "\u1f2f\u0399", "\u1f9f"},
    {0x1fa0, "\u1f68\u0399", "\u1fa8"},
    {0x1fa1, "\u1f69\u0399", "\u1fa9"},
    {0x1fa2, "\u1f6a\u0399", "\u1faa"},
    {0x1fa3, "\u1f6b\u0399", "\u1fab"},
    {0x1fa4, "\u1f6c\u0399", "\u1fac"},
    {0x1fa5, "\u1f6d\u0399", "\u1fad"},
    {0x1fa6, "\u1f6e\u0399", "\u1fae"},
    {0x1fa7, "\u1f6f\u0399", "\u1faf"},
    {0x1fa8, "\u1f68\u0399", "\u1fa8"},
    {0x1fa9, "\u1f69\u0399", "\u1fa9"},
    {0x1faa, "\u1f6a\u0399", "\u1faa"},
    {0x1fab, "\u1f6b\u0399", "\u1fab"},
    {0x1fac, "\u1f6c\u0399", "\u1fac"},
    {0x1fad, "\u1f6d\u0399", "\u1fad"},
    {0x1fae, "\u1f6e\u0399", "\u1fae"},
    {0x1faf, "\u1f6f\u0399", "\u1faf"},
    {0x1fb2, "\u1fba\u0399", "\u1fba\u0345"},
    {0x1fb3, "\u0391\u0399", "\u1fbc"},
    {0x1fb4, "\u0386\u0399", "\u0386\u0345"},
    {0x1fb6, "\u0391\u0342", "\u0391\u0342"},
    {0x1fb7, "\u0391\u0342\u0399", "\u0391\u0342\u0345"},
    {0x1fbc, "\u0391\u0399", "\u1fbc"},
    {0x1fc2, "\u1fca\u0399", "\u1fca\u0345"},
    {0x1fc3, "\u0397\u0399", "\u1fcc"},
    {0x1fc4, "\u0389\u0399", "\u0389\u0345"},
    {0x1fc6, "\u0397\u0342", "\u0397\u0342"},
    {0x1fc7, "\u0397\u0342\u0399", "\u0397\u0342\u0345"},
    {0x1fcc, "\u0397\u0399", "\u1fcc"},
    {0x1fd2, "\u0399\u0308\u0300", "\u0399\u0308\u0300"},
    {0x1fd3, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x1fd6, "\u0399\u0342", "\u0399\u0342"},
    {0x1fd7, "\u0399\u0308\u0342", "\u0399\u0308\u0342"},
    {0x1fe2, "\u03a5\u0308\u0300", "\u03a5\u0308\u0300"},
    {0x1fe3, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
    {0x1fe4, "\u03a1\u0313", "\u03a1\u0313"},
    {0x1fe6, "\u03a5\u0342", "\u03a5\u0342"},
    {0x1fe7, "\u03a5\u0308\u0342", "\u03a5\u0308\u0342"},
    {0x1ff2, "\u1ffa\u0399", "\u1ffa\u0345"},
    {0x1ff3, "\u03a9\u0399", "\u1ffc"},
    {0x1ff4, "\u038f\u0399", "\u038f\u0345"},
    {0x1ff6, "\u03a9\u0342", "\u03a9\u0342"},
    {0x1ff7, "\u03a9\u0342\u0399", "\u03a9\u0342\u0345"},
    {0x1ffc, "\u03a9\u0399", "\u1ffc"},
    {0xfb00, "FF", "Ff"},
    {0xfb01, "FI", "Fi"},
    {0xfb02, "FL", "Fl"},
    {0xfb03, "FFI", "Ffi"},
    {0xfb04, "FFL", "Ffl"},
    {0xfb05, "ST", "St"},
    {0xfb06, "ST", "St"},
    {0xfb13, "\u0544\u0546", "\u0544\u0576"},
    {0xfb14, "\u0544\u0535", "\u0544\u0565"},
    {0xfb15, "\u0544\u053b", "\u0544\u056b"},
    {0xfb16, "\u054e\u0546", "\u054e\u0576"},
    {0xfb17, "\u0544\u053d", "\u0544\u056d"},
});
constexpr char32_t kFirstGeorgian = 0x10d0;
constexpr char32_t kLastGeorgian = 0x10ff;

const SpecialCase* special_case(char32_t character) {
  const auto found = std::lower_bound(kSpecialCases.begin(), kSpecialCases.end(), character,
                                      [](const SpecialCase& row, char32_t code) { return row.code < code; });
  return found != kSpecialCases.end() && found->code == character ? &*found : nullptr;
}

void append_upper(std::string& bytes, char32_t character) {
  if (const SpecialCase* special = character < 0x80 ? nullptr : special_case(character)) {
    bytes += special->upper;
  } else {
    append_utf8(bytes, upper_character(character));
  }
}

void append_title(std::string& bytes, char32_t character) {
  if (const SpecialCase* special = character < 0x80 ? nullptr : special_case(character)) {
    bytes += special->title;
  } else {
    const bool is_georgian = character >= kFirstGeorgian && character <= kLastGeorgian;
    append_utf8(bytes, is_georgian ? character : upper_character(character));
  }
}

/// Unicode's Cased.
bool is_cased(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
      return true;
    default:
      break;
  }
  if (c < 0x80) return false;
  // Other_Lowercase and Other_Uppercase.
  static constexpr auto kRanges = std::to_array<std::pair<char32_t, char32_t>>(
      {{0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},     {0x2e0, 0x2e4},
       {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},   {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},
       {0x2071, 0x2071},   {0x207f, 0x207f},   {0x2090, 0x209c},   {0x2160, 0x217f},   {0x24b6, 0x24e9},
       {0x2c7c, 0x2c7d},   {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},   {0xab5c, 0xab5f},
       {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba}, {0x1f130, 0x1f149},
       {0x1f150, 0x1f169}, {0x1f170, 0x1f189}});
  const auto range = std::upper_bound(kRanges.begin(), kRanges.end(), c,
                                      [](char32_t code, const auto& each) { return code < each.first; });
  return range != kRanges.begin() && c <= (range - 1)->second;
}

/// Unicode's Case_Ignorable.
bool is_case_ignorable(char32_t c) {
  static constexpr std::u32string_view kInsideWords =
      U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a";
  if (kInsideWords.find(c) != std::u32string_view::npos) return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return false;
  }
}

/// Whether the sigma at bytes [begin, end) ends a word: behind a cased character and before none.
bool is_final(std::string_view text, size_t begin, size_t end) {
  bool behind = false;
  while (begin > 0 && !behind) {
    begin = previous_position(text, begin);
    size_t position = begin;
    const char32_t character = next_character(text, position);
    if (is_case_ignorable(character)) continue;
    behind = is_cased(character);
    if (!behind) return false;
  }
  while (end < text.size()) {
    const char32_t character = next_character(text, end);
    if (!is_case_ignorable(character)) return behind && !is_cased(character);
  }
  return behind;
}

/// The mappings of the characters of one text, each of which keeps its origin.
class Mapper {
 public:
  explicit Mapper(const Text& text) : text_(text) {}

  /// Calls `map(character)` for each character, which calls upper, lower or title.
  template <class Map>
  Text run(Map map) {
    Text result;
    for (const Text::Run& run : text_.runs()) {
      mapped_.clear();
      while (end_ < run.end) {
        begin_ = end_;
        map(next_character(text_.bytes(), end_));
      }
      result.append(mapped_, run.origin);
    }
    return result;
  }

  void upper(char32_t character) { append_upper(mapped_, character); }
  void title(char32_t character) { append_title(mapped_, character); }
  /// `from` and `to`: the part of the text whose characters count for a sigma.
  void lower(char32_t character, size_t from, size_t to) {
    if (character == kDottedI) {
      mapped_ += "i\u0307";
    } else if (character == kSigma) {
      const std::string_view part = std::string_view(text_.bytes()).substr(from, to - from);
      append_utf8(mapped_,
                  is_final(part, begin_ - from, end_ - from) ? kFinalSigma : lower_character(character));
    } else {
      append_utf8(mapped_, lower_character(character));
    }
  }
  void lower(char32_t character) { lower(character, 0, text_.size()); }
  size_t end() const { return end_; }

 private:
  const Text& text_;
  std::string mapped_;
  size_t begin_ = 0;  // bytes of the character at hand
  size_t end_ = 0;
};

bool parts_words(char32_t character) {
  static constexpr std::u32string_view kSeparators = U"-({[<";
  return is_space(character) || kSeparators.find(character) != std::u32string_view::npos;
}

}  // namespace

Text to_upper(const Text& text) {
  Mapper mapper(text);
  return mapper.run([&](char32_t character) { mapper.upper(character); });
}

Text to_lower(const Text& text) {
  Mapper mapper(text);
  return mapper.run([&](char32_t character) { mapper.lower(character); });
}

Text to_title(const Text& text) {
  bool inside = false;  // a word
  Mapper mapper(text);
  return mapper.run([&](char32_t character) {
    inside ? mapper.lower(character) : mapper.title(character);
    inside = is_cased(character);
  });
}

Text to_title_words(const Text& text) {
  bool inside = false;  // a word
  size_t rest = 0;      // where the word's characters behind the first one begin, and end
  size_t end = 0;
  Mapper mapper(text);
  return mapper.run([&](char32_t character) {
    if (parts_words(character)) {
      inside = false;
      return mapper.upper(character);
    }
    if (inside) return mapper.lower(character, rest, end);
    inside = true;
    mapper.upper(character);
    rest = end = mapper.end();
    for (size_t next = end; next < text.size(); end = next) {
      if (parts_words(next_character(text.bytes(), next))) break;
    }
  });
}

Text to_capitalized(const Text& text) {
  bool first = true;
  Mapper mapper(text);
  return mapper.run([&](char32_t character) {
    std::exchange(first, false) ? mapper.title(character) : mapper.lower(character);
  });
}

}  // namespace soliton::jinja
