#include "runtime/text/constrain/far_classes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "runtime/text/constrain/vocabulary.h"

namespace soliton::constrain {
namespace {

static_assert(Characters::kNumFar <= 8);

/// A class, and how many of its characters are before each of its ranges.
struct CountedClass {
  explicit CountedClass(const CodeSet& set) : codes(set) {
    for (const CodeRange& range : codes) {
      before.push_back(size);
      size += range.last - range.first + 1;
    }
  }

  /// Characters before one.
  size_t rank(char32_t code) const {
    const auto behind = std::upper_bound(codes.begin(), codes.end(), code,
                                         [](char32_t c, const CodeRange& range) { return c < range.first; });
    if (behind == codes.begin()) return 0;
    const CodeRange& range = *std::prev(behind);
    const auto index = static_cast<size_t>(std::distance(codes.begin(), behind)) - 1;
    return before[index] + std::min<size_t>(code, range.last + size_t{1}) - range.first;
  }

  const CodeSet& codes;
  std::vector<size_t> before = {};
  size_t size = 0;
};

const std::vector<CountedClass>& counted_classes() {
  static const std::vector<CountedClass> classes(Vocabulary::far_text().begin(),
                                                 Vocabulary::far_text().end());
  return classes;
}

}  // namespace

FarClasses far_classes(const CodeSet& set) {
  FarClasses classes;
  if (set.empty() || set.back().last < 0x80) return classes;
  for (size_t i = 0; i < counted_classes().size(); ++i) {
    const CountedClass& known = counted_classes()[i];
    size_t num_common = 0;
    for (const CodeRange& range : set) {
      if (range.last >= 0x80) num_common += known.rank(range.last + 1) - known.rank(range.first);
    }
    const auto bit = static_cast<uint8_t>(1U << i);
    if (num_common == known.size) {
      classes.all |= bit;
    } else if (num_common > 0) {
      classes.some |= bit;
    }
  }
  return classes;
}

}  // namespace soliton::constrain
