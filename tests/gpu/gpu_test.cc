// On a card: the tiny model against the reference, repeated launches, and the bounded waits. Skipped without
// one.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "models/error.h"
#include "reference_model.h"
#include "runtime/device/cuda_driver.h"
#include "runtime/engine/engine.h"

namespace soliton {
namespace {

/// A path of the build, or what the environment says instead: the card may be in another machine.
std::string path_or(const char* variable, const char* built) {
  const char* chosen = std::getenv(variable);
  return chosen != nullptr ? chosen : built;
}
const std::string kKernel = path_or("SOLITON_KERNELS", SOLITON_KERNELS) + "/tiny-stories-sm90.so";
const std::string kFuzzKernel = path_or("SOLITON_KERNELS", SOLITON_KERNELS) + "/fuzz/tiny-stories-sm90.so";
const std::string kModel = path_or("SOLITON_SOURCE_DIR", SOLITON_SOURCE_DIR) + "/models/tiny-stories";
constexpr int kTokens = 256;
constexpr int kLaunches = 20;
constexpr int kDelayedLaunches = 200;
constexpr int kDelayedTokens = 64;

/// Why the card tests can't run here, or an empty string.
std::string reason_to_skip() {
  try {
    KernelLibrary library = KernelLibrary::open(kKernel);
    library.select_device(0);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

#define SKIP_WITHOUT_CARD() \
  if (const std::string reason = reason_to_skip(); !reason.empty()) GTEST_SKIP() << reason

std::vector<int32_t> story_prompt() {
  return {0, 17, 300, 42};
}

TEST(Card, TheDriverSaysWhatTheKernelLibraryDoes) {
  SKIP_WITHOUT_CARD();
  const DeviceAnswer answer = ask_driver(0);
  ASSERT_TRUE(answer.device) << answer.reason;
  KernelLibrary library = KernelLibrary::open(kKernel);
  library.select_device(0);
  const DeviceInfo& expected = library.device();
  EXPECT_STREQ(answer.device->name, expected.name);
  EXPECT_EQ(answer.device->compute_capability, expected.compute_capability);
  EXPECT_EQ(answer.device->num_sms, expected.num_sms);
  EXPECT_EQ(answer.device->max_shared_bytes, expected.max_shared_bytes);
  EXPECT_EQ(answer.device->driver_version, expected.driver_version);
  EXPECT_EQ(answer.device->total_bytes, expected.total_bytes);
  EXPECT_GE(answer.device->free_bytes, expected.free_bytes);  // which has its kernels there too
  EXPECT_EQ(answer.device->sm_clock_khz, expected.sm_clock_khz);
  EXPECT_EQ(answer.device->memory_clock_khz, expected.memory_clock_khz);
}

TEST(Card, TinyModelEqualsTheReference) {
  SKIP_WITHOUT_CARD();
  Engine engine(KernelLibrary::open(kKernel), {.context = 512});
  const TensorSource source = TensorSource::open(kModel);
  engine.load(source, nullptr);
  const std::vector<int32_t> prompt = story_prompt();
  const DecodeResult result = engine.decode({.tokens = prompt, .max_tokens = kTokens, .want_logits = true});
  ASSERT_EQ(result.tokens.size(), static_cast<size_t>(kTokens));
  const ModelFacts& facts = engine.library().model().facts;
  ReferenceModel reference(facts, load_weights(source, facts));
  for (size_t i = 0; i + 1 < prompt.size(); ++i) reference.step(prompt[i], static_cast<int>(i));
  int next = prompt.back();
  for (int i = 0; i < kTokens; ++i) {
    const std::vector<float> expected = reference.step(next, reference.length());
    const float best = *std::max_element(expected.begin(), expected.end());
    ASSERT_GE(expected[result.tokens[i]], best - 1e-3f) << "token " << i;
    next = result.tokens[i];
  }
}

TEST(Card, TwentyLaunchesGiveTheSameBits) {
  SKIP_WITHOUT_CARD();
  Engine engine(KernelLibrary::open(kKernel), {.context = 512});
  engine.load(TensorSource::open(kModel), nullptr);
  const std::vector<int32_t> prompt = story_prompt();
  const DecodeResult first = engine.decode({.tokens = prompt, .max_tokens = kTokens, .want_logits = true});
  for (int i = 1; i < kLaunches; ++i) {
    engine.set_position(0);
    const DecodeResult again = engine.decode({.tokens = prompt, .max_tokens = kTokens, .want_logits = true});
    ASSERT_EQ(again.tokens, first.tokens) << "launch " << i;
    ASSERT_EQ(again.logits, first.logits) << "launch " << i;
  }
}

/// How far logits of kernels of several rows may be off, as a share of the largest: see kernel_fixture.h.
constexpr float kRowsTolerance = 1.0f / 32;

void expect_near(const std::vector<float>& expected, const float* logits, int token) {
  const float best = *std::max_element(expected.begin(), expected.end());
  float scale = 0;
  for (const float logit : expected) scale = std::max(scale, std::abs(logit));
  ASSERT_GE(expected[token], best - scale * kRowsTolerance);
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(logits[i], expected[i], scale * kRowsTolerance) << i;
}

/// A long prompt in chunks of many rows: the same bits each time, and logits like those of the reference.
TEST(Card, APromptByRowsIsLikeTheReference) {
  SKIP_WITHOUT_CARD();
  constexpr int kPrompt = 203;  // 3 chunks of 64 and one of 11
  Engine engine(KernelLibrary::open(kKernel), {.context = 512});
  const TensorSource source = TensorSource::open(kModel);
  engine.load(source, nullptr);
  const ModelFacts& facts = engine.library().model().facts;
  std::vector<int32_t> prompt;
  for (int i = 0; i < kPrompt; ++i) prompt.push_back((i * 37 + 11) % facts.vocabulary);
  const DecodeResult first = engine.decode({.tokens = prompt, .max_tokens = 4, .want_logits = true});
  ReferenceModel reference(facts, load_weights(source, facts));
  for (int i = 0; i + 1 < kPrompt; ++i) reference.step(prompt[i], i);
  expect_near(reference.step(prompt.back(), reference.length()), first.logits.data(), first.tokens[0]);
  for (int i = 1; i < kLaunches; ++i) {
    engine.set_position(0);
    ASSERT_EQ(engine.decode({.tokens = prompt, .max_tokens = 4, .want_logits = true}).logits, first.logits);
  }
}

/// Branches that share a prompt, with every kernel of several rows: each like the reference, and all alike.
TEST(Card, ParallelRowsAreLikeTheReference) {
  SKIP_WITHOUT_CARD();
  constexpr int kPrompt = 70;
  constexpr int kSteps = 8;
  Engine engine(KernelLibrary::open(kKernel), {.context = 512, .pool_tokens = 512 * 64});
  const TensorSource source = TensorSource::open(kModel);
  engine.load(source, nullptr);
  const ModelFacts& facts = engine.library().model().facts;
  std::vector<int32_t> prompt;
  for (int i = 0; i < kPrompt; ++i) prompt.push_back((i * 29 + 5) % facts.vocabulary);
  for (const int rows : {3, 12, 30, 60}) {
    engine.reset_tree();
    const int32_t next = engine.decode({.tokens = prompt, .max_tokens = 1}).tokens[0];
    engine.tree().fork(engine.main_branch(), rows);
    const std::vector<int32_t> tokens(rows, next);
    const TreeResult result =
        engine.decode_tree({.tokens = tokens, .num_steps = kSteps, .want_logits = true});
    ASSERT_EQ(result.num_steps, kSteps);
    ReferenceModel reference(facts, load_weights(source, facts));
    for (int i = 0; i < kPrompt; ++i) reference.step(prompt[i], i);
    int fed = next;
    for (int step = 0; step < kSteps; ++step) {
      const int32_t* chosen = result.chosen.data() + step * rows;
      for (int row = 1; row < rows; ++row)
        ASSERT_EQ(chosen[row], chosen[0]) << "row " << row << ", step " << step;
      const size_t last = static_cast<size_t>(step) * rows + rows - 1;
      expect_near(reference.step(fed, reference.length()), result.logits.data() + last * facts.vocabulary,
                  chosen[0]);
      fed = chosen[0];
    }
  }
}

TEST(Card, OneLaunchEqualsManyLaunches) {
  SKIP_WITHOUT_CARD();
  Engine engine(KernelLibrary::open(kKernel), {.context = 512});
  engine.load(TensorSource::open(kModel), nullptr);
  const std::vector<int32_t> prompt = story_prompt();
  const DecodeResult together = engine.decode({.tokens = prompt, .max_tokens = kTokens, .want_logits = true});
  engine.set_position(0);
  std::vector<int32_t> next = prompt;
  for (int i = 0; i < kTokens; ++i) {
    const DecodeResult one = engine.decode({.tokens = next, .max_tokens = 1, .want_logits = true});
    ASSERT_EQ(one.tokens[0], together.tokens[i]) << "token " << i;
    ASSERT_TRUE(std::equal(one.logits.begin(), one.logits.end(),
                           together.logits.begin() + static_cast<std::ptrdiff_t>(i * one.logits.size())))
        << "token " << i;
    next = one.tokens;
  }
}

/// Delays change who comes first, and nothing else.
TEST(Card, DelaysChangeNothing) {
  SKIP_WITHOUT_CARD();
  const std::vector<int32_t> prompt = story_prompt();
  const auto load = [](const std::string& kernel) {
    auto engine = std::make_unique<Engine>(KernelLibrary::open(kernel), EngineOptions{.context = 512});
    engine->load(TensorSource::open(kModel), nullptr);
    return engine;
  };
  const auto span_ns = [](const DecodeResult& result) {
    return result.times_ns.back() - result.times_ns.front();
  };
  const DecodeResult expected =
      load(kKernel)->decode({.tokens = prompt, .max_tokens = kDelayedTokens, .want_logits = true});
  const std::unique_ptr<Engine> delayed = load(kFuzzKernel);
  ASSERT_TRUE(delayed->library().functions().fuzz);
  for (int i = 0; i < kDelayedLaunches; ++i) {
    delayed->set_position(0);
    const DecodeResult result = delayed->decode({.tokens = prompt,
                                                 .max_tokens = kDelayedTokens,
                                                 .want_logits = true,
                                                 .delay_seed = static_cast<uint32_t>(i)});
    ASSERT_EQ(result.tokens, expected.tokens) << "launch " << i;
    ASSERT_EQ(result.logits, expected.logits) << "launch " << i;
    ASSERT_GT(span_ns(result), 2 * span_ns(expected)) << "launch " << i << " was not delayed";
  }
}

/// In a process of its own, because the stuck kernel takes the CUDA context with it.
TEST(Card, AStuckKernelSaysWhere) {
  SKIP_WITHOUT_CARD();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    // The parent has used CUDA: only a fresh program may.
    execl("/proc/self/exe", "gpu-tests", "--stall", std::to_string(pipe_ends[1]).c_str(), nullptr);
    _exit(127);
  }
  close(pipe_ends[1]);
  char buffer[512];
  const ssize_t size = read(pipe_ends[0], buffer, sizeof buffer);
  int status = 0;
  waitpid(child, &status, 0);
  const std::string message(buffer, size > 0 ? static_cast<size_t>(size) : 0);
  EXPECT_NE(message.find("kernel stalled: CTA"), std::string::npos) << message;
  EXPECT_NE(message.find("waited for"), std::string::npos) << message;
}

/// Launches with a CTA too few and writes what the engine says of it.
void stall(int output) {
  std::string message = "no stall";
  try {
    Engine engine(KernelLibrary::open(kKernel), {.context = 64, .timeout_ms = 200});
    engine.load(TensorSource::open(kModel), nullptr);
    engine.set_num_ctas(engine.library().descriptor().num_ctas - 1);
    const std::vector<int32_t> prompt = story_prompt();
    engine.decode({.tokens = prompt, .max_tokens = 1});
  } catch (const std::exception& error) {
    message = error.what();
  }
  if (write(output, message.data(), message.size()) < 0) _exit(1);
  _exit(0);
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--stall") soliton::stall(std::stoi(argv[2]));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
