// Encoding speed on ordinary English, one core, for each family: printed, and failing only below half of what
// we promise. Processor time counts, so that a busy machine matters little but quadratic work does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "runtime/tokenizer.h"

namespace soliton {
namespace {

constexpr double kPromised = 5;  // MB/s

/// A word of some syllables; the frequent ones, which come first, are short.
std::string make_word(size_t rank, std::mt19937& random) {
  const auto pick = [&](std::string_view letters) { return letters[random() % letters.size()]; };
  const size_t num_syllables = 1 + static_cast<size_t>(std::log10(1.0 + static_cast<double>(rank) / 20));
  std::string word;
  for (size_t i = 0; i < num_syllables; ++i) {
    word += pick("tnshrdlcmwfgypb");
    word += pick("eeeaaoiiu");
    if (random() % 2 == 0) word += pick("nrstdl");
  }
  return word;
}

/// Sentences of words drawn by Zipf's law from as many as an English text of this size has.
std::string english(size_t num_bytes) {
  constexpr size_t kNumWords = 30'000;
  std::mt19937 random(1);  // NOLINT: the same text each time
  std::vector<std::string> words(kNumWords);
  for (size_t rank = 0; rank < kNumWords; ++rank) words[rank] = make_word(rank, random);
  std::string text;
  bool begins = true;
  while (text.size() < num_bytes) {
    // The logarithm of a rank under Zipf's law is even.
    const double even = static_cast<double>(random()) / static_cast<double>(std::mt19937::max());
    const auto rank = static_cast<size_t>(std::pow(static_cast<double>(kNumWords), even)) - 1;
    std::string word = words[std::min(rank, kNumWords - 1)];
    if (begins) word[0] = static_cast<char>(std::toupper(word[0]));
    if (random() % 100 == 0) word = std::to_string(random() % 3000);
    text += word;
    begins = random() % 15 == 0;
    text += begins ? ". " : random() % 12 == 0 ? ", " : " ";
    if (begins && random() % 8 == 0) text += "\n\n";
  }
  return text;
}

class TokenizerSpeed : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerSpeed, EncodesEnglish) {
  const auto folder = std::filesystem::path(SOLITON_SOURCE_DIR) / "tests/runtime/data" / GetParam();
  const Tokenizer tokenizer = Tokenizer::open(folder);
  const std::string text = english(4'000'000);
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const std::clock_t start = std::clock();
    const size_t num_ids = tokenizer.encode(text).size();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    ASSERT_GT(num_ids, text.size() / 8);
    best = std::max(best, static_cast<double>(text.size()) / 1e6 / seconds);
  }
  std::cout << GetParam() << ": " << best << " MB/s\n";
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_GT(best, kPromised / 2);
#endif
}
INSTANTIATE_TEST_SUITE_P(Families, TokenizerSpeed,
                         testing::Values("llama", "qwen", "nemo", "gpt2", "smollm", "mistral", "mistral3"));

}  // namespace
}  // namespace soliton
