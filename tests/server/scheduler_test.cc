// Requests together on one emulated kernel: who gets which tokens, what is shared, and what happens where rows, pages or
// places in the queue run out.
#include <gmock/gmock.h>

#include <set>

#include "error_of.h"
#include "long_tests.h"
#include "server/scheduler_fixture.h"

namespace soliton {
namespace {

using testing::Each;
using testing::Le;
using testing::StartsWith;

TEST_F(SchedulerTest, OneRequestIsDecodedByTheKernelOfOneRow) {
  const Tokens expected = greedy(prompt(70), 20);
  SchedulerUnderTest test = with({});
  const size_t index = test.ask({.prompt = prompt(70), .max_tokens = 20});
  test.run_to_end();
  EXPECT_EQ(test.heard(index).tokens, expected);
  EXPECT_EQ(test.heard(index).end->end, SampleEnd::kLength);
  EXPECT_EQ(test.heard(index).end->num_cached, 0);
  // Nine steps of the prompt, of which the last chooses a token, and one launch of the answer, whatever launch_tokens are.
  EXPECT_EQ(test.metrics().value(Metrics::Counter::kLaunches), 10u);
}

TEST_F(SchedulerTest, TogetherAsAlone) {
  std::vector<Tokens> expected;
  const std::vector<int> lengths = {1, 5, 64, 65, 70, 20, 9, 33, 66};
  for (const int length : lengths) expected.push_back(greedy(prompt(length), 12));
  SchedulerUnderTest test = with({.launch_tokens = 3});
  for (const int length : lengths) {
    test.ask({.prompt = prompt(length), .max_tokens = 12});
    test.run(2);
  }
  test.run_to_end();
  for (size_t i = 0; i < lengths.size(); ++i) EXPECT_EQ(test.heard(i).tokens, expected[i]) << lengths[i];
}

TEST_F(SchedulerTest, SamplesDrawWithSeedsOfTheirOwn) {
  const Sampling sampling{.temperature = 1, .seed = 5};
  SchedulerUnderTest test = with({});
  const size_t together =
      test.ask({.prompt = prompt(80), .num_samples = 3, .max_tokens = 10, .sampling = sampling});
  test.run_to_end();
  for (uint32_t i = 0; i < 3; ++i) {
    Sampling alone = sampling;
    alone.seed += i;
    EXPECT_EQ(test.alone({.prompt = prompt(80), .max_tokens = 10, .sampling = alone}).tokens,
              test.heard(together + i).tokens);
  }
  EXPECT_NE(test.heard(together).tokens, test.heard(together + 1).tokens);
  // The prompt is fed once.
  EXPECT_EQ(test.heard(together).end->num_cached, 0);
  EXPECT_EQ(test.heard(together + 1).end->num_cached, 79);
}

// An adjustment that changes nothing leaves the choice where it was, be it that the host makes it.
TEST_F(SchedulerTest, HostsChooseAsKernelsDo) {
  SchedulerUnderTest test = with({});
  const Sampling sampling{
      .temperature = 0.8, .top_k = 20, .top_p = 0.9, .repeat_penalty = 1.2, .seed = 7, .logprobs = true};
  Generation generation{.prompt = prompt(40), .num_samples = 3, .max_tokens = 15, .sampling = sampling};
  const size_t first = test.ask(generation);
  test.run_to_end();
  generation.adjustment =
      std::make_shared<const LogitAdjustment>(LogitAdjustment{.presence_penalty = 1e-30f});
  const size_t second = test.ask(generation);
  test.run_to_end();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(test.heard(first + i).tokens, test.heard(second + i).tokens);
    for (size_t j = 0; j < 15; ++j)
      EXPECT_NEAR(test.heard(first + i).logprobs[j], test.heard(second + i).logprobs[j], 1e-3);
  }
}

// Each adjusts its own answer, whoever is beside.
TEST_F(SchedulerTest, AdjustmentsAreOfOneAnswer) {
  SchedulerUnderTest test = with({});
  const Tokens plain = test.alone({.prompt = prompt(40), .max_tokens = 30}).tokens;
  const auto adjusted = [&](LogitAdjustment adjustment) {
    return Generation{.prompt = prompt(40),
                      .max_tokens = 30,
                      .adjustment = std::make_shared<const LogitAdjustment>(std::move(adjustment))};
  };
  const size_t first = test.ask(adjusted({.biases = {{7, 50}}}));
  test.ask({.prompt = prompt(40), .max_tokens = 30});
  test.ask(adjusted({.frequency_penalty = 50}));
  test.ask(adjusted({.biases = {{plain[0], -50}}}));
  test.run_to_end();
  EXPECT_THAT(test.heard(first).tokens, Each(7));
  EXPECT_EQ(test.heard(first + 1).tokens, plain);
  const Tokens& penalised = test.heard(first + 2).tokens;
  EXPECT_EQ(std::set<int32_t>(penalised.begin(), penalised.end()).size(), penalised.size());
  EXPECT_THAT(test.heard(first + 3).tokens, Each(testing::Ne(plain[0])));
}

TEST_F(SchedulerTest, SecondTurnFeedsOnlyWhatIsNew) {
  SchedulerUnderTest test = with({});
  Tokens turn = prompt(100);
  const Heard first = test.alone({.prompt = turn, .max_tokens = 10});
  turn.insert(turn.end(), first.tokens.begin(), first.tokens.end());
  const Tokens next = prompt(30);
  turn.insert(turn.end(), next.begin(), next.end());
  const Heard second = test.alone({.prompt = turn, .max_tokens = 10});
  EXPECT_EQ(second.end->num_cached, 109);  // the last token was never fed
  EXPECT_EQ(second.tokens, greedy(turn, 10));
}

// Nobody waits for what another scope is being fed, or is told that it was there.
TEST_F(SchedulerTest, ScopesShareNoPrefix) {
  const Tokens expected = greedy(prompt(200), 4);
  SchedulerUnderTest test = with({});
  std::vector<size_t> asked;
  for (const char* scope : {"one", "two", "two", ""})
    asked.push_back(test.ask({.prompt = prompt(200), .max_tokens = 4, .cache_scope = scope}));
  test.run_to_end();
  std::vector<int> cached;
  for (const size_t index : asked) {
    cached.push_back(test.heard(index).end->num_cached);
    EXPECT_EQ(test.heard(index).tokens, expected);
  }
  // The third begins with the second's last step.
  EXPECT_GE(cached[2], 200 - kKvPageTokens);
  cached[2] = 0;
  EXPECT_THAT(cached, Each(0));
  EXPECT_EQ(test.alone({.prompt = prompt(200), .max_tokens = 4, .cache_scope = "one"}).end->num_cached, 199);
  EXPECT_EQ(test.alone({.prompt = prompt(200), .max_tokens = 4, .cache_scope = "three"}).end->num_cached, 0);
}

// Who has all of its prompt in the cache decodes at once, but not in a row that a step has for another one's prompt.
TEST_F(SchedulerTest, AFullStepHasNoRowForWhoIsCached) {
  Tokens other = prompt(90);
  other.front() ^= 1;
  const Tokens expected = greedy(prompt(70), 4);
  SchedulerUnderTest test = with({.launch_tokens = 2});
  EXPECT_EQ(test.alone({.prompt = prompt(70), .max_tokens = 4}).tokens, expected);
  std::vector<size_t> cached;
  test.ask({.prompt = prompt(5), .max_tokens = 40});
  test.run(3);
  const size_t long_one = test.ask({.prompt = other, .max_tokens = 4});
  test.run(1);
  for (int i = 0; i < 3; ++i) cached.push_back(test.ask({.prompt = prompt(70), .max_tokens = 4}));
  test.run_to_end();
  for (const size_t index : cached) {
    EXPECT_EQ(test.heard(index).tokens, expected);
    EXPECT_EQ(test.heard(index).end->num_cached, 69);
  }
  EXPECT_EQ(test.heard(long_one).tokens.size(), 4u);
}

// Of launches of one token, who wants no more says so while the next one runs.
TEST_F(SchedulerTest, StopsOneAndNotTheOthers) {
  const Tokens expected = greedy(prompt(40), 12);
  const auto stop = std::find(expected.begin() + 3, expected.end(), expected[3]);
  const auto first = std::find(expected.begin(), expected.end(), *stop);
  for (const int launch_tokens : {32, 3, 1}) {
    SchedulerUnderTest test = with({.launch_tokens = launch_tokens});
    const size_t stopped = test.ask({.prompt = prompt(40), .max_tokens = 12, .stop_tokens = {*stop}});
    const size_t enough = test.ask(
        {.prompt = prompt(40),
         .max_tokens = 12,
         .on_token = [num_tokens = 0](int, const GeneratedToken&) mutable { return ++num_tokens < 5; }});
    const size_t whole = test.ask({.prompt = prompt(40), .max_tokens = 12});
    test.run_to_end();
    EXPECT_EQ(test.heard(stopped).tokens, Tokens(expected.begin(), first + 1));
    EXPECT_EQ(test.heard(stopped).end->end, SampleEnd::kStopToken);
    EXPECT_EQ(test.heard(enough).tokens, Tokens(expected.begin(), expected.begin() + 5));
    EXPECT_EQ(test.heard(enough).end->end, SampleEnd::kEnough);
    EXPECT_EQ(test.heard(whole).tokens, expected);
  }
}

TEST_F(SchedulerTest, CancelledOnesLeave) {
  SchedulerUnderTest test = with({});
  const auto cancel_at_5 = [&](int, const GeneratedToken&) {
    if (test.heard(0).tokens.size() == 5) test.scheduler().cancel(test.last_ticket());
    return true;
  };
  // So short that, with what a launch decodes before it hears of it, nothing is kept for prompts that begin alike.
  const size_t running = test.ask({.prompt = prompt(2), .max_tokens = 100, .on_token = cancel_at_5});
  test.run_to_end();
  const size_t waiting = test.ask({.prompt = prompt(10), .max_tokens = 100});
  test.scheduler().cancel(test.last_ticket());
  test.run_to_end();
  EXPECT_EQ(test.heard(running).end->end, SampleEnd::kCancelled);
  EXPECT_EQ(test.heard(running).tokens.size(), 5u);
  EXPECT_EQ(test.heard(waiting).end->end, SampleEnd::kCancelled);
  EXPECT_TRUE(test.heard(waiting).tokens.empty());
  EXPECT_EQ(test.metrics().value(Metrics::Counter::kCancelled), 2u);
  EXPECT_EQ(engine().tree().num_free_pages(), engine().tree().num_pages());
}

TEST_F(SchedulerTest, ALaunchEndsForWhoComes) {
  SchedulerUnderTest test = with({.launch_tokens = 100});
  size_t second = 0;
  const size_t first =
      test.ask({.prompt = prompt(10), .max_tokens = 60, .on_token = [&](int, const GeneratedToken&) {
                  if (test.heard(0).tokens.size() == 5)
                    second = test.ask({.prompt = prompt(20), .max_tokens = 3});
                  return true;
                }});
  test.run(3);
  EXPECT_LE(test.heard(first).tokens.size(), 6u);
  test.run(
      4);  // three chunks of the prompt beside the first one's row, and one more step, which tells what the last chose
  EXPECT_FALSE(test.heard(second).tokens.empty());
  EXPECT_FALSE(test.heard(first).end);
  test.run_to_end();
  EXPECT_EQ(test.heard(first).tokens, greedy(prompt(10), 60));
}

TEST_F(SchedulerTest, MoreThanThereAreRowsTakeTurns) {
  SchedulerUnderTest test = with({.max_rows = 4, .launch_tokens = 4});
  std::vector<std::string> order;
  const auto ask = [&](const std::string& client) {
    test.ask({.prompt = prompt(10),
              .max_tokens = 4,
              .client = client,
              .on_token = [&, client](int, const GeneratedToken&) {
                order.push_back(client);
                return true;
              }});
  };
  for (int i = 0; i < 8; ++i) ask("greedy");
  ask("modest");
  test.run_to_end();
  // Of nine, five at a time have a row or are next: the modest one is the second to have one.
  const auto modest = std::find(order.begin(), order.end(), "modest") - order.begin();
  EXPECT_LT(modest, 8);
  EXPECT_EQ(order.size(), 9 * 4u);
  EXPECT_EQ(test.metrics().value(Metrics::Gauge::kWaiting), 0);
}

TEST_F(SchedulerTest, RefusesWhatCannotBe) {
  SchedulerUnderTest test = with({.max_waiting = 2});
  const auto refusal = [&](const Generation& generation) { return error_of([&] { test.ask(generation); }); };
  EXPECT_THAT(refusal({.prompt = {}}), StartsWith("2 "));
  EXPECT_THAT(refusal({.prompt = {0, 50}}), StartsWith("5 "));
  EXPECT_THAT(refusal({.prompt = {-1}}), StartsWith("5 "));
  EXPECT_THAT(refusal({.prompt = prompt(200), .max_tokens = 122}), StartsWith("7 "));
  const size_t fits = test.ask({.prompt = prompt(1), .max_tokens = kSchedulerContext});
  test.scheduler().cancel(test.last_ticket());
  test.ask({.prompt = prompt(1)});
  EXPECT_THROW(test.ask({.prompt = prompt(2)}), Busy);
  EXPECT_EQ(test.metrics().value(Metrics::Counter::kRefused), 1u);
  test.run_to_end();
  EXPECT_TRUE(test.heard(fits).end);
}

TEST_F(SchedulerTest, ThreadsSubmitAndStop) {
  SchedulerUnderTest test = with({});
  const Tokens expected = greedy(prompt(20), 8);
  engine().clear_tree();
  test.scheduler().start();
  std::mutex mutex;
  std::condition_variable ended;
  int num_ended = 0;
  std::vector<Tokens> answers(6);
  std::vector<std::thread> clients;
  for (size_t i = 0; i < answers.size(); ++i) {
    clients.emplace_back([&, i] {
      test.scheduler().submit({.prompt = prompt(20),
                               .max_tokens = 8,
                               .client = std::to_string(i),
                               .on_token =
                                   [&, i](int, const GeneratedToken& token) {
                                     answers[i].push_back(token.id);
                                     return true;
                                   },
                               .on_end =
                                   [&](int, const SampleSummary&) {
                                     const std::lock_guard lock(mutex);
                                     ++num_ended;
                                     ended.notify_all();
                                   }});
    });
  }
  for (std::thread& client : clients) client.join();
  {
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return num_ended == std::ssize(answers); });
  }
  EXPECT_THAT(answers, Each(expected));
  const size_t cut = test.ask({.prompt = prompt(30), .max_tokens = 290});
  test.scheduler().stop();
  EXPECT_EQ(test.heard(cut).end->end, SampleEnd::kShutdown);
  EXPECT_THAT(error_of([&] { test.ask({.prompt = prompt(3)}); }), StartsWith("6 "));
}

