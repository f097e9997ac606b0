// Encoding speed on one core, of English and code: with each family's small tokenizer, and with vocabularies as large
// as published ones. Printed, and failing only below half of what we promise. Processor time counts, so that a busy
// machine matters little but quadratic work does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "long_tests.h"
#include "runtime/text/tokenizer.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

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

/// The frequent ones first.
std::vector<std::string> make_words(size_t count, uint32_t seed) {
  std::mt19937 random(seed);  // NOLINT: the same words each time
  std::vector<std::string> words(count);
  for (size_t rank = 0; rank < count; ++rank) words[rank] = make_word(rank, random);
  return words;
}

/// Words drawn by Zipf's law, under which the logarithm of a rank is even.
class Words {
 public:
  explicit Words(size_t count) : words_(make_words(count, 1)) {}
  size_t below(size_t limit) { return random_() % limit; }
  const std::string& draw() {
    const double even = static_cast<double>(random_()) / static_cast<double>(std::mt19937::max());
    const auto rank = static_cast<size_t>(std::pow(static_cast<double>(words_.size()), even)) - 1;
    return words_[std::min(rank, words_.size() - 1)];
  }

 private:
  std::vector<std::string> words_;
  std::mt19937 random_{2};  // NOLINT
};

constexpr size_t kNumWords = 30'000;  // as many as an English text of some megabytes has

std::string english(size_t num_bytes) {
  Words words(kNumWords);
  std::string text;
  bool begins = true;
  while (text.size() < num_bytes) {
    std::string word = words.draw();
    if (begins) word[0] = static_cast<char>(std::toupper(word[0]));
    if (words.below(100) == 0) word = std::to_string(words.below(3000));
    text += word;
    begins = words.below(15) == 0;
    text += begins ? ". " : words.below(12) == 0 ? ", " : " ";
    if (begins && words.below(8) == 0) text += "\n\n";
  }
  return text;
}

/// Indented lines of calls and assignments; names of one to three words.
std::string code(size_t num_bytes) {
  Words words(kNumWords);
  const auto name = [&] {
    std::string name = words.draw();
    for (size_t i = words.below(3); i > 0; --i) {
      std::string next = words.draw();
      if (words.below(4) == 0) {
        next[0] = static_cast<char>(std::toupper(next[0]));
        name += next;
      } else {
        name += "_" + next;
      }
    }
    return name;
  };
  std::string text;
  while (text.size() < num_bytes) {
    text.append(4 * words.below(4), ' ');
    switch (words.below(4)) {
      case 0:
        text += "if (" + name() + " != " + std::to_string(words.below(500)) + ") {\n";
        break;
      case 1:
        text += name() + "[i] += " + name() + "->" + name() + ";\n";
        break;
      case 2:
        text += "}\n\n// " + name() + " " + name() + " " + name() + "\n";
        break;
      default:
        text += "const auto " + name() + " = " + name() + "(" + name() + ", \"" + name() + "\");\n";
    }
  }
  return text;
}

constexpr size_t kTextBytes = 4'000'000;

void expect_speed(const Tokenizer& tokenizer, const std::string& name, const std::string& text) {
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    if (best > kPromised && !long_tests()) break;
    const std::clock_t start = std::clock();
    const size_t num_ids = tokenizer.encode(text).size();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    ASSERT_GT(num_ids, text.size() / 8);
    best = std::max(best, static_cast<double>(text.size()) / 1e6 / seconds);
  }
  std::cout << name << ": " << best << " MB/s\n";
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_GT(best, kPromised / 2) << name;
#endif
}

fs::path folder_of(const std::string& family) {
  return fs::path(SOLITON_SOURCE_DIR) / "tests/runtime/data" / family;
}

using TokenizerSpeed = testing::TestWithParam<const char*>;

TEST_P(TokenizerSpeed, EncodesEnglish) {
  expect_speed(Tokenizer::open(folder_of(GetParam())), GetParam(), english(kTextBytes));
}
INSTANTIATE_TEST_SUITE_P(Families, TokenizerSpeed,
                         testing::Values("llama", "qwen", "nemo", "gpt2", "smollm", "mistral", "mistral3"));

