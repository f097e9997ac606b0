// A generator on whole kernels in emulation: an answer is the same whether the tokens before it were kept or
// are fed anew.
#include "runtime/answer/generator.h"

#include <gtest/gtest.h>

#include <numeric>

#include "long_tests.h"
#include "models/error.h"
#include "runtime/chat/parallel.h"
#include "runtime/text/constrain/ebnf.h"

namespace soliton {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int kVocabulary = 50;  // of the kernels' model

KernelLibrary open_kernel(const std::string& name) {
  return KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/" + name + ".so");
}

/// Some pages. A kernel of one row, which takes a step for every token of a prompt, gets fewer in short runs.
int context_of(const std::string& kernel) {
  return long_tests() || open_kernel(kernel).max_rows() > 1 ? 290 : 130;
}

std::unique_ptr<Engine> new_engine(const std::string& kernel, int context) {
  auto engine = std::make_unique<Engine>(open_kernel(kernel), EngineOptions{.context = context});
  engine->load_random(1);
  return engine;
}

/// Tokens that depend on the seed.
Tokens some_tokens(int num_tokens, int seed) {
  Tokens tokens(num_tokens);
  for (int i = 0; i < num_tokens; ++i) tokens[i] = (seed + 17 * i + i * i * seed) % kVocabulary;
  return tokens;
}

class GeneratorOf : public testing::TestWithParam<const char*> {
 protected:
  GeneratorOf() : context_(context_of(GetParam())), generator_(new_engine(GetParam(), context_), context_) {}

  Generated generate(const Tokens& prompt, int max_tokens, const Sampling& sampling = {}) {
    return generator_.generate({.prompt = prompt, .max_tokens = max_tokens, .sampling = sampling}, all);
  }
  /// By a generator that has kept nothing.
  Generated generate_anew(const Tokens& prompt, int max_tokens, const Sampling& sampling = {}) {
    EngineGenerator another(new_engine(GetParam(), context_), context_);
    return another.generate({.prompt = prompt, .max_tokens = max_tokens, .sampling = sampling}, all);
  }
  std::vector<Sampling> samplings() {
    std::vector<Sampling> all = {
        {}, {.temperature = 1.2, .top_k = 9, .top_p = 0.9, .repeat_penalty = 1.3, .seed = 4}};
    const bool takes_drafts = generator_.engine().max_rows() > 1;
    if (takes_drafts) all.push_back({.temperature = 0.8, .repeat_penalty = 1.1, .seed = 3, .num_drafts = 3});
    if (!long_tests()) return all;
    all.push_back({.temperature = 0.8, .seed = 3});
    if (takes_drafts) all.push_back({.num_drafts = 3});
    return all;
  }

  static bool all(const ChosenToken&) { return true; }

  /// For cases that a kernel of one row and one of both kinds show without it.
  static bool is_repeated() { return !long_tests() && std::string(GetParam()) == "micro-3-rows8"; }

