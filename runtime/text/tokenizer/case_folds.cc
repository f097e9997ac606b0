#include "runtime/text/tokenizer/case_folds.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

namespace soliton::tokenization {

std::u32string folded(char32_t code) {
  std::array<utf8proc_int32_t, 8> parts{};
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts.data(),
                                                         parts.size(), UTF8PROC_CASEFOLD, &boundary);
  return {parts.begin(), parts.begin() + std::max<utf8proc_ssize_t>(count, 0)};
}

const std::vector<MultipleFold>& multiple_folds() {
  static const std::vector<MultipleFold> folds = [] {
    constexpr char32_t kLast = 0xfb17;  // a ligature
    std::vector<MultipleFold> result;
    for (char32_t code = 0x80; code <= kLast; ++code) {
      if (code == 0xd800) code = 0xe000;  // surrogates
      std::u32string parts = folded(code);
      if (parts.size() > 1) result.push_back({code, std::move(parts)});
    }
    return result;
  }();
  return folds;
}

}  // namespace soliton::tokenization
