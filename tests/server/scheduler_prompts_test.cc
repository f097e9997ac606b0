// What is fed of prompts, in which steps, beside whom.
#include "long_tests.h"
#include "server/scheduler_fixture.h"

namespace soliton {
namespace {

// As a step of its own would.
TEST_F(SchedulerTest, TheStepThatEndsAPromptChoosesTheFirstToken) {
  SchedulerUnderTest test = with({});
  const Generation greedily{.prompt = prompt(6), .max_tokens = 1};
  Generation drawn{.prompt = prompt(7), .max_tokens = 1};
  drawn.sampling = {.temperature = 0.9, .repeat_penalty = 1.3, .seed = 3, .logprobs = true};
  Generation among = greedily;
  among.allowed = std::make_shared<const std::vector<uint32_t>>(std::vector<uint32_t>{1u << 9, 0});
  for (const Generation& generation : {greedily, drawn, among}) {
    Generation cached = generation;
    const uint64_t launches = test.metrics().value(Metrics::Counter::kLaunches);
    const Heard heard = test.alone(generation);
    EXPECT_EQ(test.metrics().value(Metrics::Counter::kLaunches), launches + 1);
    EXPECT_EQ(heard.end->end, SampleEnd::kLength);
    cached.prompt.pop_back();
    engine().clear_tree();
    const Branch branch = engine().tree().open();
    engine().feed(branch, cached.prompt);
    const std::vector<RowSampling> draw = {row_sampling(generation.sampling)};
    const std::vector<Tokens> past = {generation.prompt};
    const std::vector<std::span<const uint32_t>> allowed = {
        generation.allowed ? std::span(*generation.allowed) : std::span<const uint32_t>()};
    const TreeResult expected = engine().decode_tree({.tokens = std::span(generation.prompt).last(1),
                                                      .sampling = draw,
                                                      .past = past,
                                                      .allowed = allowed,
                                                      .want_logprobs = generation.sampling.logprobs});
    engine().tree().prune(branch);
    EXPECT_EQ(heard.tokens, expected.chosen);
    ASSERT_EQ(heard.logprobs.size(), expected.logprobs.size());
    for (size_t i = 0; i < heard.logprobs.size(); ++i)
      EXPECT_NEAR(heard.logprobs[i], expected.logprobs[i], 1e-3);
  }
  EXPECT_EQ(test.alone(among).tokens, Tokens{9});
}

TEST_F(SchedulerTest, WaitsForAPrefixThatIsBeingFed) {
  SchedulerUnderTest test = with({});
  Tokens other = prompt(200);
  other.back() ^= 1;
  const size_t first = test.ask({.prompt = prompt(200), .max_tokens = 4});
  const size_t second = test.ask({.prompt = other, .max_tokens = 4});
  test.run_to_end();
  EXPECT_EQ(test.heard(second).end->num_cached, 199);
  EXPECT_EQ(test.heard(first).tokens, greedy(prompt(200), 4));
  EXPECT_EQ(test.heard(second).tokens, greedy(other, 4));
}

// Who waits for a step is not let wait for one that holds another prompt alone.
TEST_F(SchedulerTest, AStepFeedsAsManyPromptsAsItHasRowsFor) {
  std::vector<Tokens> expected;
  for (const int length : {10, 3, 4, 2}) expected.push_back(greedy(prompt(length), 6));
  SchedulerUnderTest test = with({.launch_tokens = 2});
  const size_t first = test.ask({.prompt = prompt(10), .max_tokens = 6});
  test.run(3);
  const uint64_t launches = test.metrics().value(Metrics::Counter::kLaunches);
  std::vector<size_t> others;
  for (const int length : {3, 4, 2}) others.push_back(test.ask({.prompt = prompt(length), .max_tokens = 6}));
  test.run(1);  // 2 + 3 + 1 tokens beside a row, and then those four
  EXPECT_EQ(test.metrics().value(Metrics::Counter::kLaunches), launches + 1);
  test.run(1);
  for (const size_t other : others) EXPECT_FALSE(test.heard(other).tokens.empty());
  test.run_to_end();
  EXPECT_EQ(test.heard(first).tokens, expected[0]);
  for (size_t i = 0; i < others.size(); ++i) EXPECT_EQ(test.heard(others[i]).tokens, expected[i + 1]);
}

// Seven of eight rows decode: a prompt of 5 tokens takes the last one four times, and nobody waits for a step without him.
TEST_F(SchedulerTest, APromptTakesTheRowsThatOthersLeave) {
  const Tokens expected = greedy(prompt(5), 6);
  const Tokens expected_of_others = greedy(prompt(10), 30);
  SchedulerUnderTest test = with({.launch_tokens = 1});
  std::vector<size_t> others;
  for (int i = 0; i < 7; ++i) others.push_back(test.ask({.prompt = prompt(10), .max_tokens = 30}));
  const auto has_few = [&](size_t other) { return test.heard(other).tokens.size() < 2; };
  while (std::ranges::any_of(others, has_few)) test.run(1);
  const size_t told = test.heard(others[0]).tokens.size();
  const size_t last = test.ask({.prompt = prompt(5), .max_tokens = 6});
  const uint64_t launches = test.metrics().value(Metrics::Counter::kLaunches);
  test.run(4);
  EXPECT_EQ(test.metrics().value(Metrics::Counter::kLaunches), launches + 4);
  EXPECT_EQ(test.heard(others[0]).tokens.size(), told + 4);
  test.run_to_end();
  EXPECT_EQ(test.heard(last).tokens, expected);
  for (const size_t other : others) EXPECT_EQ(test.heard(other).tokens, expected_of_others);
}

class SchedulerWithOneRow : public SchedulerTest {
 protected:
  SchedulerWithOneRow() : SchedulerTest(kManyPages, "micro-1") {}
};

// Launches of a token a step are so short that whoever wants something else need not wait for the whole prompt.
TEST_F(SchedulerWithOneRow, PromptsAreFedInShortLaunches) {
  SchedulerUnderTest test = with({.max_rows = 1});
  std::vector<int> fed;
  const Generation generation{
      .prompt = prompt(60), .max_tokens = 4, .on_fed = [&](int num_fed, int) { fed.push_back(num_fed); }};
  const size_t index = test.ask(generation);
  test.run_to_end();
  ASSERT_GE(fed.size(), 3u);
  EXPECT_EQ(fed[0], 0);
  EXPECT_LE(fed[1], 8);
  EXPECT_EQ(fed.back(), 59);
  EXPECT_EQ(test.heard(index).tokens, greedy(prompt(60), 4));
}

class SchedulerWithManyRows : public SchedulerTest {
 protected:
  SchedulerWithManyRows() : SchedulerTest(kManyPages, "plain-4-all") {}
};

// A prompt of 120 tokens beside a row that decodes: three times 31 tokens and the rest, where steps of 64 would be two.
TEST_F(SchedulerWithManyRows, StepsBesideThoseThatDecodeAreShort) {
  ASSERT_EQ(engine().max_rows(), 64);
  SchedulerUnderTest test = with({.max_rows = 64, .launch_tokens = 2});
  size_t second = 0;
  const auto ask_at_5 = [&](int, const GeneratedToken&) {
    if (test.heard(0).tokens.size() == 5) second = test.ask({.prompt = prompt(120), .max_tokens = 3});
    return true;
  };
  const size_t first = test.ask({.prompt = prompt(10), .max_tokens = 40, .on_token = ask_at_5});
  test.run(2);
  const size_t told = test.heard(first).tokens.size();
  ASSERT_LT(told, 10u);
  test.run(3);
  EXPECT_EQ(test.heard(first).tokens.size(), told + 3);
  EXPECT_TRUE(test.heard(second).tokens.empty());
  test.run(2);  // the last token of a prompt is one to decode with
  EXPECT_FALSE(test.heard(second).tokens.empty());
  test.run_to_end();
  EXPECT_EQ(test.heard(first).tokens.size(), 40u);
  // While nobody decodes, steps are as long as they can be.
  const uint64_t launches = test.metrics().value(Metrics::Counter::kLaunches);
  test.ask({.prompt = prompt(121), .max_tokens = 1});
  test.run_to_end();
  EXPECT_LE(test.metrics().value(Metrics::Counter::kLaunches), launches + 2);
}

class SchedulerWith128Rows : public SchedulerTest {
 protected:
  SchedulerWith128Rows() : SchedulerTest(kManyPages, "plain-2-to-128") {}
};

// All rows that warpgroups multiply: a prompt of 200 tokens beside a row that decodes is fed in two steps, of 127 tokens
// and the rest, not in seven of 31.
TEST_F(SchedulerWith128Rows, PromptsTakeAllOfThemBesideThoseThatDecode) {
  ASSERT_EQ(engine().max_rows(), 128);
  SchedulerUnderTest test = with({.max_rows = 64, .launch_tokens = 2});
  size_t second = 0;
  const auto ask_at_5 = [&](int, const GeneratedToken&) {
    if (test.heard(0).tokens.size() == 5) second = test.ask({.prompt = prompt(200), .max_tokens = 3});
    return true;
  };
  const size_t first = test.ask({.prompt = prompt(10), .max_tokens = 40, .on_token = ask_at_5});
  test.run(2);
  const size_t told = test.heard(first).tokens.size();
  test.run(2);
  EXPECT_EQ(test.heard(first).tokens.size(), told + 2);
  EXPECT_TRUE(test.heard(second).tokens.empty());
  test.run(1);
  EXPECT_FALSE(test.heard(second).tokens.empty());
  test.run_to_end();
  EXPECT_EQ(test.heard(first).tokens.size(), 40u);
}

// A prompt beside a row that decodes: by steps of 32 rows where longer ones are not known to be short enough, else of 128.
TEST_F(SchedulerWith128Rows, PromptsHoldOthersUpNoLongerThanTheyMay) {
  SOLITON_LONG_RUNS_ONLY("ABurstOfPromptsFillsItsSteps shares them out");
  for (const auto& [max_gap, most_told] :
       {std::pair(std::chrono::milliseconds(1), 31), std::pair(std::chrono::milliseconds(1000000), 127)}) {
    SchedulerUnderTest test = with({.max_rows = 64, .launch_tokens = 2, .max_gap = max_gap});
    EXPECT_EQ(engine().tree().num_free_pages(), engine().tree().num_pages());
    std::vector<int> fed;
    const auto ask_at_5 = [&](int, const GeneratedToken&) {
      if (test.heard(0).tokens.size() == 5)
        test.ask({.prompt = prompt(250), .max_tokens = 3, .on_fed = [&fed](int num_fed, int) {
                    fed.push_back(num_fed);
                  }});
      return true;
    };
    test.ask({.prompt = prompt(10), .max_tokens = 40, .on_token = ask_at_5});
    test.run_to_end();
    EXPECT_EQ(test.heard(0).tokens.size(), 40u);
    EXPECT_EQ(test.heard(1).tokens.size(), 3u);
    int most = 0;
    for (size_t i = 1; i < fed.size(); ++i) most = std::max(most, fed[i] - fed[i - 1]);
    EXPECT_EQ(most, most_told);
    // Nobody waits while nobody decodes.
    const uint64_t launches = test.metrics().value(Metrics::Counter::kLaunches);
    Tokens alone = prompt(129);
    alone[0] = (alone[0] + 1) % 33;
    test.ask({.prompt = alone, .max_tokens = 1});
    test.run_to_end();
    EXPECT_EQ(test.metrics().value(Metrics::Counter::kLaunches), launches + 2);
  }
}

// Where a kernel of 32 rows does 36 in less time, half of them after the other, these have steps by turns.
TEST(SchedulerWithParts, ThoseThatDecodeHaveStepsByTurnsWhereThatIsFaster) {
  constexpr size_t kSamples = 36;
  constexpr int kTokens = 3;
  KernelUnderTest kernel("plain-2-to-128", kSchedulerContext, 3 * kSamples * kKvPageTokens);
  const Tokens prompt = kernel.prompt(1);
  const Tokens expected = kernel.engine().decode({.tokens = prompt, .max_tokens = kTokens}).tokens;
  for (const bool divides : {false, true}) {
    SchedulerUnderTest test(kernel.engine(), {.context = kSchedulerContext, .max_rows = 64});
    test.scheduler().step_pace().calibrate(32, divides ? 1 : 1000);
    test.scheduler().step_pace().calibrate(128, 100);
    for (size_t i = 0; i < kSamples; ++i) test.ask({.prompt = prompt, .max_tokens = kTokens});
    test.run_to_end();
    for (size_t i = 0; i < kSamples; ++i) EXPECT_EQ(test.heard(i).tokens, expected) << i;
    EXPECT_EQ(test.metrics().value(Metrics::Counter::kSteps), (divides ? 2u : 1u) * kTokens);
  }
}

// A prompt longer than the largest step: by a kernel of 512 rows, and then by those that choose. One that such a step holds
// chooses in it, as where logits of all rows are found.
TEST(SchedulerWithBlocks, ReadsALongPromptAlone) {
  SOLITON_LONG_RUNS_ONLY("PromptOfBlocks does, without a server");
  constexpr int kContext = 640;
  KernelUnderTest kernel("broad-4-rows512", kContext, 2 * kContext);
  ASSERT_EQ(kernel.engine().max_prompt_rows(), 512);
  for (const auto& expected : {std::vector{0, 512, 519}, std::vector{0, 500}}) {
    const Tokens prompt = kernel.prompt(expected.back());
    std::vector<int> fed;
    const Generation generation{
        .prompt = prompt, .max_tokens = 2, .on_fed = [&fed](int num_fed, int) { fed.push_back(num_fed); }};
    Heard heard;
    {
      SchedulerUnderTest test(kernel.engine(), {.context = kContext, .max_rows = 8});
      heard = test.alone(generation);
    }
    EXPECT_EQ(fed, expected);
    kernel.engine().reset_tree();
    const DecodeRequest request{.tokens = prompt, .max_tokens = 2, .want_logits = true};
    EXPECT_EQ(heard.tokens, kernel.engine().decode(request).tokens);
    kernel.engine().clear_tree();
  }
}

// Who goes while a prompt is read alone is noticed behind the step that is at work.
TEST_F(SchedulerTest, APromptThatNobodyWaitsForIsNotReadOn) {
  SchedulerUnderTest test = with({});
  int most_fed = 0;
  test.ask({.prompt = prompt(200), .max_tokens = 5, .on_fed = [&](int num_fed, int) {
              most_fed = std::max(most_fed, num_fed);
              if (num_fed > 0) test.scheduler().cancel(test.last_ticket());
            }});
  test.run_to_end();
  EXPECT_EQ(most_fed, 8);
  EXPECT_EQ(test.heard(0).end->end, SampleEnd::kCancelled);
}

// Who comes last of many waits for as many steps as hold all their tokens: one step carries the rest of one prompt and the
// beginning of the next beside all that decode, and whoever's prompt ends in it has the first token from it.
TEST_F(SchedulerWith128Rows, ABurstOfPromptsFillsItsSteps) {
  constexpr int kPrompts = 8;
  constexpr int kLength = 80;
  SchedulerUnderTest test = with({.max_rows = 64, .launch_tokens = 1});
  for (int i = 0; i < kPrompts; ++i) {
    Tokens tokens = prompt(kLength);
    tokens[0] = i;  // nothing is shared
    test.ask({.prompt = tokens, .max_tokens = 20});
  }
  const auto num_begun = [&] {
    int count = 0;
    for (size_t i = 0; i < kPrompts; ++i) count += !test.heard(i).tokens.empty();
    return count;
  };
  // 128 rows: one and a half prompt, then those behind it and a row for each that decodes.
  int left = kPrompts * kLength;
  int steps = 0;
  for (int begun = 0; left > 0; ++steps) {
    left -= 128 - begun;
    begun = (kPrompts * kLength - std::max(left, 0)) / kLength;
  }
  test.run(steps);
  EXPECT_GE(num_begun(), kPrompts - 2);
  test.run(1);  // tells what the last step chose
  EXPECT_EQ(num_begun(), kPrompts);
}

}  // namespace
}  // namespace soliton
