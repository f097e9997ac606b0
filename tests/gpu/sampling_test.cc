// On a card: what is drawn is what the definition chooses from the kernel's own logits, launch after launch, with
// one row and with several, and whoever is held up. Skipped without one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "models/error.h"
#include "reference_sampling.h"
#include "runtime/engine/engine.h"

namespace soliton {
namespace {

std::string path_or(const char* variable, const char* built) {
  const char* chosen = std::getenv(variable);
  return chosen != nullptr ? chosen : built;
}
const std::string kKernels = path_or("SOLITON_KERNELS", SOLITON_KERNELS);
const std::string kModel = path_or("SOLITON_SOURCE_DIR", SOLITON_SOURCE_DIR) + "/models/tiny-stories";
constexpr int kTokens = 64;
constexpr double kNearTie = 1e-3;       // of scores: beyond the error of the fast logarithm
constexpr double kLogprobError = 1e-4;  // the same
constexpr int kDelayedLaunches = 40;

/// Nothing without a card.
std::unique_ptr<Engine> open(const char* kernel) {
  try {
    auto engine = std::make_unique<Engine>(KernelLibrary::open(kKernels + kernel),
                                           EngineOptions{.context = 512, .pool_tokens = 512 * 16});
    engine->load(TensorSource::open(kModel), nullptr);
    return engine;
  } catch (const Error&) {
    return nullptr;
  }
}

std::vector<RowSampling> some_samplings() {
  constexpr float kInf = kUnlimitedDistance;
  return {{1.0f, 1},
          {0.5f, 2, 40},
          {1.0f, 3, 0, 0.9f},
          {0.7f, 4, 200, 0.95f, 3.0f},
          {0.0f, 5, 0, 1.0f, kInf, 1.3f},
          {1.2f, 6, 50, 0.8f, 4.0f, 1.2f},
          {0.5f, 7, 0, 1.0f, 2.0f, 0.8f}};
}

int count_agreeing(std::span<const float> logits, float logprob, const RowSampling& sampling, int position,
                   const std::set<int32_t>& seen, int32_t token) {
  EXPECT_NEAR(logprob, reference_logprob(logits, token), kLogprobError);
  const ReferenceChoice choice =
      reference_choice(logits, sampling, position, sampling.penalty == 1 ? std::set<int32_t>{} : seen);
  if (!choice.is_clear || choice.lead < kNearTie) return 0;
  EXPECT_EQ(token, choice.token) << "seed " << sampling.seed << ", position " << position;
  return 1;
}

TEST(CardSampling, OfOneRowIsAsDefined) {
  const std::unique_ptr<Engine> engine = open("/tiny-stories-sm90.so");
  if (engine == nullptr) GTEST_SKIP() << "no card";
  const std::vector<int32_t> prompt = {0, 17, 300, 42};
  const auto vocabulary = static_cast<size_t>(engine->library().model().facts.vocabulary);
  int agreeing = 0;
  for (const RowSampling& sampling : some_samplings()) {
    const DecodeRequest request{.tokens = prompt,
                                .max_tokens = kTokens,
                                .sampling = sampling,
                                .want_logits = true,
                                .want_logprobs = true};
    engine->set_position(0);
    const DecodeResult result = engine->decode(request);
    std::set<int32_t> seen(prompt.begin(), prompt.end());
    for (size_t i = 0; i < result.tokens.size(); ++i) {
      agreeing +=
          count_agreeing(std::span(result.logits).subspan(i * vocabulary, vocabulary), result.logprobs[i],
                         sampling, static_cast<int>(prompt.size() + i) - 1, seen, result.tokens[i]);
      seen.insert(result.tokens[i]);
    }
    engine->set_position(0);
    const DecodeResult again = engine->decode(request);
    EXPECT_EQ(again.tokens, result.tokens);
    EXPECT_EQ(again.logprobs, result.logprobs);
  }
  EXPECT_GT(agreeing, kTokens * 7 * 9 / 10);
}

TEST(CardSampling, OfSeveralRowsIsAsDefined) {
  const std::unique_ptr<Engine> engine = open("/tiny-stories-sm90.so");
  if (engine == nullptr) GTEST_SKIP() << "no card";
  const auto vocabulary = static_cast<size_t>(engine->library().model().facts.vocabulary);
  for (const int rows : {3, 8, 14}) {
    SCOPED_TRACE(rows);
    engine->reset_tree();
    const std::vector<int32_t> prompt = {0, 17, 300, 42};
    engine->decode({.tokens = prompt, .max_tokens = 1});
    engine->tree().fork(engine->main_branch(), rows);
    std::vector<RowSampling> sampling;
    for (int row = 0; row < rows; ++row) {
      sampling.push_back(some_samplings()[static_cast<size_t>(row % 7)]);
      sampling.back().seed += static_cast<uint32_t>(row);
    }
    const std::vector<int32_t> tokens(static_cast<size_t>(rows), 5);
    const std::vector<std::vector<int32_t>> past(static_cast<size_t>(rows), prompt);
    const int position = engine->rows().front().position;
    constexpr int kSteps = 16;
    const TreeResult result = engine->decode_tree({.tokens = tokens,
                                                   .num_steps = kSteps,
                                                   .sampling = sampling,
                                                   .past = past,
                                                   .want_logits = true,
                                                   .want_logprobs = true});
    int agreeing = 0;
    for (int row = 0; row < rows; ++row) {
      std::set<int32_t> seen(prompt.begin(), prompt.end());
      seen.insert(5);
      for (int step = 0; step < kSteps; ++step) {
        const auto i = static_cast<size_t>(step * rows + row);
        agreeing +=
            count_agreeing(std::span(result.logits).subspan(i * vocabulary, vocabulary), result.logprobs[i],
                           sampling[static_cast<size_t>(row)], position + step, seen, result.chosen[i]);
        seen.insert(result.chosen[i]);
      }
    }
    EXPECT_GT(agreeing, rows * kSteps * 9 / 10);
  }
}

TEST(CardSampling, DoesNotDependOnWhoIsHeldUp) {
  const std::unique_ptr<Engine> engine = open("/fuzz/tiny-stories-sm90.so");
  if (engine == nullptr) GTEST_SKIP() << "no card, or no kernel compiled with SOLITON_FUZZ";
  const std::vector<int32_t> prompt = {0, 17, 300, 42};
  DecodeRequest request{.tokens = prompt,
                        .max_tokens = kTokens,
                        .sampling = RowSampling{1.2f, 6, 50, 0.8f, 4.0f, 1.2f},
                        .want_logprobs = true};
  const DecodeResult expected = engine->decode(request);
  for (int i = 1; i <= kDelayedLaunches; ++i) {
    request.delay_seed = static_cast<uint32_t>(i);
    engine->set_position(0);
    const DecodeResult result = engine->decode(request);
    ASSERT_EQ(result.tokens, expected.tokens) << "launch " << i;
    ASSERT_EQ(result.logprobs, expected.logprobs) << "launch " << i;
  }
}

}  // namespace
}  // namespace soliton
