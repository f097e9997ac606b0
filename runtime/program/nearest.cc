#include "runtime/program/nearest.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace soliton {
namespace {

constexpr size_t kMaxLetters = 300;  // of what is compared, which takes the product of two lengths

/// How many letters have to be put in, left out, replaced or exchanged with their neighbour to get from one to the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last;
  std::vector<size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> row = {i};
    for (size_t j = 1; j <= b.size(); ++j) {
      row.push_back(std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)}));
      const bool is_exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_exchanged) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, row);
  }
  return last.back();
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

}  // namespace

std::string nearest_word(std::string_view written, const std::vector<std::string>& candidates) {
  if (written.size() > kMaxLetters) return "";
  const std::string name = lower_case(written);
  std::string nearest;
  size_t least = name.size() / 3 + 1;  // a third of the letters may be wrong
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxLetters) continue;
    constexpr size_t kMinCommon = 4;  // letters of --temp in --temperature
    const std::string other = lower_case(candidate);
    const std::string& shorter = other.size() < name.size() ? other : name;
    const std::string& longer = other.size() < name.size() ? name : other;
    const bool begins_alike = shorter.size() >= kMinCommon && longer.starts_with(shorter);
    const size_t apart = begins_alike ? 1 : distance(name, other);
    if (apart >= least) continue;
    least = apart;
    nearest = candidate;
  }
  return nearest;
}

std::string did_you_mean(const std::string& word) {
  return word.empty() ? "" : "; did you mean " + word + "?";
}

}  // namespace soliton
