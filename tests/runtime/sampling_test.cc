// How what users say of sampling becomes what kernels are given.
#include "runtime/engine/sampling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/error.h"

namespace soliton {
namespace {

TEST(Sampling, OfAModelIsGreedyUnlessItsFilesAskForSampling) {
  EXPECT_TRUE(default_sampling({}).is_greedy());
  GenerationDefaults defaults{
      .temperature = 0.6, .top_k = 40, .top_p = 0.9, .min_p = {}, .repetition_penalty = {}};
  EXPECT_TRUE(default_sampling(defaults).is_greedy());
  EXPECT_EQ(default_sampling(defaults).top_k, 40);  // for who asks for a temperature
  defaults.do_sample = true;
  EXPECT_EQ(default_sampling(defaults).temperature, 0.6);
  EXPECT_EQ(default_sampling(defaults).top_p, 0.9);
  EXPECT_EQ(default_sampling(defaults).min_p, 0);
  defaults.temperature.reset();
  EXPECT_EQ(default_sampling(defaults).temperature, 1);
  defaults.repetition_penalty = 1.1;
  EXPECT_EQ(default_sampling(defaults).repeat_penalty, 1.1);
}

TEST(Sampling, OfFlagsWins) {
  const Sampling base{.temperature = 0.6, .top_k = 40, .top_p = 0.9, .repeat_penalty = 1.1, .seed = 3};
  EXPECT_FALSE(SamplingFlags{}.any());
  EXPECT_EQ(SamplingFlags{}.over(base).top_k, 40);
  const SamplingFlags flags{.temperature = 0, .top_k = 0, .top_p = {}, .min_p = 0.1, .repeat_penalty = 1.0};
  EXPECT_TRUE(flags.any());
  const Sampling sampling = flags.over(base);
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_EQ(sampling.top_p, 0.9);
  EXPECT_EQ(sampling.min_p, 0.1);
  EXPECT_EQ(sampling.seed, 3u);
  EXPECT_TRUE(sampling.is_greedy());
}

TEST(Sampling, BecomesThatOfARow) {
  const RowSampling greedy = row_sampling({});
  EXPECT_EQ(greedy.inverse_temperature, 0);
  EXPECT_EQ(greedy.penalty, 1);
  EXPECT_FALSE(greedy.truncates());
  const RowSampling row = row_sampling(
      {.temperature = 0.5, .top_k = 7, .top_p = 0.75, .min_p = 0.25, .repeat_penalty = 1.5, .seed = 9});
  EXPECT_EQ(row.inverse_temperature, 2);
  EXPECT_EQ(row.top_k, 7);
  EXPECT_EQ(row.top_p, 0.75f);
  EXPECT_FLOAT_EQ(row.max_distance, 2 * std::log(2.0f));
  EXPECT_EQ(row.penalty, 1.5f);
  EXPECT_EQ(row.seed, 9u);
  EXPECT_TRUE(row.truncates());
  EXPECT_EQ(row_sampling({.temperature = 1}, 5).seed, 5u);
  EXPECT_EQ(row_sampling({.temperature = 1, .min_p = 1}).max_distance, 0);
  EXPECT_TRUE(std::isfinite(row_sampling({.temperature = 1e-300}).inverse_temperature));
  EXPECT_TRUE(row_sampling({.temperature = 1e-300}).inverse_temperature > 1e29f);
  EXPECT_FALSE(row_sampling({.temperature = 1}).truncates());
}

}  // namespace
}  // namespace soliton
