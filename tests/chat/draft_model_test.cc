// A draft model beside a large one, on whole kernels in emulation: whatever it drafts, the answer is the large one's.
#include "runtime/answer/draft/draft_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "layout/random.h"
#include "long_tests.h"
#include "models/error.h"
#include "runtime/answer/speculate.h"

namespace soliton {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int kDraftingContext = 290;
constexpr uint64_t kLarge = 1;  // seeds of weights
constexpr uint64_t kOther = 2;

// ---- How many tokens are drafted

TEST(DraftLength, IsTheMostWhereAllIsAccepted) {
  for (const double cost : {0.0, 0.2, 1.0}) {
    DraftLength length(cost);
    for (int i = 0; i < 30; ++i) length.note(7, 7);
    EXPECT_EQ(length.next(7), 7);
    EXPECT_EQ(length.next(2), 2);
  }
}

TEST(DraftLength, IsShorterTheMoreADraftCosts) {
  std::vector<int> lengths;
  for (const double cost : {0.1, 0.3, 0.5}) {
    DraftLength length(cost);
    for (int i = 0; i < 30; ++i) {
      length.note(3, 3);
      length.note(3, 1);
    }
    lengths.push_back(length.next(20));
  }
  EXPECT_GT(lengths[0], lengths[1]);
  EXPECT_GT(lengths[1], lengths[2]);
  EXPECT_GT(lengths[2], 0);
}

// It looks ever more rarely whether that has changed.
TEST(DraftLength, IsNothingWhereNothingIsAccepted) {
  DraftLength length(0.2);
  int num_drafted = 0;
  int num_tokens = 0;
  std::vector<int> stretches;
  while (num_tokens < 1000) {
    const int drafts = length.next(7);
    num_drafted += drafts;
    num_tokens += drafts == 0 ? length.num_plain() : 1;
    if (drafts == 0) {
      stretches.push_back(length.num_plain());
    } else {
      length.note(drafts, 0);
    }
  }
  EXPECT_LT(num_drafted, 40);
  EXPECT_TRUE(std::is_sorted(stretches.begin(), stretches.end()));
  EXPECT_EQ(stretches.front(), 16);
  EXPECT_EQ(stretches.back(), 256);
  for (int i = 0; i < 20; ++i) {
    const int drafts = length.next(7);
    if (drafts > 0) length.note(drafts, drafts);
  }
  EXPECT_EQ(length.next(7), 7) << "it begins again";
}

// ---- Answers

class Drafting : public testing::TestWithParam<const char*> {
 protected:
  Drafting() : large_(open(kLarge)) {}

  static std::unique_ptr<Engine> open(uint64_t seed, int context = kDraftingContext) {
    auto engine = std::make_unique<Engine>(
        KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/" + GetParam() + ".so"),
        EngineOptions{.context = context});
    engine->load_random(seed);
    return engine;
  }
  int vocabulary() const { return large_->library().model().facts.vocabulary; }

  Tokens prompt(int length, uint64_t seed = 5) const {
    Tokens tokens;
    for (int i = 0; i < length; ++i)
      tokens.push_back(static_cast<int32_t>(random_bits(i, seed) % static_cast<uint32_t>(vocabulary())));
    return tokens;
  }
  Tokens plain(const Tokens& prompt, int max_tokens, const Sampling& sampling) {
    large_->reset_tree();
    return large_
        ->decode({.tokens = prompt,
                  .max_tokens = max_tokens,
                  .sampling = sampling.is_greedy() ? std::nullopt : std::optional(row_sampling(sampling))})
        .tokens;
  }
  SpeculationResult drafted(Drafter& drafter, const Tokens& prompt, int max_tokens, Sampling sampling,
                            const Tokens& stop_tokens = {}) {
    large_->reset_tree();
    if (sampling.num_drafts == 0) sampling.num_drafts = 4;
    return decode_speculatively(
        *large_, drafter,
        {.prompt = prompt, .max_tokens = max_tokens, .stop_tokens = stop_tokens, .sampling = sampling});
  }

  static Tokens drafts_of(Drafter& drafter) {
    Tokens tokens = drafter.propose(4).draft.tokens;
    tokens.erase(tokens.begin());
    return tokens;
  }

