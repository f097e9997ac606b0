// Beam search against transformers' generate(), whose results tests/goldens/make_beams.py has written: on the reference
// model, and on the emulated kernels of tiny models.
#include "runtime/answer/beam_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "layout/page.h"
#include "long_tests.h"
#include "models/error.h"
#include "models/hf_config.h"
#include "runtime/weights/safetensors.h"

namespace soliton {
namespace {

using Tokens = std::vector<int32_t>;

struct GoldenSearch {
  Tokens prompt;
  BeamRequest request;
  Tokens stop_tokens;
  std::vector<Beam> beams;
};

std::vector<GoldenSearch> golden_searches(const std::string& model) {
  std::ifstream file(std::filesystem::path(SOLITON_SOURCE_DIR) / "tests" / "goldens" /
                     (model + "-beams.json"));
  const auto golden = nlohmann::json::parse(file);
  std::vector<GoldenSearch> searches;
  for (const auto& item : golden.at("cases")) {
    GoldenSearch search{.prompt = item.at("prompt_tokens").get<Tokens>(),
                        .request = {.num_beams = item.at("num_beams").get<int>(),
                                    .max_tokens = item.at("max_tokens").get<int>(),
                                    .length_penalty = item.at("length_penalty").get<double>()},
                        .stop_tokens = item.at("stop_tokens").get<Tokens>(),
                        .beams = {}};
    for (const auto& beam : item.at("beams"))
      search.beams.push_back({beam.at("tokens").get<Tokens>(), beam.at("score").get<float>()});
    searches.push_back(std::move(search));
  }
  return searches;
}

// ---- The search alone

/// Logits of a model whose every next token has these probabilities.
std::vector<float> logits_of(const std::vector<double>& probabilities, size_t rows) {
  std::vector<float> logits;
  for (size_t row = 0; row < rows; ++row) {
    for (const double probability : probabilities)
      logits.push_back(static_cast<float>(std::log(probability)));
  }
  return logits;
}

TEST(BeamSearch, KeepsTheLikeliestTexts) {
  BeamSearch search({.num_beams = 3, .max_tokens = 2, .length_penalty = 0});
  EXPECT_EQ(search.advance(logits_of({0.6, 0.3, 0.1}, 1)), (std::vector<size_t>{0, 0, 0}));
  ASSERT_EQ(search.running().size(), 3u);
  EXPECT_EQ(search.running()[1].tokens, Tokens{1});
  EXPECT_TRUE(search.advance(logits_of({0.6, 0.3, 0.1}, 3)).empty());
  const std::vector<Beam> best = search.best();
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].tokens, (Tokens{0, 0}));
  EXPECT_NEAR(best[0].score, std::log(0.36), 1e-6);
  EXPECT_EQ(best[1].tokens, (Tokens{0, 1}));  // as likely as 1 0, and of the better beam
  EXPECT_EQ(best[2].tokens, (Tokens{1, 0}));
}

// One by one: a beam that ends makes room for none of those that go on.
TEST(BeamSearch, EndsWhenNoBeamCanBecomeBetter) {
  const Tokens stops = {2};
  for (const auto& [penalty, num_steps] : {std::pair(0.0, 2), std::pair(1.0, 3)}) {
    BeamSearch search({.num_beams = 2, .max_tokens = 50, .length_penalty = penalty, .stop_tokens = stops});
    int steps = 0;
    for (; !search.running().empty() && steps < 50; ++steps) {
      search.advance(logits_of({0.3, 0.1, 0.6}, search.running().size()));
      EXPECT_TRUE(search.running().empty() || search.running().size() == 2);
    }
    EXPECT_EQ(search.best()[0].tokens, Tokens{2});
    EXPECT_EQ(search.best().size(), 2u);
    EXPECT_LE(steps, num_steps) << penalty;
  }
}

TEST(BeamSearch, HasWhatRunsWhereNothingHasEnded) {
  BeamSearch search({.num_beams = 2, .max_tokens = 5});
  search.advance(logits_of({0.3, 0.7}, 1));
  ASSERT_EQ(search.best().size(), 2u);
  EXPECT_EQ(search.best()[0].tokens, Tokens{1});
}

// ---- On the tiny models

