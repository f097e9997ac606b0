#include "runtime/text/constrain/code_classes.h"

#include <utf8proc.h>

#include <array>
#include <utility>

namespace soliton::constrain {
namespace {

/// Codes of whose category `is_in` says yes, with some more.
template <class IsIn>
CodeSet of_categories(IsIn&& is_in, const CodeSet& more) {
  std::vector<CodeRange> ranges(more.begin(), more.end());
  for (char32_t code = 0; code <= kMaxCode; ++code) {
    if (!is_in(utf8proc_category(static_cast<utf8proc_int32_t>(code)))) continue;
    if (ranges.size() > more.size() && ranges.back().last + 1 == code) {
      ranges.back().last = code;
    } else {
      ranges.push_back({code, code});
    }
  }
  return code_set(std::move(ranges));
}

constexpr std::array<std::string_view, 30>
    kCategories = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                   "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                   "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};  // as utf8proc has them
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kLongNames = {{{"Letter", "L"},
                                                                                      {"Mark", "M"},
                                                                                      {"Number", "N"},
                                                                                      {"Punctuation", "P"},
                                                                                      {"Symbol", "S"},
                                                                                      {"Separator", "Z"},
                                                                                      {"Other", "C"}}};

/// [categories]
const std::vector<CodeSet>& all_categories() {
  static const std::vector<CodeSet> all = [] {
    std::vector<CodeSet> sets(kCategories.size());
    for (char32_t code = 0; code <= kMaxCode; ++code) {
      CodeSet& set = sets[static_cast<size_t>(utf8proc_category(static_cast<utf8proc_int32_t>(code)))];
      if (!set.empty() && set.back().last + 1 == code) {
        set.back().last = code;
      } else {
        set.push_back({code, code});
      }
    }
    return sets;
  }();
  return all;
}

}  // namespace

std::optional<CodeClass> category_codes(std::string_view name) {
  for (const auto& [known, letter] : kLongNames) {
    if (name == known) name = letter;
  }
  if (name.empty()) return std::nullopt;
  if (name == "ASCII") return CodeClass{{{0, 0x7f}}, {{0, 0x7f}}};
  // Java's, which are ASCII's there and more elsewhere.
  if (name == "Graph") return CodeClass{{{'!', '~'}}, {{0, kMaxCode}}};
  if (name == "Print") return CodeClass{{{' ', '~'}}, {{0, kMaxCode}}};
  std::vector<CodeRange> least;
  std::vector<CodeRange> most;
  for (size_t i = 0; i < kCategories.size(); ++i) {
    if (!kCategories[i].starts_with(name)) continue;
    const CodeSet& set = all_categories()[i];
    most.insert(most.end(), set.begin(), set.end());
    if (i != 0) least.insert(least.end(), set.begin(), set.end());
  }
  if (most.empty()) return std::nullopt;
  return CodeClass{code_set(std::move(least)), code_set(std::move(most))};
}

const CodeClass& digit_codes() {
  static const CodeClass codes = {
      {{'0', '9'}},
      of_categories([](utf8proc_category_t category) { return category == UTF8PROC_CATEGORY_ND; }, {})};
  return codes;
}

const CodeClass& word_codes() {
  static const CodeSet kAscii = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  static const CodeClass codes = {
      kAscii, of_categories(
                  [](utf8proc_category_t category) {
                    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) ||
                           category == UTF8PROC_CATEGORY_PC;
                  },
                  {{0x200c, 0x200d}})};
  return codes;
}

const CodeClass& space_codes() {
  static const CodeClass codes = {
      {{'\t', '\r'}, {' ', ' '}},
      of_categories([](utf8proc_category_t category) { return category == UTF8PROC_CATEGORY_ZS; },
                    {{'\t', '\r'}, {0x1c, 0x1f}, {0x85, 0x85}, {0x2028, 0x2029}, {0xfeff, 0xfeff}})};
  return codes;
}

const CodeClass& line_codes() {
  static const CodeClass codes = {complement(code_set({{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}})),
                                  complement({{'\n', '\n'}})};
  return codes;
}

}  // namespace soliton::constrain