  std::unique_ptr<Engine> large_;
};

INSTANTIATE_TEST_SUITE_P(Kernels, Drafting, testing::Values("micro-2-all"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

const std::vector<Sampling> kSamplings = {
    {},
    {.temperature = 0.9, .seed = 3},
    {.temperature = 1.2, .top_k = 20, .top_p = 0.95, .repeat_penalty = 1.3, .seed = 4}};

TEST_P(Drafting, AModelThatDraftsForItselfIsAlwaysRight) {
  constexpr int kTokens = 40;
  for (const Sampling& sampling : kSamplings) {
    SCOPED_TRACE(sampling.temperature);
    DraftModel itself(open(kLarge), kDraftingContext, vocabulary(), 1);
    const SpeculationResult result = drafted(itself, prompt(30), kTokens, sampling);
    EXPECT_EQ(result.tokens, plain(prompt(30), kTokens, sampling));
    EXPECT_GE(result.tokens_per_step(), 2.5);
    // Another text, of which it knows the beginning.
    Tokens longer = prompt(20);
    longer.insert(longer.end(), {1, 2, 3});
    EXPECT_EQ(drafted(itself, longer, 12, sampling).tokens, plain(longer, 12, sampling));
  }
}

TEST_P(Drafting, AModelThatIsWrongChangesNothing) {
  const int num_tokens = long_tests() ? 60 : 36;  // across the end of a page
  for (const Sampling& sampling : kSamplings) {
    SCOPED_TRACE(sampling.temperature);
    DraftModel other(open(kOther), kDraftingContext, vocabulary(), 0.2);
    const SpeculationResult result = drafted(other, prompt(30), num_tokens, sampling);
    EXPECT_EQ(result.tokens, plain(prompt(30), num_tokens, sampling));
    EXPECT_EQ(result.times_ns.size(), result.step_tokens.size());
    EXPECT_EQ(std::accumulate(result.step_tokens.begin(), result.step_tokens.end(), 0), num_tokens);
    EXPECT_EQ(large_->position(), 30 + num_tokens - 1);
  }
}

// What a seed draws is the large model's, so what many seeds draw has its distribution.
TEST_P(Drafting, DrawsHaveTheLargeModelsDistribution) {
  const int num_seeds = long_tests() ? 200 : 15;
  const Sampling base{.temperature = 1.1};
  DraftModel other(open(kOther), kDraftingContext, vocabulary(), 0.0);
  std::map<Tokens, int> difference;
  for (int seed = 0; seed < num_seeds; ++seed) {
    Sampling sampling = base;
    sampling.seed = static_cast<uint32_t>(seed);
    ++difference[plain(prompt(3), 3, sampling)];
    --difference[drafted(other, prompt(3), 3, sampling).tokens];
  }
  EXPECT_GT(difference.size(), 10u) << "draws differ";
  for (const auto& [tokens, count] : difference) EXPECT_EQ(count, 0);
}

TEST_P(Drafting, EndsAtStopTokens) {
  const Tokens expected = plain(prompt(30), 24, {});
  for (const uint64_t seed : {kLarge, kOther}) {
    DraftModel drafter(open(seed), kDraftingContext, vocabulary(), 0.2);
    for (const size_t at : {size_t{0}, size_t{5}, size_t{17}}) {
      const auto end = std::find(expected.begin(), expected.end(), expected[at]) + 1;
      const SpeculationResult result = drafted(drafter, prompt(30), 24, {}, {expected[at]});
      EXPECT_TRUE(result.hit_stop_token);
      EXPECT_EQ(result.tokens, Tokens(expected.begin(), end));
      EXPECT_EQ(large_->position(), 30 + std::ssize(result.tokens) - 1);
    }
  }
}

TEST_P(Drafting, LogprobsAreTheLargeModels) {
  constexpr int kTokens = 12;
  const Sampling sampling{.temperature = 0.9, .seed = 3, .num_drafts = 4, .logprobs = true};
  std::vector<float> logprobs;
  const auto keep = [&](const ChosenToken& token) {
    logprobs.push_back(token.logprob.value());
    return true;
  };
  DraftModel itself(open(kLarge), kDraftingContext, vocabulary(), 0.2);
  decode_speculatively(*large_, itself, {.prompt = prompt(30), .max_tokens = kTokens, .sampling = sampling},
                       keep);
  large_->reset_tree();
  const DecodeResult plain = large_->decode({.tokens = prompt(30),
                                             .max_tokens = kTokens,
                                             .sampling = row_sampling(sampling),
                                             .want_logprobs = true});
  ASSERT_EQ(logprobs.size(), plain.logprobs.size());
  for (size_t i = 0; i < logprobs.size(); ++i) EXPECT_NEAR(logprobs[i], plain.logprobs[i], 1e-3);
}

TEST_P(Drafting, ReadsALongTextInPieces) {
  DraftModel at_once(open(kLarge), kDraftingContext, vocabulary(), 0.2);
  at_once.begin(prompt(100), {});
  const Tokens expected = drafts_of(at_once);
  DraftModel drafter(open(kLarge), kDraftingContext, vocabulary(), 0.2);
  drafter.begin(prompt(100), {});
  EXPECT_FALSE(drafter.feed(40));
  EXPECT_TRUE(drafter.feed(40));
  EXPECT_TRUE(drafter.feed(40)) << "no more than 40 are left";
  EXPECT_EQ(drafts_of(drafter), expected);
  drafter.begin(prompt(100), {});
  EXPECT_TRUE(drafter.feed(10)) << "it knows the text";
  drafter.forget();
  drafter.begin(prompt(100), {});
  EXPECT_FALSE(drafter.feed(40));
  drafter.begin(Tokens{3, vocabulary(), 4, 5}, {});
  EXPECT_TRUE(drafter.feed(1)) << "nothing of what it does not know";
}

// Where the text is longer than the draft model takes, or has tokens that one of the two does not know.
TEST_P(Drafting, GoesOnWhereNothingCanBeDrafted) {
  const Tokens expected = plain(prompt(30), 24, {});
  DraftModel short_one(open(kLarge, 64), 40, vocabulary(), 0.2);
  const SpeculationResult behind = drafted(short_one, prompt(30), 24, {});
  EXPECT_EQ(behind.tokens, expected);
  EXPECT_GT(*std::max_element(behind.step_tokens.begin(), behind.step_tokens.end()), 1);
  EXPECT_EQ(behind.step_tokens.back(), 1);

  const int half = vocabulary() / 2;
  DraftModel careful(open(kLarge), kDraftingContext, half, 0.2);
  EXPECT_EQ(drafted(careful, prompt(30), 24, {}).tokens, expected);
  for (int i = 0; i < 10; ++i) {
    careful.begin(prompt(30, i), {});
    for (const int32_t token : drafts_of(careful)) EXPECT_LT(token, half);
  }
  careful.begin(Tokens{3, vocabulary()}, {});
  EXPECT_EQ(careful.propose(4).draft.tokens.size(), 1u);
}

}  // namespace
}  // namespace soliton
