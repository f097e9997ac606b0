// The rule by which tokens go to experts against transformers' own routers, of each family, on 10,000 vectors of logits of which
// a quarter have many alike: tests/goldens/make_routes.py, which says what of ties can be compared. ops/experts_test.cc holds the
// kernels' choice to the same rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "layout/random.h"
#include "models/strict_json.h"
#include "tests/reference_model.h"

namespace soliton {
namespace {

using nlohmann::json;

/// What is said of all vectors of a family.
struct Routes {
  int64_t tied = 0;      // vectors whose last expert may be another one
  int64_t counted = 0;   // experts that may not
  int64_t checksum = 0;  // of these, sum of (vector + 1) * (expert + 1)
  std::vector<double> mean_weights;
  std::vector<double> weights_of_the_last;
};

/// Numbers that the script makes too.
struct Inputs {
  std::vector<float> logits;  // [vector][expert]
  std::vector<float> biases;  // [expert], or empty
};

Inputs make_inputs(const json& golden, const ModelFacts& facts) {
  Inputs inputs;
  const auto experts = static_cast<uint64_t>(facts.num_experts);
  const uint64_t count = golden.at("vectors").get<uint64_t>() * experts;
  for (uint64_t i = 0; i < count; ++i) {
    const float value = 4.0f * random_unit(i, golden.at("seed").get<uint64_t>());
    inputs.logits.push_back(i / experts % 4 == 0 ? std::trunc(value) : value);
  }
  for (uint64_t i = 0; facts.router_bias != 0 && i < experts; ++i)
    inputs.biases.push_back(std::trunc(4.0f * random_unit(i, golden.at("bias_seed").get<uint64_t>())) / 8.0f);
  return inputs;
}

/// What the rule compares, of the experts that it chose and of the best one that it did not: are these equal?
class Comparison {
 public:
  Comparison(std::span<const double> logits, std::span<const float> biases, const ModelFacts& facts) {
    const bool is_sigmoid = facts.router_scores != 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double score = is_sigmoid ? 1.0 / (1.0 + std::exp(-logits[i])) : logits[i];
      scores_.push_back(score + (biases.empty() ? 0.0f : biases[i]));
    }
    std::vector<double> sorted = scores_;
    const auto next = sorted.begin() + facts.experts_per_token;
    std::nth_element(sorted.begin(), next, sorted.end(), std::greater<>());
    last_ = *std::min_element(sorted.begin(), next);
    is_tied_ = *next == last_;
  }
  bool is_tied() const { return is_tied_; }
  bool is_certain(int expert) const { return !is_tied_ || scores_[static_cast<size_t>(expert)] > last_; }

 private:
  std::vector<double> scores_;
  double last_ = 0;
  bool is_tied_ = false;
};

Routes follow_rule(const Inputs& inputs, const ModelFacts& facts) {
  const auto experts = static_cast<size_t>(facts.num_experts);
  const size_t vectors = inputs.logits.size() / experts;
  Routes routes;
  routes.mean_weights.resize(static_cast<size_t>(facts.experts_per_token));
  for (size_t vector = 0; vector < vectors; ++vector) {
    const auto own = inputs.logits.begin() + static_cast<std::ptrdiff_t>(vector * experts);
    const std::vector<double> logits(own, own + facts.num_experts);
    const Comparison comparison(logits, inputs.biases, facts);
    routes.tied += comparison.is_tied() ? 1 : 0;
    std::vector<double> weights;
    for (const RoutedExpert& routed : route(logits, inputs.biases, facts)) {
      weights.push_back(routed.weight);
      if (!comparison.is_certain(routed.expert)) continue;
      ++routes.counted;
      routes.checksum += static_cast<int64_t>(vector + 1) * (routed.expert + 1);
    }
    std::sort(weights.rbegin(), weights.rend());
    for (size_t i = 0; i < weights.size(); ++i)
      routes.mean_weights[i] += weights[i] / static_cast<double>(vectors);
    routes.weights_of_the_last = weights;
  }
  return routes;
}

class RouterRule : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Families, RouterRule,
                         testing::Values("qwen3_moe", "qwen2_moe", "mixtral", "olmoe", "glm4_moe", "gpt_oss"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(RouterRule, IsThatOfTransformers) {
  constexpr double kFloat = 4e-6;  // of weights up to 2.5, whose sums over experts are float32's
  const std::string family = GetParam();
  const json golden =
      read_json(std::filesystem::path(SOLITON_SOURCE_DIR) / "tests" / "goldens" / "routes.json");
  const json& expected = golden.at("families").at(family);
  const ModelFacts facts = {.num_experts = expected.at("experts"),
                            .experts_per_token = expected.at("chosen"),
                            .renormalised = expected.at("renormalised") ? 1 : 0,
                            .router_scores = family == "glm4_moe" ? 1 : 0,
                            .router_bias = family == "glm4_moe" || family == "gpt_oss" ? 1 : 0,
                            .router_scale = expected.at("scale")};
  const Routes routes = follow_rule(make_inputs(golden, facts), facts);
  EXPECT_EQ(routes.tied, expected.at("tied").get<int64_t>());
  EXPECT_EQ(routes.counted, expected.at("counted").get<int64_t>());
  EXPECT_EQ(routes.checksum, expected.at("checksum").get<int64_t>());
  for (size_t i = 0; i < routes.mean_weights.size(); ++i) {
    EXPECT_NEAR(routes.mean_weights[i], expected.at("mean_weights")[i].get<double>(), kFloat) << i;
    EXPECT_NEAR(routes.weights_of_the_last[i], expected.at("weights_of_the_last")[i].get<double>(), kFloat)
        << i;
  }
}

}  // namespace
}  // namespace soliton