  const int context_;
  EngineGenerator generator_;
};

INSTANTIATE_TEST_SUITE_P(Kernels, GeneratorOf, testing::Values("micro-2-all", "micro-3-rows8", "micro-3"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(GeneratorOf, TurnsAreTheSameAsFromTheStart) {
  if (is_repeated()) GTEST_SKIP() << "of other kernels in short runs";
  for (const Sampling& sampling : samplings()) {
    // A third turn is to the second as that is to the first.
    const int num_turns = long_tests() || sampling.is_greedy() ? 3 : 2;
    EngineGenerator kept(new_engine(GetParam(), context_), context_);
    Tokens prompt = some_tokens(20, 1);
    for (int turn = 0; turn < num_turns; ++turn) {
      SCOPED_TRACE(turn);
      const size_t num_known = turn == 0 ? 0 : prompt.size() - 30;
      const Generated answer = kept.generate({.prompt = prompt, .max_tokens = 9, .sampling = sampling}, all);
      EXPECT_EQ(answer.tokens, generate_anew(prompt, 9, sampling).tokens);
      EXPECT_EQ(answer.tokens.size(), 9u);
      EXPECT_EQ(answer.num_cached, turn == 0 ? 0 : num_known - 1);  // the last token had not been fed
      prompt.insert(prompt.end(), answer.tokens.begin(), answer.tokens.end());
      const Tokens more = some_tokens(30, 2 + turn);
      prompt.insert(prompt.end(), more.begin(), more.end());
    }
  }
}

TEST_P(GeneratorOf, KeepsTheCommonPrefixOnly) {
  if (is_repeated()) GTEST_SKIP() << "of other kernels in short runs";
  const Tokens prompt = some_tokens(90, 1);
  const Generated first = generate(prompt, 5);
  EXPECT_EQ(first.num_cached, 0u);
  Tokens other = prompt;
  other[70] = (other[70] + 1) % kVocabulary;
  const Generated second = generate(other, 5);
  EXPECT_EQ(second.num_cached, 70u);
  const Generated again = generate(prompt, 5);
  EXPECT_EQ(again.num_cached, 70u);
  EXPECT_EQ(again.tokens, first.tokens);
  // At least the last token is fed, however much is known.
  EXPECT_EQ(generate(prompt, 5).num_cached, 89u);
  const Tokens shorter(prompt.begin(), prompt.begin() + 64);
  EXPECT_EQ(generate(shorter, 5).num_cached, 63u);
  EXPECT_EQ(generate(prompt, 5).tokens, first.tokens);
}

TEST_P(GeneratorOf, KeepsWhatAnEndedAnswerHadFed) {
  if (is_repeated()) GTEST_SKIP() << "of other kernels in short runs";
  const Tokens prompt = some_tokens(12, 4);
  for (const Sampling& sampling : samplings()) {
    const Tokens whole = generate(prompt, 12, sampling).tokens;
    int left = 5;
    const Generated ended = generator_.generate({.prompt = prompt, .max_tokens = 12, .sampling = sampling},
                                                [&](const ChosenToken&) { return --left > 0; });
    EXPECT_EQ(ended.tokens, Tokens(whole.begin(), whole.begin() + 5));
    Tokens longer = prompt;
    longer.insert(longer.end(), whole.begin(), whole.begin() + 8);
    const Generated rest = generate(longer, 4, sampling);
    EXPECT_EQ(rest.num_cached, prompt.size() + 4);
    EXPECT_EQ(rest.tokens, Tokens(whole.begin() + 8, whole.end()));
  }
}

// Between any two steps of a kernel of several rows, and launches of one row.
TEST_P(GeneratorOf, ALongPromptCanBeGivenUpSoon) {
  if (is_repeated()) GTEST_SKIP() << "of other kernels in short runs";
  const int rows = generator_.engine().max_rows();
  const Tokens prompt = some_tokens(100, 5);
  const Tokens whole = generate_anew(prompt, 4).tokens;
  size_t num_fed = 0;
  int left = 2;
  const Generated given_up = generator_.generate({.prompt = prompt,
                                                  .max_tokens = 4,
                                                  .goes_on = [&] { return --left > 0; },
                                                  .on_fed = [&](size_t num) { num_fed = num; }},
                                                 all);
  EXPECT_TRUE(given_up.tokens.empty());
  EXPECT_GT(num_fed, 0u);
  EXPECT_LE(num_fed, static_cast<size_t>(rows > 1 ? rows : 4));
  std::vector<size_t> fed;
  const Generated rest = generator_.generate(
      {.prompt = prompt, .max_tokens = 4, .on_fed = [&](size_t num) { fed.push_back(num); }}, all);
  EXPECT_EQ(rest.tokens, whole);
  EXPECT_EQ(rest.num_cached, num_fed);
  EXPECT_EQ(fed.front(), num_fed);
  EXPECT_EQ(fed.back(), num_fed + (99 - num_fed) / static_cast<size_t>(rows) * static_cast<size_t>(rows));
  EXPECT_TRUE(std::ranges::is_sorted(fed));
}

TEST(Parallel, SamplesOfAPromptThatIsGivenUpHaveNoTokens) {
  const std::unique_ptr<Engine> owned = new_engine("micro-3-rows8", 290);
  Engine& engine = *owned;
  const Tokens prompt = some_tokens(100, 5);
  int left = 1;
  ParallelRequest request{
      .prompt = prompt, .num_samples = 2, .max_tokens = 3, .sampling = {.temperature = 1, .seed = 5}};
  request.prompt_watch.goes_on = [&] { return left-- > 0; };
  const ParallelResult given_up = decode_parallel(engine, request);
  ASSERT_EQ(given_up.samples.size(), 2u);
  EXPECT_EQ(given_up.num_tokens(), 0u);
  EXPECT_EQ(given_up.samples[1].seed, 6u);
  left = 100;
  EXPECT_EQ(decode_parallel(engine, request).num_tokens(), 6u);
}

TEST_P(GeneratorOf, ALongPromptCanBeGivenUp) {
  if (is_repeated()) GTEST_SKIP() << "of other kernels in short runs";
  constexpr int kLong = 270;
  EngineGenerator generator(new_engine(GetParam(), kLong + 20), kLong + 20);
  const Tokens prompt = some_tokens(kLong, 5);
  int left = 1;
  const Generated given_up =
      generator.generate({.prompt = prompt, .max_tokens = 4, .goes_on = [&] { return --left > 0; }}, all);
  EXPECT_TRUE(given_up.tokens.empty());
  const Generated answer =
      generator.generate({.prompt = std::span(prompt).first(context_ - 20), .max_tokens = 4}, all);
  EXPECT_EQ(answer.tokens.size(), 4u);
  EXPECT_EQ(answer.num_cached, 0u);
}

// While the answer comes, so that who streams it has them.
TEST_P(GeneratorOf, TellsEachTokenWithItsLogprob) {
  if (is_repeated()) GTEST_SKIP() << "of other kernels in short runs";
  const Tokens prompt = some_tokens(20, 1);
  for (const bool wanted : {true, false}) {
    for (const double temperature : {0.0, 0.8}) {
      std::vector<ChosenToken> told;
      const Generated answer = generator_.generate(
          {.prompt = prompt, .max_tokens = 6, .sampling = {.temperature = temperature, .logprobs = wanted}},
          [&](const ChosenToken& token) {
            told.push_back(token);
            return true;
          });
      ASSERT_EQ(told.size(), answer.tokens.size());
      for (size_t i = 0; i < told.size(); ++i) {
        EXPECT_EQ(told[i].id, answer.tokens[i]);
        ASSERT_EQ(told[i].logprob.has_value(), wanted);
        EXPECT_LE(told[i].logprob.value_or(0), 0);
      }
      EXPECT_EQ(told[0].logprob != told[1].logprob, wanted);
    }
  }
}

TEST_P(GeneratorOf, FillsTheContextExactly) {
  const Tokens prompt = some_tokens(context_ - 3, 6);
  EXPECT_EQ(generate(prompt, 4).tokens.size(), 4u);
  EXPECT_THROW(generate(prompt, 5), Error);
  EXPECT_EQ(generate(prompt, 4).num_cached, 0u);  // begins anew after a failure
}

// An interrupt while it is found what a grammar lets follow, which may take long, ends the answer there.
TEST_P(GeneratorOf, GivesUpASlowMask) {
  std::vector<std::string> pieces;
  for (int token = 0; token < kVocabulary; ++token) pieces.emplace_back(1, static_cast<char>('A' + token));
  const auto grammar =
      std::make_shared<TokenGrammar>(constrain::parse_ebnf("root ::= ([A-Z]? [A-Y]?){0,4096}", "g"),
                                     std::make_shared<const constrain::Vocabulary>(pieces, kVocabulary));
  EngineGenerator generator(new_engine(GetParam(), context_), context_, grammar);
  const Tokens prompt = some_tokens(5, 4);
  int num_looks = 0;
  for (const int most_looks : {0, 1, 25}) {
    num_looks = 0;
    const Generated cut = generator.generate(
        {.prompt = prompt, .max_tokens = 6, .goes_on = [&] { return num_looks++ < most_looks; }}, all);
    EXPECT_LT(cut.tokens.size(), 6u);
    EXPECT_EQ(num_looks, most_looks + 1);
  }
  const Tokens whole = generator.generate({.prompt = prompt, .max_tokens = 6}, all).tokens;
  EngineGenerator another(new_engine(GetParam(), context_), context_, grammar);
  EXPECT_EQ(another.generate({.prompt = prompt, .max_tokens = 6}, all).tokens, whole);
}

TEST_P(GeneratorOf, ChecksWhatItIsAskedFor) {
  const int rows = generator_.engine().max_rows();
  EXPECT_NO_THROW(generator_.check({}));
  EXPECT_NO_THROW(generator_.check({.num_drafts = rows - 1}));
  EXPECT_THROW(generator_.check({.num_drafts = rows}), Error);
  EXPECT_NO_THROW(generator_.check({.temperature = 1, .top_k = 5}));
}

}  // namespace
}  // namespace soliton
