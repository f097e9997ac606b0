// soliton-chat's loops on whole kernels in emulation: speculation against plain greedy decoding with the same
// kernel, samples among others against samples alone.
#include <cstdio>
#include <map>
#include <numeric>
#include <set>

#include "kernel/kernel_fixture.h"
#include "models/error.h"
#include "runtime/answer/speculate.h"
#include "runtime/chat/parallel.h"

namespace soliton {
namespace {

using Tokens = std::vector<int32_t>;

constexpr float kTemperature = 0.7f;
constexpr int64_t kPoolTokens = 32 * 64;

class Chat : public testing::TestWithParam<const char*> {
 protected:
  Chat() : kernel_(GetParam(), kTestContext, kPoolTokens) {}

  /// For cases in which a kernel for one row besides makes no difference but to what it takes.
  static bool is_repeated() { return !long_tests() && std::string(GetParam()) == "plain-4-rows8"; }

  Engine& engine() { return kernel_.engine(); }

  /// Greedily, one token a step, with the kernel of the least rows that takes `min_rows`.
  Tokens plain(const Tokens& prompt, int max_tokens, int min_rows) {
    engine().reset_tree();
    engine().feed(engine().main_branch(), std::span(prompt).first(prompt.size() - 1));
    const Tokens last = {prompt.back()};
    return engine()
        .decode_tree(
            {.tokens = last, .num_steps = max_tokens, .rule = SliceRule::kFixed, .min_rows = min_rows})
        .chosen;
  }

  SpeculationResult speculate(const Tokens& prompt, int max_tokens, int max_drafts,
                              const Tokens& stop_tokens = {},
                              const std::function<bool(int32_t)>& on_token = {}) {
    engine().reset_tree();
    LookupDrafter lookup;
    return decode_speculatively(engine(), lookup,
                                {.prompt = prompt,
                                 .max_tokens = max_tokens,
                                 .stop_tokens = stop_tokens,
                                 .sampling = {.num_drafts = max_drafts}},
                                [&](const ChosenToken& token) { return !on_token || on_token(token.id); });
  }

  ParallelResult sample(const ParallelRequest& request,
                        const std::function<bool(int, int32_t)>& on_token = {}) {
    engine().reset_tree();
    return decode_parallel(engine(), request, [&](int sample, const ChosenToken& token) {
      return !on_token || on_token(sample, token.id);
    });
  }

  /// A few tokens over and over. What follows is another text: drafts fail, or other than the first child of
  /// a token is accepted.
  Tokens periodic_prompt() const {
    const Tokens period = kernel_.prompt(5);
    Tokens tokens;
    for (int i = 0; i < 40; ++i) tokens.push_back(period[i % period.size()]);
    return tokens;
  }

  /// So much of the model's own text that it has come to repeat itself, and goes on so: long paths are
  /// accepted, and other tokens than one over and over.
  Tokens repetitive_prompt() {
    constexpr ptrdiff_t kTokens = 72;
    Tokens tokens = kernel_.prompt(12);
    ReferenceModel& reference = kernel_.reference();
    for (int i = 0; std::ssize(tokens) < kTokens; ++i) {
      const std::vector<float> logits = reference.step(tokens[static_cast<size_t>(i)], i);
      if (i + 1 == std::ssize(tokens))
        tokens.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
    }
    reference.reset();
    return tokens;
  }

