// The choice of tokens on the host, against the one that layout/sampling.h defines.
#include "runtime/answer/host_choice.h"

#include <gtest/gtest.h>

#include <random>

#include "reference_sampling.h"

namespace soliton {
namespace {

std::vector<float> random_logits(std::mt19937& random, int vocabulary) {
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits;
  for (int i = 0; i < vocabulary; ++i) logits.push_back(normal(random));
  return logits;
}

TEST(HostChoice, IsTheReferences) {
  std::mt19937 random(1);
  int num_clear = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<float> logits = random_logits(random, 50 + trial % 300);
    const RowSampling sampling{
        .inverse_temperature = trial % 7 == 0 ? 0 : 0.5f + static_cast<float>(trial % 5),
        .seed = static_cast<uint32_t>(trial),
        .top_k = trial % 3 == 0 ? 1 + trial % 40 : 0,
        .top_p = trial % 2 == 0 ? 1.0f : 0.05f * static_cast<float>(1 + trial % 19),
        .max_distance = trial % 4 == 0 ? 1.0f + static_cast<float>(trial % 5) : kUnlimitedDistance,
        .penalty = trial % 5 == 0 ? 1.5f : 1.0f};
    const std::vector<int32_t> seen = {3, 9, 3, trial % 50};
    const ReferenceChoice expected =
        reference_choice(logits, sampling, trial,
                         sampling.penalty == 1 ? std::set<int32_t>{} : std::set(seen.begin(), seen.end()));
    if (!expected.is_clear || expected.lead < 1e-4) continue;
    ++num_clear;
    EXPECT_EQ(
        choose_on_host({.logits = logits, .sampling = sampling, .position = trial, .seen = seen}, {}, {}),
        expected.token)
        << trial;
  }
  EXPECT_GT(num_clear, 1500);
}

TEST(HostChoice, AdjustsLogits) {
  const std::vector<float> logits = {1, 2, 3, NAN, 2.5};
  const auto best = [&](const LogitAdjustment& adjustment, const std::map<int32_t, int>& answer,
                        std::span<const uint32_t> allowed = {}) {
    return choose_on_host({.logits = logits, .allowed = allowed}, adjustment, answer);
  };
  EXPECT_EQ(best({}, {}), 2);
  EXPECT_EQ(best({.biases = {{0, 2.5}, {2, -1}}}, {}), 0);
  EXPECT_EQ(best({.frequency_penalty = 0.2f}, {{2, 2}}), 2);
  EXPECT_EQ(best({.frequency_penalty = 0.2f}, {{2, 3}}), 4);
  EXPECT_EQ(best({.presence_penalty = 0.6f}, {{2, 1}}), 4);
  EXPECT_EQ(best({.presence_penalty = 0.4f}, {{2, 100}}), 2);
  EXPECT_EQ(best({.frequency_penalty = -1}, {{1, 2}}), 1);
  const std::vector<uint32_t> allowed = {0b00011};
  EXPECT_EQ(best({.biases = {{2, 100}}}, {}, allowed), 1);
}

// Of tokens as good as the last that stays none is left out, as in kernels.
TEST(HostChoice, KeepsTies) {
  const std::vector<float> logits = {1, 1, 1, 0};
  std::set<int32_t> chosen;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    chosen.insert(choose_on_host(
        {.logits = logits, .sampling = {.inverse_temperature = 1, .seed = seed, .top_k = 1}}, {}, {}));
    EXPECT_NE(
        choose_on_host({.logits = logits, .sampling = {.inverse_temperature = 1, .seed = seed, .top_p = 0}},
                       {}, {}),
        3);
  }
  EXPECT_EQ(chosen, (std::set<int32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace soliton
