#include "runtime/device/card_name.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace soliton {
namespace {

/// "NVIDIA H100-PCIe" has the words nvidia, h100 and pcie.
std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool belongs = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (belongs) {
      word += lower;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.insert(word);
  return words;
}

}  // namespace

bool is_called(std::string_view device, std::string_view card) {
  const std::set<std::string> words = words_of(device);
  const std::set<std::string> wanted = words_of(card);
  // Sizes of memory stand without their unit in a card's name.
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& word) {
    return words.contains(word) || words.contains(word + "gb");
  });
}

}  // namespace soliton
