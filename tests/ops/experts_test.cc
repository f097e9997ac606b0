// Which experts a token goes through, and with what weights: what a warp works out of a router's logits, against the plain
// rule. Ties, infinities, and what is no number, are among them.
#include "ops/experts.cuh"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "emulator_testing.h"
#include "layout/random.h"
#include "tests/reference_model.h"

namespace soliton {
namespace {

constexpr float kScale = 2.5f;

/// Chooses for params.num_steps tokens: their logits, [token][logits], then the experts and weights, [token][used] each, stand
/// in the workspace.
template <Mixture kMixture>
void choose(LaunchParams params) {
  using Logits = RouterLogits<kMixture.logits()>;
  const int lane = thread_index() % kWarpLanes;
  const auto* all = static_cast<const float*>(params.workspace);
  auto* experts = static_cast<float*>(params.workspace) + params.num_steps * kMixture.logits();
  float* weights = experts + params.num_steps * kMixture.used();
  for (int token = 0; token < params.num_steps; ++token) {
    Logits logits;
    float own[Logits::kOwn] = {};
    for (int i = 0; i < Logits::kOwn; ++i) {
      const int expert = Logits::first_expert(lane) + i;
      // What stands behind the last is not looked at.
      own[i] = expert < kMixture.logits() ? load_global(all + token * kMixture.logits() + expert) : 1e30f;
    }
    for (int load = 0; load < Logits::kLoads; ++load) {
      const float* four = own + 4 * load;
      logits.value[load] = make_float4(four[0], four[1], four[2], four[3]);
    }
    RouterBias<kMixture> bias;
    bias.load(params.router_biases, 0, lane);
    const ExpertChoice<kMixture> choice(logits, bias, lane);
    const float weight = choice.weight(lane, kScale);
    if (lane >= kMixture.used()) {
      EXPECT_EQ(weight, 0.0f);
      continue;
    }
    store_global(experts + token * kMixture.used() + lane, static_cast<float>(choice.expert()));
    store_global(weights + token * kMixture.used() + lane, weight);
  }
}

template <Mixture kMixture>
class Chosen {
 public:
  explicit Chosen(const std::vector<float>& logits, const std::vector<float>& biases = {})
      : num_tokens_(logits.size() / kMixture.logits()),
        buffer_(logits.size() + 2 * num_tokens_ * kMixture.used()),
        biases_(biases.size()) {
    std::copy(biases.begin(), biases.end(), biases_.data());
    std::copy(logits.begin(), logits.end(), buffer_.data());
    LaunchParams params = with_workspace(buffer_.data());
    params.num_steps = static_cast<int>(num_tokens_);
    params.router_biases = biases_.data();
    EXPECT_EQ(run(choose<kMixture>, params, {}, {}), "");
  }
  int expert(size_t token, int i) { return static_cast<int>(at(token, i)); }
  float weight(size_t token, int i) { return at(num_tokens_ + token, i); }

 private:
  float at(size_t row, int i) {
    return buffer_[num_tokens_ * kMixture.logits() + row * kMixture.used() + static_cast<size_t>(i)];
  }

