// What a cache of bytes costs in accuracy, as runtime/chat/README.md states it: the tiny model on stories that it has not been
// trained on (models/tiny-stories/grammar.py, another seed), by the plain forward pass.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "long_tests.h"
#include "runtime/text/tokenizer.h"
#include "runtime/verify/host_model.h"

namespace soliton {
namespace {

const std::string kRoot = SOLITON_SOURCE_DIR;

struct Predictions {
  double loss = 0;             // of all tokens but the first of each story
  std::vector<int> best = {};  // tokens
};

/// Of every story, with a cache of so many bits.
Predictions predict(int kv_bits) {
  const std::string folder = kRoot + "/models/tiny-stories";
  const Tokenizer tokenizer = Tokenizer::open(folder);
  HfConfig config = HfConfig::open(folder);
  config.facts.kv_bits = kv_bits;
  const TensorSource source = TensorSource::open(folder);
  const HostModel model(source, config);
  std::ifstream stories(kRoot + "/tests/verify/stories.txt");
  Predictions result;
  for (std::string story; std::getline(stories, story);) {
    std::vector<int32_t> text(tokenizer.prefix_ids().begin(), tokenizer.prefix_ids().end());
    const std::vector<int> ids = tokenizer.encode(story);
    text.insert(text.end(), ids.begin(), ids.end());
    const std::vector<float> logits = model.logits(text, 0);
    const size_t vocabulary = logits.size() / text.size();
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      const auto own = std::span(logits).subspan(i * vocabulary, vocabulary);
      const auto most = std::max_element(own.begin(), own.end());
      double sum = 0;
      for (const float logit : own) sum += std::exp(static_cast<double>(logit) - *most);
      result.loss += std::log(sum) + *most - own[static_cast<size_t>(text[i + 1])];
      result.best.push_back(static_cast<int>(most - own.begin()));
    }
  }
  return result;
}

TEST(CacheAccuracy, IsWhatTheReadmeSays) {
  SOLITON_LONG_RUNS_ONLY("a figure of the documents");
  std::ifstream file(kRoot + "/runtime/chat/README.md");
  const std::string readme(std::istreambuf_iterator<char>(file), {});
  const Predictions f16 = predict(16);
  const size_t num_tokens = f16.best.size();
  for (const int bits : {8, 16}) {
    const Predictions own = bits == 16 ? f16 : predict(bits);
    size_t same = 0;
    for (size_t i = 0; i < num_tokens; ++i) same += own.best[i] == f16.best[i] ? 1 : 0;
    const std::string row = fmt::format(
        "| {:.4f} | {} of {} |", std::exp(own.loss / static_cast<double>(num_tokens)), same, num_tokens);
    EXPECT_NE(readme.find(row), std::string::npos) << "--kv-bits " << bits << ": " << row;
  }
}

}  // namespace
}  // namespace soliton