TEST_F(SchedulerTest, AFailureIsToldToAll) {
  SchedulerUnderTest test = with({});
  kernel_.engine().set_num_ctas(1);  // of two: the kernel waits for one that is not there
  test.scheduler().start();
  const size_t index = test.ask({.prompt = prompt(20), .max_tokens = 8});
  while (!test.scheduler().failure()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  test.scheduler().stop();
  ASSERT_TRUE(test.heard(index).end);
  EXPECT_EQ(test.heard(index).end->end, SampleEnd::kFailed);
  EXPECT_THAT(test.heard(index).end->failure, testing::HasSubstr("stalled"));
  EXPECT_THAT(error_of([&] { test.ask({.prompt = prompt(3)}); }), StartsWith("6 "));
}

// ---- With few pages
class SchedulerWithFewPages : public SchedulerTest {
 protected:
  SchedulerWithFewPages() : SchedulerTest(6 * kKvPageTokens) {}
};

TEST_F(SchedulerWithFewPages, SendsBackAndGoesOn) {
  constexpr int kTokens = 70;
  std::vector<Tokens> expected;
  const std::vector<int> lengths = {60, 61, 62};
  for (const int length : lengths) expected.push_back(greedy(prompt(length), kTokens));
  SchedulerUnderTest test = with({.launch_tokens = 16});
  for (const int length : lengths) test.ask({.prompt = prompt(length), .max_tokens = kTokens});
  test.run_to_end();
  for (size_t i = 0; i < lengths.size(); ++i) {
    EXPECT_EQ(test.heard(i).tokens, expected[i]) << lengths[i];
    EXPECT_EQ(test.heard(i).end->num_cached, 0);
  }
  EXPECT_GT(test.metrics().value(Metrics::Counter::kSentBack), 0u);
}

TEST_F(SchedulerWithFewPages, EvictsAndAnswersRight) {
  SOLITON_LONG_RUNS_ONLY("SendsBackAndGoesOn runs out of pages too");
  const std::vector<int> lengths = {130, 140, 150, 320};
  std::vector<Tokens> expected;
  for (const int length : lengths) expected.push_back(greedy(prompt(length), 1));
  SchedulerUnderTest test = with({});
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < lengths.size(); ++i) {
      EXPECT_EQ(test.alone({.prompt = prompt(lengths[i])}).tokens, expected[i]) << lengths[i];
    }
  }
  test.run_to_end();
  EXPECT_GT(test.metrics().value(Metrics::Counter::kEvicted), 0u);
}

}  // namespace
}  // namespace soliton
