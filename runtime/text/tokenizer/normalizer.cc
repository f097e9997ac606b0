#include "runtime/text/tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "runtime/text/tokenizer/byte_letters.h"
#include "runtime/text/tokenizer/parts.h"
#include "runtime/text/tokenizer/pattern.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::tokenization {
namespace {

using Steps = std::vector<Normalizer::Step>;
using CodePoint = utf8proc_int32_t;

// ---- Unicode's normal forms ----

int combining_class(CodePoint code) {
  return utf8proc_get_property(code)->combining_class;
}

/// Appends the code point's full decomposition.
void decompose(CodePoint code, utf8proc_option_t options, std::vector<CodePoint>& codes) {
  constexpr size_t kLongest = 32;  // U+FDFA gives 18
  std::array<CodePoint, kLongest> parts{};
  int boundary = 0;
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(code, parts.data(), parts.size(), options, &boundary);
  codes.insert(codes.end(), parts.begin(), parts.begin() + count);
}

/// Sorts each run of combining characters by class; those of one class keep their order. utf8proc's own sort
/// takes quadratic time on a long run.
void order_marks(std::vector<CodePoint>& codes) {
  for (auto begin = codes.begin(); begin != codes.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end =
        std::find_if(begin, codes.end(), [](CodePoint code) { return combining_class(code) == 0; });
    std::stable_sort(begin, end,
                     [](CodePoint a, CodePoint b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

/// Whether no form changes the text: it has no character from U+0300 on, nor, unless the form composes
/// canonically, one outside ASCII.
bool is_surely_normal(std::string_view text, bool composes_canonically) {
  const unsigned char limit = composes_canonically ? 0xcc : 0x80;  // U+0300 begins with CC
  return std::all_of(text.begin(), text.end(),
                     [limit](char byte) { return static_cast<unsigned char>(byte) < limit; });
}

void normalize(Section& section, TextLimit& limit, bool compatibility, bool compose) {
  if (is_surely_normal(section.text, compose && !compatibility)) return;
  constexpr unsigned kDecompose = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  const auto options = static_cast<utf8proc_option_t>(kDecompose | (compatibility ? UTF8PROC_COMPAT : 0));
  std::vector<CodePoint> codes;
  codes.reserve(section.text.size());
  const std::string_view text = section.text;
  for (size_t i = 0; i < text.size();) {
    const Character next = first_character(text.substr(i));
    decompose(static_cast<CodePoint>(next.code), options, codes);
    limit.require(codes.size());
    i += next.length;
  }
  order_marks(codes);
  auto length = static_cast<utf8proc_ssize_t>(codes.size());
  if (compose) {
    constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    length = utf8proc_normalize_utf32(codes.data(), length, kCompose);
  }
  std::string result;
  result.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    append_character(result, static_cast<char32_t>(codes[static_cast<size_t>(i)]));
  }
  section.text = std::move(result);
  if (section.origin_bytes > 0) section.origin_bytes = character_length(section.text[0]);
}

template <bool kCompatibility, bool kCompose>
void read_form(const JsonView&, Steps& steps) {
  steps.emplace_back(
      [](Section& section, TextLimit& limit) { normalize(section, limit, kCompatibility, kCompose); });
}

// ---- the others ----

void append_lowercase(std::string& result, std::string_view text) {
  constexpr char32_t kDottedI = 0x130;  // the one character whose lower case is two, whatever the language
  for (size_t i = 0; i < text.size();) {
    const Character next = first_character(text.substr(i));
    if (next.code == kDottedI) {
      result += "i\u0307";
    } else {
      append_character(result, static_cast<char32_t>(utf8proc_tolower(static_cast<CodePoint>(next.code))));
    }
    i += next.length;
  }
}

/// Replaces the text by what `append` makes of it character by character.
template <class Append>
void map_characters(Section& section, Append append) {
  const std::string_view text = section.text;
  std::string result;
  result.reserve(text.size());
  append(result, text.substr(0, section.origin_bytes));
  const size_t origin_bytes = result.size();
  append(result, text.substr(section.origin_bytes));
  section = {.text = std::move(result), .origin_bytes = origin_bytes};
}

void read_lowercase(const JsonView&, Steps& steps) {
  steps.emplace_back([](Section& section, TextLimit&) { map_characters(section, append_lowercase); });
}

void read_byte_level(const JsonView&, Steps& steps) {
  steps.emplace_back([](Section& section, TextLimit&) { map_characters(section, append_letters); });
}

void read_strip(const JsonView& part, Steps& steps) {
  const bool left = part["strip_left"].boolean();
  const bool right = part["strip_right"].boolean();
  steps.emplace_back([left, right](Section& section, TextLimit&) {
    if (right) section.text.erase(section.text.size() - trailing_space(section.text));
    const size_t removed = left ? leading_space(section.text) : 0;
    section.text.erase(0, removed);
    if (removed > 0 || section.text.empty()) section.origin_bytes = 0;
  });
}

void read_prepend(const JsonView& part, Steps& steps) {
  steps.emplace_back([prefix = part["prepend"].string()](Section& section, TextLimit&) {
    if (section.text.empty()) return;
    section.text.insert(0, prefix);
    if (section.origin_bytes > 0) section.origin_bytes += prefix.size();
  });
}

void read_replace(const JsonView& part, Steps& steps) {
  steps.emplace_back([pattern = Pattern::read(part["pattern"]), content = part["content"].string()](
                         Section& section, TextLimit& limit) {
    const std::string_view text = section.text;
    if (text.empty()) return;
    std::vector<Match> matches;
    pattern.find(text, limit, matches);
    Section result;
    result.text.reserve(text.size());
    for (const Match& match : matches) {
      const std::string_view part = text.substr(match.begin, match.end - match.begin);
      result.text += match.matched ? content : part;
      limit.require(result.text.size());
      // What replaces a match comes from the match's last character.
      const size_t last = match.matched ? std::max(match.end, size_t{1}) - 1 : match.begin;
      if (last >= section.origin_bytes) continue;
      const size_t beyond = match.matched ? 0 : match.end - std::min(match.end, section.origin_bytes);
      result.origin_bytes = result.text.size() - beyond;
    }
    section = std::move(result);
  });
}

constexpr std::array<PartReader<Steps>, 9> kReaders = {{
    {"NFC", read_form<false, true>},
    {"NFD", read_form<false, false>},
    {"NFKC", read_form<true, true>},
    {"NFKD", read_form<true, false>},
    {"Lowercase", read_lowercase},
    {"Strip", read_strip},
    {"Prepend", read_prepend},
    {"Replace", read_replace},
    {"ByteLevel", read_byte_level},
}};

}  // namespace

Normalizer Normalizer::read(const JsonView& normalizer) {
  Normalizer result;
  if (!normalizer.is_null()) {
    read_part<Steps>(normalizer, "normalizers", kReaders, result.steps_);
  }
  return result;
}

void Normalizer::apply(Section& section, TextLimit& limit) const {
  for (const Step& step : steps_) {
    step(section, limit);
    limit.require(section.text.size());
  }
}

}  // namespace soliton::tokenization