/// Grows a vocabulary by words, the frequent ones first: what the merges so far leave of a word is merged from the left,
/// pair by pair. So frequent words become one token by a few merges, and rare ones are made of parts.
class Vocabulary {
 public:
  /// `tokens`: text by id, of all characters at least.
  explicit Vocabulary(json tokens) : ids_(std::move(tokens)), next_id_(static_cast<int>(ids_.size())) {}

  void add_word(const std::string& mark, const std::string& word) {
    std::vector<std::string> parts = {mark};
    for (const char character : word) parts.emplace_back(1, character);
    merge(parts);
    while (parts.size() > 1) {
      ranks_.try_emplace({parts[0], parts[1]}, ranks_.size());
      merges_.push_back({parts[0], parts[1]});
      const std::string joined = parts[0] + parts[1];
      if (ids_.emplace(joined, next_id_).second) ++next_id_;
      parts.erase(parts.begin());
      parts[0] = joined;
    }
  }
  size_t size() const { return ids_.size(); }
  const json& ids() const { return ids_; }
  const json& merges() const { return merges_; }

 private:
  /// As an encoder does: the lowest rank first.
  void merge(std::vector<std::string>& parts) const {
    while (true) {
      size_t best = parts.size();
      size_t lowest = ranks_.size();
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = ranks_.find({parts[i], parts[i + 1]});
        if (found == ranks_.end() || found->second >= lowest) continue;
        best = i;
        lowest = found->second;
      }
      if (best == parts.size()) return;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
  }

  json ids_;
  int next_id_;
  std::map<std::pair<std::string, std::string>, size_t> ranks_;
  json merges_ = json::array();
};

/// A vocabulary's tokens that are one character, or stand for a byte; numbered anew.
json characters_of(const json& vocabulary) {
  json characters = json::object();
  for (const auto& [text, id] : vocabulary.items()) {
    const auto is_trailing = [](char byte) { return (byte & 0xc0) == 0x80; };
    const bool is_character = std::all_of(text.begin() + 1, text.end(), is_trailing);
    const bool is_byte = text.size() == 6 && text.starts_with("<0x");
    if (is_character || is_byte || text == "<unk>") characters.emplace(text, characters.size());
  }
  return characters;
}

constexpr size_t kLargeVocabulary = 128'000;

/// The tokenizer with another vocabulary.
json with_large_vocabulary(json tokenizer) {
  // What stands before a word for the space.
  const std::string mark = tokenizer["model"]["byte_fallback"].get<bool>() ? "\u2581" : "\u0120";
  Vocabulary vocabulary(characters_of(tokenizer["model"]["vocab"]));
  for (const std::string& word : make_words(2 * kLargeVocabulary, 1)) {
    if (vocabulary.size() >= kLargeVocabulary) break;
    vocabulary.add_word(mark, word);
  }
  tokenizer["model"]["vocab"] = vocabulary.ids();
  tokenizer["model"]["merges"] = vocabulary.merges();
  tokenizer["added_tokens"] = json::array();
  tokenizer["post_processor"] = nullptr;
  return tokenizer;
}

using LargeTokenizerSpeed = testing::TestWithParam<const char*>;

TEST_P(LargeTokenizerSpeed, EncodesEnglishAndCode) {
  SOLITON_LONG_RUNS_ONLY("a speed, of the whole vocabulary");
  const std::string name = GetParam();
  const TemporaryFolder folder;
  const json small = json::parse(std::ifstream(folder_of(name) / "tokenizer.json"));
  folder.write("tokenizer.json", with_large_vocabulary(small).dump());
  const Tokenizer tokenizer = Tokenizer::open(folder.path());
  ASSERT_GE(tokenizer.vocabulary_size(), static_cast<int>(kLargeVocabulary));
  expect_speed(tokenizer, name + ", English", english(kTextBytes));
  expect_speed(tokenizer, name + ", code", code(kTextBytes));
}
INSTANTIATE_TEST_SUITE_P(Families, LargeTokenizerSpeed, testing::Values("llama", "mistral3"));

}  // namespace
}  // namespace soliton