  const size_t num_tokens_;
  Buffer<float> buffer_;
  Buffer<float> biases_;
};

/// Every fourth token's logits are so coarse that many are alike, zeros of both signs among them.
std::vector<float> random_logits(size_t num_tokens, int num_logits) {
  std::vector<float> logits;
  for (size_t token = 0; token < num_tokens; ++token) {
    for (int expert = 0; expert < num_logits; ++expert) {
      const float value = 4.0f * random_unit(logits.size(), 7);
      logits.push_back(token % 4 == 0 ? std::trunc(value) : value);
    }
  }
  return logits;
}

template <Mixture kMixture>
void expect_like_rule(size_t num_tokens) {
  const std::vector<float> logits = random_logits(num_tokens, kMixture.logits());
  std::vector<float> biases;
  for (int i = 0; kMixture.biased && i < route_words(kMixture.logits()); ++i)
    biases.push_back(0.5f * random_unit(static_cast<uint64_t>(i), 8));
  Chosen<kMixture> chosen(logits, biases);
  biases.resize(kMixture.experts);
  const ModelFacts facts = {.num_experts = kMixture.experts,
                            .experts_per_token = kMixture.chosen,
                            .renormalised = kMixture.renormalised ? 1 : 0,
                            .router_scores = static_cast<int32_t>(kMixture.scores),
                            .router_scale = kScale};
  for (size_t token = 0; token < num_tokens; ++token) {
    const auto own = logits.begin() + static_cast<std::ptrdiff_t>(token) * kMixture.logits();
    for (int i = 0; i < kMixture.shared; ++i) {
      const double gate = own[kMixture.logits() - 1];
      ASSERT_EQ(chosen.expert(token, i), kMixture.experts + i) << token;
      ASSERT_NEAR(chosen.weight(token, i), kMixture.shared_gate ? 1 / (1 + std::exp(-gate)) : 1, 1e-6)
          << token;
    }
    const std::vector<RoutedExpert> expected =
        route(std::vector<double>(own, own + kMixture.experts), biases, facts);
    for (int i = 0; i < kMixture.chosen; ++i) {
      const auto& [expert, weight] = expected[static_cast<size_t>(i)];
      ASSERT_EQ(chosen.expert(token, kMixture.shared + i), expert) << token << ", " << i;
      ASSERT_NEAR(chosen.weight(token, kMixture.shared + i), weight, 1e-6) << token << ", " << i;
    }
  }
}

TEST(ExpertChoice, FollowsTheRule) {
  expect_like_rule<Mixture{.experts = 128, .chosen = 8, .ffn = 64, .renormalised = true}>(10000);
  expect_like_rule<Mixture{.experts = 8, .chosen = 2, .ffn = 64, .renormalised = true}>(1000);
  expect_like_rule<Mixture{.experts = 64, .chosen = 8, .ffn = 64, .renormalised = false}>(1000);
  expect_like_rule<Mixture{.experts = 300, .chosen = 16, .ffn = 64, .renormalised = false}>(200);
  expect_like_rule<Mixture{.experts = 3, .chosen = 3, .ffn = 64, .renormalised = false}>(100);
}

TEST(ExpertChoice, BeginsWithSharedExperts) {
  expect_like_rule<Mixture{.experts = 60, .chosen = 4, .ffn = 64, .shared = 4, .shared_gate = true}>(1000);
  expect_like_rule<Mixture{.experts = 128, .chosen = 8, .ffn = 64, .shared = 8, .shared_gate = true}>(200);
  expect_like_rule<Mixture{.experts = 8, .chosen = 2, .ffn = 64, .renormalised = true, .shared = 1}>(100);
}

// The bias decides who is chosen, and has no part in the weights.
TEST(ExpertChoice, ComparesSigmoidsWithTheirBiases) {
  constexpr RouterScores kSigmoid = RouterScores::kSigmoid;
  expect_like_rule<Mixture{
      .experts = 128, .chosen = 8, .renormalised = true, .shared = 1, .scores = kSigmoid, .biased = true}>(
      1000);
  expect_like_rule<Mixture{.experts = 160, .chosen = 8, .scores = kSigmoid, .biased = true}>(200);
  expect_like_rule<Mixture{.experts = 10, .chosen = 3, .renormalised = true, .scores = kSigmoid}>(100);
}

// And of logits, whose weights it changes too.
TEST(ExpertChoice, AddsBiasesToLogits) {
  expect_like_rule<Mixture{.experts = 32, .chosen = 4, .renormalised = true, .biased = true}>(1000);
  expect_like_rule<Mixture{.experts = 128, .chosen = 4, .biased = true}>(200);
}

TEST(ExpertChoice, TakesInfinities) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Chosen<Mixture{.experts = 4, .chosen = 2, .ffn = 64, .renormalised = true}> chosen(
      {-kInfinity, 1.0f, -kInfinity, 0.0f});
  EXPECT_EQ(chosen.expert(0, 0), 1);
  EXPECT_EQ(chosen.expert(0, 1), 3);
  EXPECT_NEAR(chosen.weight(0, 0) + chosen.weight(0, 1), kScale, 1e-6f);
}

// So that it reaches the logits of the step, which end the launch.
TEST(ExpertChoice, PassesOnWhatIsNoNumber) {
  for (const float nan : {std::nanf(""), -std::nanf("")}) {
    Chosen<Mixture{.experts = 8, .chosen = 2, .ffn = 64, .renormalised = true}> chosen(
        {5.0f, 4.0f, 3.0f, 2.0f, 1.0f, nan, 0.0f, -1.0f});
    EXPECT_EQ(chosen.expert(0, 0), 5);
    EXPECT_TRUE(std::isnan(chosen.weight(0, 0)));
    EXPECT_TRUE(std::isnan(chosen.weight(0, 1)));
  }
}

}  // namespace
}  // namespace soliton
