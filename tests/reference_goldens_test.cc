// The reference forward pass against transformers' results in tests/goldens, made in float32 by
// tests/goldens/make_goldens.py.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "layout/fact_list.h"
#include "long_tests.h"
#include "models/hf_config.h"
#include "models/model_config.h"
#include "models/strict_json.h"
#include "tests/reference_testing.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kGoldens = fs::path(SOLITON_SOURCE_DIR) / "tests" / "goldens";

// transformers sums in float. Partial sums of order one, rounded n times, err by about sqrt(n) half ulps;
// twice that for the longest sum of any pair, as errors of several sums meet. Measured: 4.5e-6. A wrong
// detail shows above 1e-3.
const double kFloatTolerance = 2.0 * std::sqrt(28672.0) * 0x1p-24;

ModelFacts read_facts(const json& golden) {
  ModelFacts facts;
  facts.num_experts = golden.value("num_experts", 0);  // what else is visited depends on it
  for_each_fact(facts, [&golden](const char* name, auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    // Goldens do not speak of what their models don't have.
    if (!golden.contains(name)) return;
    if constexpr (std::is_enum_v<Value>) {
      value = static_cast<Value>(golden.at(name).get<int>());
    } else {
      value = golden.at(name).get<Value>();
    }
  });
  return facts;
}

uint64_t checksum(const Bf16Bits& bits) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bits.size(); ++i) sum += (i + 1) * bits[i];
  return sum;
}

void expect_checksums(const ReferenceWeights& weights, const ModelFacts& facts, const json& expected) {
  size_t count = 0;
  for_each_tensor(weights, facts, [&](const std::string& name, const auto&, const Bf16Bits& bits) {
    ASSERT_EQ(std::to_string(checksum(bits)), expected.at(name).get<std::string>()) << name;
    ++count;
  });
  EXPECT_EQ(count, expected.size());
}

void expect_frequencies(const ModelFacts& facts, const json& expected) {
  // torch's power of a vector of floats may be an ulp off, and so its reciprocal.
  constexpr float kTwoUlps = 0x1p-22f;
  const std::vector<float> frequencies = rotary_frequencies(facts);
  ASSERT_EQ(frequencies.size(), expected.size());
  for (size_t i = 0; i < frequencies.size(); ++i) {
    EXPECT_NEAR(frequencies[i], expected[i].get<float>(), kTwoUlps * frequencies[i]) << "pair " << i;
  }
}

class LayerPair : public testing::TestWithParam<const char*> {};

TEST_P(LayerPair, AgreesWithTransformers) {
  // Shapes that differ from others in sizes alone.
  const std::set<std::string_view> large = {"llama-3.2-3b", "llama-3.1-8b", "llama-3.1-70b"};
  if (!long_tests() && large.contains(GetParam())) GTEST_SKIP() << "in long runs only";
  const json golden = read_json(kGoldens / (std::string(GetParam()) + "-pair.json"));
  const ModelFacts facts = read_facts(golden.at("facts"));
  expect_frequencies(facts, golden.at("inverse_frequencies"));
  const auto weights =
      std::make_shared<const ReferenceWeights>(random_weights(facts, golden.at("seed").get<uint64_t>()));
  expect_checksums(*weights, facts, golden.at("tensor_checksums"));

  const auto tokens = golden.at("tokens").get<std::vector<int>>();
  const auto expected = golden.at("logits").get<std::vector<std::vector<float>>>();
  const auto logits = run(ReferenceModel(facts, weights, {.round_cache = false}), tokens);
  double worst = 0.0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_LT(max_difference(logits[i], expected[i]), kFloatTolerance) << "position " << i;
    worst = std::max(worst, max_difference(logits[i], expected[i]));
  }
  RecordProperty("max_difference", fmt::format("{:.3g}", worst));
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

// The largest takes 3.4 GB and ten seconds.
INSTANTIATE_TEST_SUITE_P(Shapes, LayerPair,
                         testing::Values("llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b", "llama-3.1-70b",
                                         "qwen2.5-1.5b", "qwen3-0.6b"),
                         test_name);

class Mixture : public testing::TestWithParam<const char*> {};

TEST_P(Mixture, AgreesWithTransformers) {
  const std::string name = GetParam();
  const fs::path models = fs::path(SOLITON_SOURCE_DIR) / "tests" / "models";
  ModelFacts facts = load_model_config(models / (name + ".yaml")).facts;
  facts.weight_bits = 16;  // what transformers was given, whatever kernels are made for
  const json golden = read_json(kGoldens / (name + ".json"));
  const auto weights =
      std::make_shared<const ReferenceWeights>(random_weights(facts, golden.at("seed").get<uint64_t>()));
  expect_checksums(*weights, facts, golden.at("tensor_checksums"));
  const auto expected = golden.at("logits").get<std::vector<std::vector<float>>>();
  const auto logits = run(ReferenceModel(facts, weights, {.round_cache = false}),
                          golden.at("tokens").get<std::vector<int>>());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_LT(max_difference(logits[i], expected[i]), kFloatTolerance) << "position " << i;
}

INSTANTIATE_TEST_SUITE_P(Families, Mixture,
                         testing::Values("mixture-shared", "int4-sigmoid", "mixture-joint", "mixture-sinks"),
                         test_name);

// From config.json to logits and greedy tokens, beyond the windows: tests/goldens/make_families.py.
class Families : public testing::TestWithParam<const char*> {};

