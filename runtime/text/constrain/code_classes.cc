#include "runtime/text/constrain/code_classes.h"

#include <utf8proc.h>

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

}  // namespace

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