  KernelUnderTest kernel_;
};

INSTANTIATE_TEST_SUITE_P(Kernels, Chat, testing::Values("plain-4-all", "plain-4-rows8"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// ---- Speculation

TEST_P(Chat, SpeculationGivesThePlainTokensInFewerSteps) {
  if (is_repeated()) GTEST_SKIP() << "of another kernel in short runs";
  const int num_tokens = long_tests() ? 70 : 40;
  const Tokens prompt = repetitive_prompt();
  std::map<int, Tokens> by_kernel;  // which takes one draft and seven
  for (const int max_drafts : long_tests() ? std::vector{1, 3, 7} : std::vector{1, 7}) {
    SCOPED_TRACE(max_drafts);
    Tokens& expected = by_kernel[engine().kernel_for_rows(max_drafts + 1)];
    if (expected.empty()) expected = plain(prompt, num_tokens, max_drafts + 1);
    Tokens streamed;
    const SpeculationResult result = speculate(prompt, num_tokens, max_drafts, {}, [&](int32_t token) {
      streamed.push_back(token);
      return true;
    });
    EXPECT_EQ(result.tokens, expected);
    EXPECT_EQ(streamed, expected);
    EXPECT_FALSE(result.hit_stop_token);
    EXPECT_LT(std::ssize(result.step_tokens), num_tokens * 3 / 4);
    EXPECT_EQ(std::accumulate(result.step_tokens.begin(), result.step_tokens.end(), 0), num_tokens);
    EXPECT_EQ(result.times_ns.size(), result.step_tokens.size());
    EXPECT_LE(*std::max_element(result.step_tokens.begin(), result.step_tokens.end()), max_drafts + 1);
    std::printf("%d drafts: %zu tokens in %zu steps\n", max_drafts, result.tokens.size(),
                result.step_tokens.size());
  }
}

TEST_P(Chat, SpeculationOnAnythingGivesThePlainTokens) {
  SOLITON_LONG_RUNS_ONLY("SpeculationGivesThePlainTokensInFewerSteps compares them");
  constexpr int kMaxTokens = 20;
  for (const int length : {1, 2, 63, 64, 65}) {
    SCOPED_TRACE(length);
    const Tokens prompt = kernel_.prompt(length);
    EXPECT_EQ(speculate(prompt, kMaxTokens, 5).tokens, plain(prompt, kMaxTokens, 6));
  }
}

TEST_P(Chat, SpeculationEndsWhereItIsTold) {
  if (is_repeated()) GTEST_SKIP() << "of another kernel in short runs";
  const Tokens prompt = repetitive_prompt();
  const std::vector<int> lengths =
      long_tests() ? std::vector{1, 2, 7, 8, 9, 10, 17, 30} : std::vector{1, 2, 8, 9, 17};
  const Tokens expected = plain(prompt, lengths.back(), 8);
  for (const int max_tokens : lengths) {
    const Tokens tokens = speculate(prompt, max_tokens, 7).tokens;
    EXPECT_EQ(tokens, Tokens(expected.begin(), expected.begin() + max_tokens));
    EXPECT_EQ(engine().position(), static_cast<int>(prompt.size()) + max_tokens - 1);
  }
}

// Wherever in a path the token is: nothing behind it is given out or kept.
TEST_P(Chat, SpeculationEndsAtAStopTokenInsideAPath) {
  if (is_repeated()) GTEST_SKIP() << "of another kernel in short runs";
  const Tokens prompt = repetitive_prompt();
  const Tokens expected = plain(prompt, 30, 8);
  bool was_inside = false;
  std::set<int32_t> tried;
  for (const int32_t stop : expected) {
    if (!tried.insert(stop).second) continue;
    if (was_inside && tried.size() > 3 && !long_tests()) break;
    const auto end = std::find(expected.begin(), expected.end(), stop) + 1;
    Tokens streamed;
    const SpeculationResult result = speculate(prompt, 30, 7, {-1, stop}, [&](int32_t token) {
      streamed.push_back(token);
      return true;
    });
    EXPECT_TRUE(result.hit_stop_token);
    EXPECT_EQ(result.tokens, Tokens(expected.begin(), end));
    EXPECT_EQ(streamed, result.tokens);
    EXPECT_EQ(engine().position(), static_cast<int>(prompt.size() + result.tokens.size()) - 1);
    was_inside = was_inside || result.step_tokens.back() > 1;
  }
  EXPECT_TRUE(was_inside);
}

TEST_P(Chat, SpeculationEndsWhenTheCallerWantsNoMore) {
  if (is_repeated()) GTEST_SKIP() << "of another kernel in short runs";
  const Tokens prompt = repetitive_prompt();
  const Tokens expected = plain(prompt, 20, 8);
  int left = 13;
  const SpeculationResult result = speculate(prompt, 20, 7, {}, [&](int32_t) { return --left > 0; });
  EXPECT_EQ(result.tokens, Tokens(expected.begin(), expected.begin() + 13));
}

// Accepted tokens have moved down before anything else reads them.
TEST_P(Chat, DecodingGoesOnAfterSpeculation) {
  SOLITON_LONG_RUNS_ONLY("GeneratorOf goes on with turns");
  const Tokens prompt = periodic_prompt();
  engine().reset_tree();
  const Tokens expected = engine().decode({.tokens = prompt, .max_tokens = 30}).tokens;
  for (int num_tokens = 1; num_tokens < 20; ++num_tokens) {
    const Tokens begun = speculate(prompt, num_tokens, 7).tokens;
    ASSERT_EQ(begun, Tokens(expected.begin(), expected.begin() + num_tokens));
    const Tokens last = {begun.back()};
    EXPECT_EQ(engine().decode({.tokens = last, .max_tokens = 5}).tokens,
              Tokens(expected.begin() + num_tokens, expected.begin() + num_tokens + 5));
  }
}

TEST_P(Chat, SpeculationRefusesMoreRowsThanAnyKernelTakes) {
  engine().reset_tree();
  const int rows = engine().max_rows();
  EXPECT_NO_THROW(speculate(kernel_.prompt(3), 2, rows - 1));
  EXPECT_THROW(speculate(kernel_.prompt(3), 2, rows), Error);
  EXPECT_EQ(engine().position(), 0);
}

// ---- Samples

TEST_P(Chat, GreedySamplesEqualPlainDecoding) {
  if (is_repeated()) GTEST_SKIP() << "of another kernel in short runs";
  const size_t num_tokens = long_tests() ? 24 : 10;
  const int max_tokens = static_cast<int>(num_tokens);
  for (const int length : {1, 64, 90}) {
    SCOPED_TRACE(length);
    const Tokens prompt = kernel_.prompt(length);
    const Tokens expected = plain(prompt, max_tokens, 5);
    const ParallelResult result = sample({.prompt = prompt, .num_samples = 5, .max_tokens = max_tokens});
    ASSERT_EQ(result.samples.size(), 5u);
    for (const Sample& one : result.samples) EXPECT_EQ(one.tokens, expected);
    EXPECT_EQ(result.times_ns.size(), num_tokens);
    EXPECT_EQ(result.num_tokens(), 5u * num_tokens);
  }
}

// Of as many rows as fit a tile of queries: of more, sums are split otherwise.
TEST_P(Chat, ASampleIsTheSameAloneAndAmongOthers) {
  if (is_repeated()) GTEST_SKIP() << "of another kernel in short runs";
  constexpr int kSamples = 8;
  const int max_tokens = long_tests() ? 24 : 10;
  const Tokens prompt = kernel_.prompt(70);
  for (const int min_rows : {kSamples, engine().max_rows() > 8 ? 16 : kSamples}) {
    const ParallelResult together = sample({.prompt = prompt,
                                            .num_samples = kSamples,
                                            .max_tokens = max_tokens,
                                            .sampling = {.temperature = kTemperature, .seed = 1000},
                                            .min_rows = min_rows});
    for (int i = 0; i < kSamples; ++i) {
      const Sample& one = together.samples[i];
      EXPECT_EQ(one.seed, 1000u + static_cast<uint32_t>(i));
      for (int other = 0; other < i; ++other) EXPECT_NE(one.tokens, together.samples[other].tokens);
      const bool is_at_an_end = i == 0 || i == kSamples - 1;
      if (!is_at_an_end && i != 3 && !long_tests()) continue;
      const ParallelResult alone = sample({.prompt = prompt,
                                           .max_tokens = max_tokens,
                                           .sampling = {.temperature = kTemperature, .seed = one.seed},
                                           .min_rows = min_rows});
      EXPECT_EQ(alone.samples[0].tokens, one.tokens) << "sample " << i;
    }
  }
}

// Node boundaries decide how sums are split: they are those of many samples for one, asked for or left.
TEST_P(Chat, ThePromptStaysANodeOfItsOwn) {
  if (is_repeated()) GTEST_SKIP() << "of another kernel in short runs";
  const Tokens prompt = kernel_.prompt(20);
  TreeSnapshot snapshot;
  const auto look = [&](int, int32_t) {
    engine().tree().snapshot(snapshot);
    EXPECT_EQ(snapshot.nodes.at(0).num_tokens, 19);
    EXPECT_EQ(snapshot.nodes.size(), snapshot.rows.size() + 2);  // the prompt and the paused branch
    return true;
  };
  sample({.prompt = prompt, .max_tokens = 3}, look);
  EXPECT_EQ(snapshot.rows.size(), 1u);
  const ParallelRequest request{
      .prompt = prompt, .num_samples = 2, .max_tokens = 12, .sampling = {.temperature = kTemperature}};
  const ParallelResult whole = sample(request);
  size_t at = 0;
  while (at < 6 && whole.samples[0].tokens[at] == whole.samples[1].tokens[at]) ++at;
  const Tokens stops = {whole.samples[0].tokens[at]};  // of one of the two, at least for now
  ParallelRequest stopping = request;
  stopping.stop_tokens = stops;
  sample(stopping, look);
  EXPECT_EQ(snapshot.rows.size(), 1u);
}

TEST_P(Chat, SeedsGoOnAtZero) {
  if (is_repeated()) GTEST_SKIP() << "of another kernel in short runs";
  const ParallelResult result = sample({.prompt = kernel_.prompt(3),
                                        .num_samples = 2,
                                        .max_tokens = 9,
                                        .sampling = {.temperature = kTemperature, .seed = UINT32_MAX}});
  EXPECT_EQ(result.samples[1].seed, 0u);
  const ParallelResult zero = sample({.prompt = kernel_.prompt(3),
                                      .num_samples = 2,
                                      .max_tokens = 9,
                                      .sampling = {.temperature = kTemperature, .seed = 0}});
  EXPECT_EQ(result.samples[1].tokens, zero.samples[0].tokens);
}

TEST_P(Chat, TheLeastTemperatureIsGreedy) {
  if (is_repeated()) GTEST_SKIP() << "of another kernel in short runs";
  const Tokens prompt = kernel_.prompt(9);
  const ParallelResult result = sample(
      {.prompt = prompt, .num_samples = 2, .max_tokens = 12, .sampling = {.temperature = 1e-38f, .seed = 5}});
  for (const Sample& one : result.samples) EXPECT_EQ(one.tokens, plain(prompt, 12, 2));
}

TEST_P(Chat, ASampleThatStopsLeavesTheOthersUnchanged) {
  SOLITON_LONG_RUNS_ONLY("ASampleIsTheSameAloneAndAmongOthers ends samples too");
  const Tokens prompt = kernel_.prompt(70);
  const ParallelRequest request{.prompt = prompt,
                                .num_samples = 6,
                                .max_tokens = 40,
                                .sampling = {.temperature = kTemperature, .seed = 3}};
  const ParallelResult whole = sample(request);
  const auto length_of = [&](const Tokens& all, int32_t stop) {
    return static_cast<size_t>(
        std::min<ptrdiff_t>(std::ranges::find(all, stop) - all.begin() + 1, std::ssize(all)));
  };
  int num_shown = 0;
  for (int32_t stop = 0; stop < kernel_.facts().vocabulary && num_shown < (long_tests() ? 3 : 1); ++stop) {
    SCOPED_TRACE(stop);
    std::set<size_t> lengths;
    for (const Sample& each : whole.samples) lengths.insert(length_of(each.tokens, stop));
    if (lengths.size() < 4) continue;  // not the token to show it
    ++num_shown;
    const Tokens stops = {-1, stop};
    ParallelRequest stopping = request;
    stopping.stop_tokens = stops;
    std::vector<Tokens> streamed(6);
    const ParallelResult result = sample(stopping, [&](int index, int32_t token) {
      streamed[index].push_back(token);
      return true;
    });
    for (int i = 0; i < 6; ++i) {
      const Tokens& all = whole.samples[i].tokens;
      const Tokens expected(all.begin(), all.begin() + static_cast<ptrdiff_t>(length_of(all, stop)));
      EXPECT_EQ(result.samples[i].tokens, expected) << "sample " << i;
      EXPECT_EQ(result.samples[i].hit_stop_token, std::ranges::count(all, stop) > 0) << "sample " << i;
      EXPECT_EQ(streamed[i], expected);
    }
    EXPECT_EQ(result.times_ns.size(), *lengths.rbegin());
  }
  EXPECT_GT(num_shown, 0);
}

TEST_P(Chat, SamplesEndWhenTheCallerWantsNoMore) {
  if (is_repeated()) GTEST_SKIP() << "of another kernel in short runs";
  const Tokens prompt = kernel_.prompt(7);
  const ParallelRequest request{
      .prompt = prompt, .num_samples = 3, .max_tokens = 40, .sampling = {.temperature = kTemperature}};
  const ParallelResult whole = sample(request);
  int left = 8;
  const ParallelResult result = sample(request, [&](int, int32_t) { return --left > 0; });
  for (int i = 0; i < 3; ++i) {
    const Tokens& all = whole.samples[i].tokens;
    EXPECT_EQ(result.samples[i].tokens, Tokens(all.begin(), all.begin() + 3)) << "the third step is the last";
  }
  EXPECT_EQ(engine().position(), 0);  // and the engine can be used again
  EXPECT_EQ(engine().decode({.tokens = prompt, .max_tokens = 2}).tokens.size(), 2u);
}

TEST_P(Chat, RefusesMoreSamplesThanAnyKernelTakes) {
  const int rows = engine().max_rows();
  EXPECT_THROW(sample({.prompt = kernel_.prompt(3), .num_samples = rows + 1, .max_tokens = 2}), Error);
  EXPECT_EQ(engine().position(), 0);
}

// ---- The same kernel for steps of any rows

TEST(ChatKernel, IsTheOneOfTheLeastRowsThatTakeAsManyAsAskedFor) {
  KernelUnderTest kernel("plain-4-all");
  Engine& engine = kernel.engine();
  const Tokens token = {5};
  for (const auto& [min_rows, takes] : {std::pair(0, 8), {1, 8}, {8, 8}, {9, 16}, {17, 32}, {64, 64}}) {
    const TreeResult result = engine.decode_tree({.tokens = token, .min_rows = min_rows});
    EXPECT_EQ(engine.library().descriptor(result.kernel).rows, takes);
    EXPECT_EQ(result.chosen.size(), 1u);
  }
  const int position = engine.position();
  EXPECT_THROW(engine.decode_tree({.tokens = token, .min_rows = 65}), Error);
  EXPECT_EQ(engine.position(), position);
}

// What was accepted lies where it should before the kernel of one row reads it.
TEST(ChatKernel, OfOneRowReadsAcceptedTokensInTheirPlaces) {
  KernelUnderTest kernel("plain-4-all");
  Engine& engine = kernel.engine();
  const Tokens drafted = {5, 11, 20, 31};
  const std::vector<int32_t> parents = {-1, 0, 0, 2};
  const std::vector<int32_t> path = {0, 2, 3};
  engine.tree().draft(engine.main_branch(), parents);
  engine.decode_tree({.tokens = drafted});
  engine.tree().accept(engine.main_branch(), path);
  for (int i = 0; i < std::ssize(path); ++i) kernel.reference().step(drafted[path[i]], i);
  kernel.expect_like_reference({7}, 4);
}

// ---- Memory

TEST(ChatPool, HoldsExactlyThePromptOnceAndTheSamples) {
  EXPECT_EQ(parallel_pool_tokens(1, 3, 1), 3 * 64);
  EXPECT_EQ(parallel_pool_tokens(2, 3, 64), 64 + 3 * 64);
  EXPECT_EQ(parallel_pool_tokens(65, 3, 65), 64 + 3 * 128);
  EXPECT_EQ(parallel_pool_tokens(66, 1, 65), 128 + 128);
}

}  // namespace
}  // namespace soliton