TEST_P(Families, AgreeWithTransformers) {
  constexpr double kTie = 1e-3;
  const json golden = read_json(kGoldens / "families" / (std::string(GetParam()) + ".json"));
  const ModelFacts facts = HfConfig::read(golden.at("config"), "config.json", {}).facts;
  const auto weights =
      std::make_shared<const ReferenceWeights>(random_weights(facts, golden.at("seed").get<uint64_t>()));
  auto tokens = golden.at("prompt").get<std::vector<int>>();
  const size_t num_prompt = tokens.size();
  const auto greedy = golden.at("tokens").get<std::vector<int>>();
  const auto margins = golden.at("margins").get<std::vector<double>>();
  tokens.insert(tokens.end(), greedy.begin(), greedy.end());
  ASSERT_EQ(greedy.size(), 128u);
  const auto logits = run(ReferenceModel(facts, weights, {.round_cache = false}), tokens);
  for (size_t i = 0; i < greedy.size(); ++i) {
    const int token = argmax(logits[num_prompt - 1 + i]);
    EXPECT_TRUE(margins[i] <= kTie || token == greedy[i]) << "token " << i << ": " << token;
  }
  for (const auto& [position, expected] : golden.at("logits").items()) {
    const double difference =
        max_difference(logits.at(std::stoul(position)), expected.get<std::vector<float>>());
    EXPECT_LT(difference, kFloatTolerance) << "position " << position;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Families,
                         testing::Values("gemma2", "gemma3_text", "olmo2", "olmo3", "granite",
                                         "granitemoehybrid", "granitemoehybrid-nope", "smollm3", "seed_oss",
                                         "exaone4", "glm4", "phi3", "mistral", "ministral", "ministral3",
                                         "hunyuan_v1_dense", "cohere", "cohere2", "mpt", "arcee", "nemotron",
                                         "starcoder2"),
                         test_name);

class TinyStories : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const fs::path folder = fs::path(SOLITON_SOURCE_DIR) / "models" / GetParam();
    golden_ = read_json(kGoldens / (std::string(GetParam()) + ".json"));
    facts_ = HfConfig::open(folder).facts;
    ASSERT_EQ(hash_facts(facts_), hash_facts(read_facts(golden_.at("facts"))));
    weights_ = std::make_shared<const ReferenceWeights>(load_weights(TensorSource::open(folder), facts_));
    ASSERT_NO_FATAL_FAILURE(expect_checksums(*weights_, facts_, golden_.at("tensor_checksums")));
  }

  json golden_;
  ModelFacts facts_;
  std::shared_ptr<const ReferenceWeights> weights_;
};

INSTANTIATE_TEST_SUITE_P(Models, TinyStories, testing::Values("tiny-stories", "tiny-stories-experts"),
                         test_name);

/// [layer]: the experts that the last token went to, the best first.
std::vector<std::vector<int>> experts_of(const ReferenceModel& model) {
  std::vector<std::vector<int>> experts;
  for (const std::vector<RoutedExpert>& route : model.routes()) {
    experts.emplace_back();
    for (const RoutedExpert& routed : route) experts.back().push_back(routed.expert);
  }
  return experts;
}

TEST_P(TinyStories, LogitsAgreeWithTransformers) {
  expect_frequencies(facts_, golden_.at("inverse_frequencies"));
  for (const json& test_case : golden_.at("cases")) {
    auto tokens = test_case.at("prompt").get<std::vector<int>>();
    const auto continuation = test_case.at("tokens").get<std::vector<int>>();
    tokens.insert(tokens.end(), continuation.begin(), continuation.end());
    ReferenceModel model(facts_, weights_, {.round_cache = false});
    for (const json& position : test_case.at("positions")) {
      const std::vector<float> logits =
          model.step(tokens.at(static_cast<size_t>(model.length())), model.length());
      if (facts_.num_experts > 0) {
        EXPECT_EQ(experts_of(model), position.at("experts").get<std::vector<std::vector<int>>>())
            << model.length() - 1;
      }
      // Logits of a trained model are tens, not ones.
      const double scale = 1.0 + position.at("top_logits")[0].get<double>();
      const double tolerance = kFloatTolerance * std::abs(scale);
      double mean = 0.0;
      for (const double logit : logits) mean += logit / static_cast<double>(logits.size());
      double variance = 0.0;
      for (const double logit : logits)
        variance += (logit - mean) * (logit - mean) / static_cast<double>(logits.size());
      EXPECT_NEAR(mean, position.at("mean").get<double>(), tolerance);
      EXPECT_NEAR(std::sqrt(variance), position.at("deviation").get<double>(), tolerance);
      for (size_t i = 0; i < position.at("top_ids").size(); ++i) {
        const float logit = logits.at(position.at("top_ids")[i].get<size_t>());
        EXPECT_NEAR(logit, position.at("top_logits")[i].get<double>(), tolerance) << model.length() - 1;
      }
    }
  }
}

TEST_P(TinyStories, GreedyTokensAgreeWithTransformersExceptAtTies) {
  constexpr double kTie = 1e-3;  // of the logits
  for (const json& test_case : golden_.at("cases")) {
    const auto prompt = test_case.at("prompt").get<std::vector<int>>();
    const auto expected = test_case.at("tokens").get<std::vector<int>>();
    const auto margins = test_case.at("margins").get<std::vector<double>>();
    ReferenceModel model(facts_, weights_, {.round_cache = false});
    std::vector<float> logits;
    for (const int token : prompt) logits = model.step(token, model.length());
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool tie = margins[i] <= kTie;
      ASSERT_TRUE(tie || argmax(logits) == expected[i]) << "token " << i << ": " << argmax(logits);
      logits = model.step(expected[i], model.length());
    }
  }
}

}  // namespace
}  // namespace soliton
