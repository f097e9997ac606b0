// Drafted tokens in the server's steps, on emulated kernels: whoever drafts, answers are those without drafts.
#include <gmock/gmock.h>

#include "error_of.h"
#include "long_tests.h"
#include "server/repetitive_model.h"
#include "server/scheduler_fixture.h"

namespace soliton {
namespace {

using Counter = Metrics::Counter;

constexpr int kDraftsContext = 320;

class SchedulerDrafts : public testing::Test {
 protected:
  explicit SchedulerDrafts(int num_pages = 60)
      : kernel_("micro-2-all", kDraftsContext, num_pages * kKvPageTokens) {
    make_repetitive(kernel_.engine(), kernel_.facts());
  }

  SchedulerUnderTest with(int num_drafts, std::unique_ptr<DraftModel> model = nullptr) {
    return SchedulerUnderTest(
        kernel_.engine(),
        {.context = kDraftsContext, .max_rows = 8, .launch_tokens = 4, .num_drafts = num_drafts},
        std::move(model));
  }
  /// One of the same weights, or others.
  std::unique_ptr<DraftModel> draft_model(bool is_right) {
    auto engine = std::make_unique<Engine>(KernelLibrary::open(kernel_.engine().library().path()),
                                           EngineOptions{.context = kDraftsContext});
    if (is_right) {
      make_repetitive(*engine, kernel_.facts());
    } else {
      engine->load_random(kWeightSeed + 1);
    }
    return std::make_unique<DraftModel>(std::move(engine), kDraftsContext, kernel_.facts().vocabulary, 0.2);
  }
  /// What has come of requests that are asked for one after another, so many rounds apart.
  static std::vector<Heard> heard_of(SchedulerUnderTest& test, const std::vector<Generation>& generations,
                                     int num_rounds = 3) {
    std::vector<size_t> indices;
    for (const Generation& generation : generations) {
      indices.push_back(test.ask(generation));
      test.run(num_rounds);
    }
    test.run_to_end();
    std::vector<Heard> heard;
    for (const size_t index : indices) heard.push_back(test.heard(index));
    return heard;
  }
  /// Without drafts.
  std::vector<Heard> plain(const std::vector<Generation>& generations) {
    SchedulerUnderTest test = with(0);
    std::vector<Heard> heard = heard_of(test, generations);
    EXPECT_EQ(test.metrics().value(Counter::kDraftedTokens), 0u);
    return heard;
  }
  static void expect_same(const std::vector<Heard>& heard, const std::vector<Heard>& expected) {
    ASSERT_EQ(heard.size(), expected.size());
    for (size_t i = 0; i < heard.size(); ++i) {
      EXPECT_EQ(heard[i].tokens, expected[i].tokens) << i;
      EXPECT_EQ(heard[i].end->end, expected[i].end->end) << i;
      ASSERT_EQ(heard[i].logprobs.size(), expected[i].logprobs.size()) << i;
      for (size_t j = 0; j < heard[i].logprobs.size(); ++j)
        EXPECT_NEAR(heard[i].logprobs[j], expected[i].logprobs[j], 1e-3) << i;
    }
  }
  std::vector<Generation> some() const {
    return {{.prompt = refrain(40), .max_tokens = 30},
            {.prompt = refrain(70),
             .max_tokens = 20,
             .sampling = {.temperature = 0.9, .seed = 3, .logprobs = true}},
            {.prompt = kernel_.prompt(9),
             .max_tokens = 25,
             .sampling = {.repeat_penalty = 1.3, .logprobs = true}}};
  }