class BeamsOfATinyModel : public testing::TestWithParam<const char*> {
 protected:
  BeamsOfATinyModel() {
    const std::string folder = std::string(SOLITON_SOURCE_DIR) + "/models/" + GetParam();
    const HfConfig config = HfConfig::open(folder);
    constexpr int kContext = 192;
    engine_ = std::make_unique<Engine>(
        KernelLibrary::open(std::string(SOLITON_KERNELS) + "/" + GetParam() + "-cpu.so"),
        EngineOptions{.context = kContext, .pool_tokens = 4096});
    engine_->load(TensorSource::open(folder), nullptr, config.quantization_or_null());
  }

  BeamResult search(const GoldenSearch& golden) {
    BeamRequest request = golden.request;
    request.prompt = golden.prompt;
    request.stop_tokens = golden.stop_tokens;
    return decode_beams(*engine_, request);
  }

  std::unique_ptr<Engine> engine_;
};

INSTANTIATE_TEST_SUITE_P(Models, BeamsOfATinyModel, testing::Values("tiny-stories", "tiny-stories-experts"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(BeamsOfATinyModel, EqualTransformers) {
  const bool is_mixture = GetParam() != std::string("tiny-stories");
  const int kShort = is_mixture ? 24 : 40;  // tokens
  for (const GoldenSearch& golden : golden_searches(GetParam())) {
    if (golden.request.max_tokens > kShort && !long_tests()) continue;
    const bool is_of_both = golden.request.num_beams == 2 || golden.request.num_beams == 8;
    if (is_of_both && !is_mixture && !long_tests()) continue;  // as the mixture's
    SCOPED_TRACE(testing::Message() << golden.request.num_beams << " beams, length penalty "
                                    << golden.request.length_penalty);
    const BeamResult result = search(golden);
    ASSERT_EQ(result.beams.size(), golden.beams.size());
    for (size_t i = 0; i < golden.beams.size(); ++i) {
      EXPECT_EQ(result.beams[i].tokens, golden.beams[i].tokens) << "beam " << i;
      EXPECT_NEAR(result.beams[i].score, golden.beams[i].score, 1e-3 * (1 + std::abs(golden.beams[i].score)));
    }
    EXPECT_EQ(engine_->position(), 0);
    EXPECT_EQ(engine_->tree().num_free_pages(), engine_->tree().num_pages()) << "all pages are given back";
  }
}

TEST_P(BeamsOfATinyModel, FitThePagesThatAreAskedFor) {
  const GoldenSearch golden = golden_searches(GetParam()).at(0);
  const int64_t needed = beam_pool_tokens(golden.prompt.size(), 8, 70);
  EXPECT_LE(needed, 64 * (1 + 8 * 4));
  EXPECT_GE(needed, 64 * (1 + 8 * 2));
}

TEST_P(BeamsOfATinyModel, EndWhenTheCallerWantsNoMore) {
  const GoldenSearch golden = golden_searches(GetParam()).at(1);
  BeamRequest request = golden.request;
  request.prompt = golden.prompt;
  const int prompt_steps = ceil_divide(static_cast<int>(golden.prompt.size()) - 1, engine_->max_rows());
  int left = prompt_steps + 3;
  const BeamResult result = decode_beams(*engine_, request, [&] { return left-- > 0; });
  EXPECT_TRUE(result.was_interrupted);
  EXPECT_EQ(result.times_ns.size(), 3u);
  ASSERT_EQ(result.beams.size(), 4u);
  EXPECT_EQ(result.beams[0].tokens.size(), 3u);
  // While the prompt is fed, too.
  const std::vector<int32_t> long_prompt(3 * static_cast<size_t>(engine_->max_rows()), golden.prompt[0]);
  request.prompt = long_prompt;
  std::vector<size_t> fed;
  left = 1;
  request.on_fed = [&](size_t num_fed) { fed.push_back(num_fed); };
  const BeamResult none = decode_beams(*engine_, request, [&] { return left-- > 0; });
  EXPECT_TRUE(none.was_interrupted);
  EXPECT_TRUE(none.times_ns.empty());
  EXPECT_EQ(fed, std::vector<size_t>{static_cast<size_t>(engine_->max_rows())});
  request.num_beams = engine_->max_rows() + 1;
  EXPECT_THROW(decode_beams(*engine_, request), Error);
}

}  // namespace
}  // namespace soliton
