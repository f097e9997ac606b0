// Text without end on whole kernels in emulation. In a model of one layer keys and values depend on their own tokens alone: there
// what is left of a text once its middle is forgotten is what a text of the rest by itself would be.
#include "runtime/answer/streaming_generator.h"

#include <gtest/gtest.h>

#include "long_tests.h"
#include "models/error.h"
#include "tests/error_of.h"

namespace soliton {
namespace {

constexpr int kStreamVocabulary = 50;
constexpr StreamingWindow kSmallWindow{.sinks = 4, .window = 100};

std::unique_ptr<Engine> streaming_engine(const std::string& kernel, int context = kSmallWindow.context()) {
  auto engine =
      std::make_unique<Engine>(KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/" + kernel + ".so"),
                               EngineOptions{.context = context});
  engine->load_random(1);
  return engine;
}

std::vector<int32_t> long_text(int num_tokens) {
  std::vector<int32_t> tokens(num_tokens);
  for (int i = 0; i < num_tokens; ++i) tokens[i] = (7 + 17 * i + i * i) % kStreamVocabulary;
  return tokens;
}

std::vector<float> logits_after_text(Engine& engine, const std::vector<int32_t>& tokens) {
  return engine.decode({.tokens = tokens, .max_tokens = 1, .want_logits = true}).logits;
}

bool take_all(const ChosenToken&) {
  return true;
}

TEST(StreamingWindow, HasRoomForWholePages) {
  EXPECT_EQ((StreamingWindow{4, 1024}.step()), 256);
  EXPECT_EQ((StreamingWindow{4, 1024}.context()), 1284);
  EXPECT_EQ((StreamingWindow{0, 1}.context()), 65);
}

class Forget : public testing::TestWithParam<int> {};

// Keys are turned to their new positions, up to how they are rounded.
TEST_P(Forget, LeavesWhatTheRestWouldBeByItself) {
  constexpr int kFirst = 4;
  const int count = GetParam();
  const std::vector<int32_t> tokens = long_text(150);
  std::vector<int32_t> rest(tokens.begin(), tokens.begin() + kFirst);
  rest.insert(rest.end(), tokens.begin() + kFirst + count, tokens.end());
  const auto forgetful = streaming_engine("single-4");
  const auto plain = streaming_engine("single-4");
  forgetful->feed(forgetful->main_branch(), tokens);
  const std::vector<float> before = logits_after_text(*forgetful, {1});
  forgetful->set_position(150);
  forgetful->forget(kFirst, count);
  EXPECT_EQ(forgetful->position(), 150 - count);
  plain->feed(plain->main_branch(), rest);
  const std::vector<float> got = logits_after_text(*forgetful, {1});
  const std::vector<float> expected = logits_after_text(*plain, {1});
  float largest = 0, difference = 0, change = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(expected[i] - got[i]));
    change = std::max(change, std::abs(expected[i] - before[i]));
  }
  EXPECT_LT(difference, 0x1p-9f * largest) << "two roundings of each key to f16";
  EXPECT_GT(change, 8 * difference) << "what is forgotten matters";
}

INSTANTIATE_TEST_SUITE_P(Counts, Forget, testing::Values(1, 64, 77, 146));

TEST(Forget, RefusesTokensThatAreNotThere) {
  const auto engine = streaming_engine("single-4");
  engine->set_position(10);
  EXPECT_EQ(error_of([&] { engine->forget(4, 7); }),
            "70 forget: expected tokens of one branch of 10, got 7 from 4 on of 1 branches");
}

// Fed at once or by and by, and gone on with: the cache is what has been fed, whenever that was.
TEST(StreamingGenerator, GoesOnWithWhatWasFed) {
  SOLITON_LONG_RUNS_ONLY("GeneratorOf goes on with turns");
  StreamingGenerator generator(streaming_engine("micro-2-all"), kSmallWindow);
  std::vector<int32_t> text = long_text(180);
  const Generated first = generator.generate({.prompt = text, .max_tokens = 80}, take_all);
  EXPECT_EQ(first.num_cached, 0u);
  ASSERT_EQ(first.tokens.size(), 80u);
  EXPECT_LE(generator.engine().position(), kSmallWindow.context());
  EXPECT_GE(generator.engine().position(), kSmallWindow.sinks + kSmallWindow.window);
  text.insert(text.end(), first.tokens.begin(), first.tokens.end());
  text.push_back(5);
  const Generated second = generator.generate({.prompt = text, .max_tokens = 30}, take_all);
  EXPECT_EQ(second.num_cached, 259u);
  StreamingGenerator another(streaming_engine("micro-2-all"), kSmallWindow);
  EXPECT_EQ(another.generate({.prompt = text, .max_tokens = 30}, take_all).tokens, second.tokens);
  // What is asked anew begins with what is forgotten: it is fed again.
  const Generated again = generator.generate({.prompt = long_text(100), .max_tokens = 1}, take_all);
  EXPECT_EQ(again.num_cached, 0u);
}

// A text that fits is what it is without a window.
TEST(StreamingGenerator, IsPlainUntilTheCacheIsFull) {
  StreamingGenerator generator(streaming_engine("micro-2-all"), kSmallWindow);
  EngineGenerator plain(streaming_engine("micro-2-all", 256), 256);
  const std::vector<int32_t> prompt = long_text(20);
  const std::vector<int32_t> expected =
      plain.generate({.prompt = prompt, .max_tokens = 160}, take_all).tokens;
  const std::vector<int32_t> got = generator.generate({.prompt = prompt, .max_tokens = 160}, take_all).tokens;
  const auto same = static_cast<std::ptrdiff_t>(kSmallWindow.context() - prompt.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.begin() + same, got.begin()));
}

TEST(StreamingGenerator, EndsWithAStopTokenAndWhenNobodyWantsMore) {
  StreamingGenerator generator(streaming_engine("micro-2-all"), kSmallWindow);
  int wanted = 150;
  const Generated cut = generator.generate({.prompt = long_text(9), .max_tokens = 400},
                                           [&](const ChosenToken&) { return --wanted > 0; });
  EXPECT_EQ(cut.tokens.size(), 150u);
  const int32_t stop = cut.tokens[140];
  const int32_t stops[] = {stop};
  const Generated stopped =
      generator.generate({.prompt = long_text(9), .max_tokens = 400, .stop_tokens = stops}, take_all);
  EXPECT_TRUE(stopped.hit_stop_token);
  EXPECT_EQ(stopped.tokens.back(), stop);
}

TEST(StreamingGenerator, RefusesKeysThatCannotBeMoved) {
  EXPECT_NE(error_of([] {
              StreamingGenerator(streaming_engine("turned-3-all"), kSmallWindow);
            }).find("5 --window: expected a model whose keys are rotated last"),
            std::string::npos);
}

}  // namespace
}  // namespace soliton