  KernelUnderTest kernel_;
};

TEST_F(SchedulerDrafts, FromTheTextChangeNoAnswer) {
  const std::vector<Heard> expected = plain(some());
  SchedulerUnderTest test = with(3);
  expect_same(heard_of(test, some()), expected);
  const uint64_t num_accepted = test.metrics().value(Counter::kAcceptedTokens);
  EXPECT_GT(num_accepted, 5u);
  EXPECT_GT(test.metrics().value(Counter::kDraftedTokens), num_accepted);
  EXPECT_EQ(test.metrics().value(Counter::kGeneratedTokens), 75u);
  // What was fed of drafts is cached as all else.
  Tokens again = refrain(40);
  again.insert(again.end(), expected[0].tokens.begin(), expected[0].tokens.end());
  EXPECT_EQ(test.alone({.prompt = again}).end->num_cached, static_cast<int>(again.size()) - 1);
}

// Who comes while it drafts is decoded without drafts, and then it goes on.
TEST_F(SchedulerDrafts, OfAModelChangeNoAnswer) {
  SOLITON_LONG_RUNS_ONLY("EndWithTheAnswer drafts too");
  const std::vector<Heard> expected = plain(some());
  for (const bool is_right : {true, false}) {
    SCOPED_TRACE(is_right);
    SchedulerUnderTest test = with(3, draft_model(is_right));
    expect_same(heard_of(test, some()), expected);
    for (size_t i = 0; i < expected.size(); ++i) expect_same({test.alone(some()[i])}, {expected[i]});
    const uint64_t num_drafted = test.metrics().value(Counter::kDraftedTokens);
    EXPECT_GT(num_drafted, 0u);
    if (is_right) {
      EXPECT_GT(test.metrics().value(Counter::kAcceptedTokens), 40u);
    } else {
      EXPECT_LT(test.metrics().value(Counter::kAcceptedTokens), num_drafted);
    }
  }
}

TEST_F(SchedulerDrafts, OfSamplesAreTheirOwn) {
  const Generation three{
      .prompt = refrain(66), .num_samples = 3, .max_tokens = 12, .sampling = {.temperature = 0.7, .seed = 5}};
  Tokens expected;
  {
    SchedulerUnderTest test = with(0);
    const size_t index = test.ask(three);
    test.run_to_end();
    for (size_t i = 0; i < 3; ++i)
      expected.insert(expected.end(), test.heard(index + i).tokens.begin(),
                      test.heard(index + i).tokens.end());
  }
  SchedulerUnderTest test = with(7);  // which have no room for three
  const size_t index = test.ask(three);
  test.run_to_end();
  Tokens tokens;
  for (size_t i = 0; i < 3; ++i)
    tokens.insert(tokens.end(), test.heard(index + i).tokens.begin(), test.heard(index + i).tokens.end());
  EXPECT_EQ(tokens, expected);
  EXPECT_GT(test.metrics().value(Counter::kAcceptedTokens), 0u);
}

// In the middle of what was accepted too.
TEST_F(SchedulerDrafts, EndWithTheAnswer) {
  const Generation whole{.prompt = refrain(50), .max_tokens = 11};
  const Tokens said = plain({whole})[0].tokens;
  SchedulerUnderTest test = with(3, draft_model(true));
  for (const int length : {1, 2, 3, 4, 5, 8, 11}) {
    Generation shorter = whole;
    shorter.max_tokens = length;
    EXPECT_EQ(test.alone(shorter).tokens, Tokens(said.begin(), said.begin() + length));
    Generation stopped = whole;
    stopped.stop_tokens = {said[static_cast<size_t>(length) - 1]};
    const auto end = std::find(said.begin(), said.end(), stopped.stop_tokens[0]) + 1;
    EXPECT_EQ(test.alone(stopped).tokens, Tokens(said.begin(), end));
    Generation enough = whole;
    int num_wanted = length;
    enough.on_token = [&](int, const GeneratedToken&) { return --num_wanted > 0; };
    EXPECT_EQ(test.alone(enough).tokens, Tokens(said.begin(), said.begin() + length));
  }
  EXPECT_GT(test.metrics().value(Counter::kAcceptedTokens), 20u);
}

// Of a text that goes on otherwise each time: a step with drafts costs more than one without.
TEST_F(SchedulerDrafts, EndWhereTheyAreWrong) {
  kernel_.engine().load_random(kWeightSeed);
  const Generation long_one{
      .prompt = refrain(50), .max_tokens = 100, .sampling = {.temperature = 2, .seed = 1}};
  const std::vector<Heard> expected = plain({long_one});
  SchedulerUnderTest test = with(3);
  expect_same({test.alone(long_one)}, expected);
  EXPECT_GT(test.metrics().value(Counter::kDraftedTokens), 0u);
  EXPECT_LT(test.metrics().value(Counter::kDraftedTokens), 30u);
}

// Logits come for every row of a step: none is drafted where somebody wants them.
TEST_F(SchedulerDrafts, WaitWhereLogitsAreWanted) {
  Generation ranked{.prompt = refrain(30), .max_tokens = 8, .sampling = {.logprobs = true}, .num_best = 2};
  const std::vector<Heard> expected = plain({ranked});
  SchedulerUnderTest test = with(3);
  expect_same({test.alone(ranked)}, expected);
  EXPECT_EQ(test.metrics().value(Counter::kDraftedTokens), 0u);
}

TEST_F(SchedulerDrafts, NeedAKernelOfAsManyRows) {
  EXPECT_THAT(error_of([&] { with(8); }), testing::HasSubstr("expected a kernel for 9 rows a step"));
}

class FewPages : public SchedulerDrafts {
 protected:
  FewPages() : SchedulerDrafts(kDraftsContext / kKvPageTokens + 1) {}
};

// Where pages are short there are no drafts, and who is sent back goes on later.
TEST_F(FewPages, ChangeNoAnswer) {
  SOLITON_LONG_RUNS_ONLY("SendsBackAndGoesOn compares answers");
  std::vector<Generation> generations;
  for (const int length : {58, 60, 62})
    generations.push_back({.prompt = refrain(length), .max_tokens = 72, .sampling = {.temperature = 0.3}});
  const std::vector<Heard> expected = plain(generations);
  SchedulerUnderTest test = with(3);
  expect_same(heard_of(test, generations, 0), expected);
  EXPECT_GT(test.metrics().value(Counter::kAcceptedTokens), 5u);
  EXPECT_GT(test.metrics().value(Counter::kSentBack), 0u);
}

}  // namespace
}  // namespace soliton
