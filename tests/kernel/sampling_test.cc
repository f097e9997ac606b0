// Whole decodes with sampling: every token is what the definition chooses from the kernel's own logits, with one
// row and with several; logprobs; ends of launches; races.
#include <optional>

#include "kernel/kernel_cases.h"
#include "kernel/tree_fixture.h"
#include "models/error.h"
#include "reference_sampling.h"

namespace soliton {
namespace {

constexpr double kNearTie = 1e-3;  // of scores: beyond the error of floats
constexpr double kLogprobError = 1e-5;

std::vector<RowSampling> some_samplings() {
  constexpr float kInf = kUnlimitedDistance;
  return {{1.0f, 1},
          {0.0f, 2},
          {2.0f, 3, 5},
          {1.0f, 4, 0, 0.8f},
          {1.0f, 5, 20, 0.9f, 2.0f},
          {0.0f, 6, 0, 1.0f, kInf, 1.5f},
          {1.5f, 7, 12, 0.7f, 3.0f, 1.3f},
          {0.8f, 8, 0, 1.0f, 1.0f, 0.7f}};
}

/// Whether the token is what the definition chooses; nothing if rounding may decide.
std::optional<bool> agrees(std::span<const float> logits, const RowSampling& sampling, int position,
                           const std::set<int32_t>& seen, int32_t token) {
  const ReferenceChoice choice = reference_choice(logits, sampling, position, seen);
  if (!choice.is_clear || choice.lead < kNearTie) return std::nullopt;
  return choice.token == token;
}

// ---- One row

class SampledRow : public KernelCases {
 protected:
  void SetUp() override {
    KernelCases::SetUp();
    if (!IsSkipped()) kernel_.emplace(GetParam());
  }

  DecodeResult decode(const std::vector<int32_t>& tokens, int count, const RowSampling& sampling,
                      const std::vector<int32_t>& past = {}) {
    return kernel_->engine().decode({.tokens = tokens,
                                     .max_tokens = count,
                                     .sampling = sampling,
                                     .past = past,
                                     .want_logits = true,
                                     .want_logprobs = true});
  }

  std::optional<KernelUnderTest> kernel_;
};

INSTANTIATE_TEST_SUITE_P(Kernels, SampledRow,
                         testing::Values("micro-1", "micro-3", "micro-17", "micro-3-counter", "plain-4-split",
                                         "plain-4-split-lanes", "micro-3-counter-lanes", "micro-3-rows8"),
                         test_name);

TEST_P(SampledRow, ChoosesAsDefined) {
  const int kTokens = long_tests() ? 12 : 8;
  const size_t vocabulary = static_cast<size_t>(kernel_->facts().vocabulary);
  const std::vector<int32_t> before = kernel_->prompt(7);
  const std::vector<int32_t> prompt = kernel_->prompt(2);
  int compared = 0;
  kernel_->fill(before);
  for (const RowSampling& sampling : some_samplings()) {
    kernel_->engine().set_position(static_cast<int>(before.size()));
    const DecodeResult result = decode(prompt, kTokens, sampling, before);
    ASSERT_EQ(result.tokens.size(), static_cast<size_t>(kTokens));
    ASSERT_EQ(result.logprobs.size(), static_cast<size_t>(kTokens));
    std::set<int32_t> seen;
    if (sampling.penalty != 1) {
      seen.insert(before.begin(), before.end());
      seen.insert(prompt.begin(), prompt.end());
    }
    for (size_t i = 0; i < result.tokens.size(); ++i) {
      const auto logits = std::span(result.logits).subspan(i * vocabulary, vocabulary);
      const int position = static_cast<int>(before.size() + prompt.size() + i) - 1;
      const auto agreed = agrees(logits, sampling, position, seen, result.tokens[i]);
      EXPECT_TRUE(agreed.value_or(true)) << "seed " << sampling.seed << ", token " << i;
      compared += agreed.has_value() ? 1 : 0;
      EXPECT_NEAR(result.logprobs[i], reference_logprob(logits, result.tokens[i]), kLogprobError);
      if (sampling.penalty != 1) seen.insert(result.tokens[i]);
    }
  }
  EXPECT_GT(compared, 8 * kTokens * 8 / 10);
}

// Histograms are clean and tokens counted anew in every launch; what was decoded before is in `past`.
TEST_P(SampledRow, GoesOnInAnotherLaunch) {
  const RowSampling sampling{1.5f, 7, 12, 0.9f, 3.0f, 1.3f};
  const std::vector<int32_t> prompt = kernel_->prompt(9);
  const DecodeResult whole = decode(prompt, 12, sampling);
  kernel_->engine().set_position(0);
  std::vector<int32_t> tokens = decode(prompt, 5, sampling).tokens;
  std::vector<int32_t> past = prompt;
  past.insert(past.end(), tokens.begin(), tokens.end() - 1);
  const std::vector<int32_t> last = {tokens.back()};
  const DecodeResult rest = kernel_->engine().decode(
      {.tokens = last, .max_tokens = 7, .sampling = sampling, .past = past, .want_logprobs = true});
  tokens.insert(tokens.end(), rest.tokens.begin(), rest.tokens.end());
  EXPECT_EQ(tokens, whole.tokens);
}

TEST_P(SampledRow, EndsAtAStopTokenAndWhenTheHostAsks) {
  const RowSampling sampling{1.0f, 3, 20, 0.95f};
  const std::vector<int32_t> prompt = kernel_->prompt(5);
  const DecodeResult whole = decode(prompt, 20, sampling);
  const int32_t stop[] = {whole.tokens[6]};
  const auto first = std::find(whole.tokens.begin(), whole.tokens.end(), stop[0]) - whole.tokens.begin();
  kernel_->engine().set_position(0);
  const DecodeResult stopped = kernel_->engine().decode(
      {.tokens = prompt, .max_tokens = 20, .stop_tokens = stop, .sampling = sampling});
  EXPECT_TRUE(stopped.hit_stop_token);
  EXPECT_EQ(stopped.tokens, std::vector<int32_t>(whole.tokens.begin(), whole.tokens.begin() + first + 1));
  kernel_->engine().set_position(0);
  int calls = 0;
  const DecodeResult ended = kernel_->engine().decode(
      {.tokens = prompt, .max_tokens = 200, .sampling = sampling}, [&](int32_t) { return ++calls < 4; });
  EXPECT_EQ(ended.tokens, std::vector<int32_t>(whole.tokens.begin(), whole.tokens.begin() + 4));
}

TEST_P(SampledRow, WithoutAnythingAskedForIsGreedy) {
  constexpr int kFed = 8;  // tokens, one by one the second time
  const std::vector<int32_t> prompt = kernel_->fill_all_but(kernel_->prompt(70), kFed);
  const int position = kernel_->engine().position();
  const std::vector<int32_t> drawn = decode(prompt, 6, {}).tokens;
  kernel_->engine().feed_one_by_one();
  EXPECT_EQ(kernel_->decode_from(position, prompt, 6).tokens, drawn);
}

/// Bits of tokens; and the logits of a row with NaN for all others.
std::vector<uint32_t> mask_of(const std::set<int32_t>& tokens, int vocabulary) {
  std::vector<uint32_t> mask(static_cast<size_t>((vocabulary + 31) / 32));
  for (const int32_t token : tokens) mask[static_cast<size_t>(token / 32)] |= 1u << token % 32;
  return mask;
}
std::vector<float> only(std::span<const float> logits, const std::set<int32_t>& tokens) {
  std::vector<float> rest(logits.begin(), logits.end());
  for (int token = 0; token < std::ssize(rest); ++token) {
    if (!tokens.contains(token)) rest[static_cast<size_t>(token)] = NAN;
  }
  return rest;
}

TEST_P(SampledRow, ChoosesWhatAMaskAllows) {
  const std::vector<int32_t> prompt = kernel_->prompt(3);
  const int vocabulary = kernel_->facts().vocabulary;
  std::vector<std::optional<RowSampling>> samplings = {std::nullopt};  // greedily
  for (const RowSampling& sampling : some_samplings()) samplings.push_back(sampling);
  for (const auto& sampling : samplings) {
    kernel_->engine().set_position(0);
    std::set<int32_t> allowed;
    for (int token = 1; token < vocabulary; token += 5) allowed.insert(token);
    const std::vector<uint32_t> mask = mask_of(allowed, vocabulary);
    const DecodeResult result = kernel_->engine().decode({.tokens = prompt,
                                                          .max_tokens = 1,
                                                          .sampling = sampling,
                                                          .allowed = mask,
                                                          .want_logits = true,
                                                          .want_logprobs = true});
    std::set<int32_t> seen;
    if (sampling && sampling->penalty != 1) seen.insert(prompt.begin(), prompt.end());
    const auto agreed = agrees(only(result.logits, allowed), sampling.value_or(RowSampling{}),
                               static_cast<int>(prompt.size()) - 1, seen, result.tokens[0]);
    EXPECT_TRUE(agreed.value_or(true));
    EXPECT_TRUE(allowed.contains(result.tokens[0]));
    EXPECT_NEAR(result.logprobs[0], reference_logprob(only(result.logits, allowed), result.tokens[0]),
                kLogprobError);
  }
}

class SampledRaces : public SampledRow {};
INSTANTIATE_TEST_SUITE_P(Kernels, SampledRaces,
                         testing::Values("micro-3", "micro-3-counter", "plain-4-split", "plain-4-split-lanes",
                                         "micro-3-rows8"),
                         test_name);

TEST_P(SampledRaces, ThereAreNoneUnderAnySchedule) {
  const RowSampling sampling{1.5f, 7, 12, 0.9f, 3.0f, 1.3f};
  const std::vector<int32_t> prompt = kernel_->prompt(3);
  const DecodeResult expected = decode(prompt, 3, sampling);
  kernel_->emulation().check = true;
  for (uint64_t seed = 1; seed <= (long_tests() ? 3 : 2); ++seed) {
    kernel_->emulation().seed = seed;
    kernel_->emulation().copies = seed % 2 == 0 ? CopyPolicy::kLate : CopyPolicy::kRandom;
    kernel_->engine().set_position(0);
    const DecodeResult result = decode(prompt, 3, sampling);
    EXPECT_EQ(result.tokens, expected.tokens) << "schedule " << seed;
    EXPECT_EQ(result.logprobs, expected.logprobs) << "schedule " << seed;
  }
}

TEST(SampledRefusal, OfTokensThatAreNone) {
  KernelUnderTest kernel("micro-3");
  const std::vector<int32_t> prompt = kernel.prompt(3);
  const std::vector<int32_t> past = {1000};
  EXPECT_THROW(kernel.engine().decode({.tokens = prompt, .max_tokens = 1, .past = past}), Error);
  EXPECT_EQ(kernel.engine().position(), 0);
}

TEST(SampledRefusal, OfMasksThatDoNotFit) {
  KernelUnderTest kernel("micro-3");
  const std::vector<int32_t> prompt = kernel.prompt(3);
  const std::vector<uint32_t> all = mask_of({1}, kernel.facts().vocabulary);
  const std::vector<uint32_t> none(all.size());
  const auto last = std::span(all).subspan(1);
  EXPECT_THROW(kernel.engine().decode({.tokens = prompt, .max_tokens = 2, .allowed = all}), Error);
  EXPECT_THROW(kernel.engine().decode({.tokens = prompt, .max_tokens = 1, .allowed = none}), Error);
  EXPECT_THROW(kernel.engine().decode({.tokens = prompt, .max_tokens = 1, .allowed = last}), Error);
}

// ---- Several rows

class SampledTree : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(Kernels, SampledTree,
                         testing::Values("micro-1-rows8", "micro-3-rows8", "plain-3-rows64"), test_name);

TEST_P(SampledTree, EveryRowChoosesAsDefined) {
  constexpr int kSteps = 5;
  TreeUnderTest kernel(GetParam());
  const int num_rows = std::min(kernel.engine().max_rows(), 19) - 1;  // one has no token
  const Branch root = kernel.tree().open();
  kernel.fill(root, 11);
  const std::vector<int32_t> tokens = kernel.prepare(kernel.plain(kernel.tree().fork(root, num_rows)));
  const std::vector<SnapshotRow> at = kernel.engine().rows();
  std::vector<RowSampling> sampling;
  std::vector<std::vector<int32_t>> past;
  for (int row = 0; row < num_rows; ++row) {
    sampling.push_back(some_samplings()[static_cast<size_t>(row % 8)]);
    sampling.back().seed += static_cast<uint32_t>(100 * row);
    past.push_back(kernel.any_tokens(5 + row));
  }
  const auto decode = [&] {
    return kernel.engine().decode_tree({.tokens = tokens,
                                        .num_steps = kSteps,
                                        .sampling = sampling,
                                        .past = past,
                                        .want_logits = true,
                                        .want_logprobs = true,
                                        .rule = SliceRule::kFixed});
  };
  const TreeResult result = decode();
  ASSERT_EQ(result.logprobs.size(), result.chosen.size());
  int compared = 0;
  for (int row = 0; row < num_rows; ++row) {
    const size_t index = static_cast<size_t>(row);
    std::set<int32_t> seen(past[index].begin(), past[index].end());
    seen.insert(tokens[index]);
    for (int step = 0; step < kSteps; ++step) {
      const size_t i = static_cast<size_t>(step * num_rows + row);
      const auto logits = std::span(result.logits).subspan(i * kernel.vocabulary(), kernel.vocabulary());
      const auto agreed = agrees(logits, sampling[index], at[index].position + step,
                                 sampling[index].penalty == 1 ? std::set<int32_t>{} : seen, result.chosen[i]);
      EXPECT_TRUE(agreed.value_or(true)) << "step " << step << ", row " << row;
      compared += agreed.has_value() ? 1 : 0;
      EXPECT_NEAR(result.logprobs[i], reference_logprob(logits, result.chosen[i]), kLogprobError);
      seen.insert(result.chosen[i]);
    }
  }
  EXPECT_GT(compared, num_rows * kSteps * 8 / 10);

  for (const Branch branch : kernel.tree().branches()) kernel.tree().truncate(branch, 11);
  kernel.emulation().check = true;
  const TreeResult again = decode();
  EXPECT_EQ(again.chosen, result.chosen);
  EXPECT_EQ(again.logprobs, result.logprobs);
}

TEST_P(SampledTree, EveryRowChoosesWhatItsMaskAllows) {
  TreeUnderTest kernel(GetParam());
  const int num_rows = std::min(kernel.engine().max_rows(), 9) - 1;
  const int vocabulary = static_cast<int>(kernel.vocabulary());
  const Branch root = kernel.tree().open();
  kernel.fill(root, 11);
  const std::vector<int32_t> tokens = kernel.prepare(kernel.plain(kernel.tree().fork(root, num_rows)));
  const std::vector<SnapshotRow> at = kernel.engine().rows();
  std::vector<std::set<int32_t>> allowed(num_rows);
  std::vector<std::vector<uint32_t>> masks(num_rows);
  std::vector<std::span<const uint32_t>> views(num_rows);
  std::vector<RowSampling> sampling;
  for (size_t row = 0; row < static_cast<size_t>(num_rows); ++row) {
    sampling.push_back(row % 3 == 0 ? RowSampling{} : some_samplings()[row % 4]);
    for (int token = 0; token < vocabulary; ++token) {
      if (row % 4 == 3 || random_bits(token, row) % 9 == 0)
        allowed[row].insert(token);  // all, of every fourth row
    }
    masks[row] = mask_of(allowed[row], vocabulary);
    if (row % 4 != 3) views[row] = masks[row];
  }
  kernel.emulation().check = true;
  const TreeResult result = kernel.engine().decode_tree({.tokens = tokens,
                                                         .num_steps = 1,
                                                         .sampling = sampling,
                                                         .allowed = views,
                                                         .want_logits = true,
                                                         .want_logprobs = true,
                                                         .rule = SliceRule::kFixed});
  for (size_t row = 0; row < static_cast<size_t>(num_rows); ++row) {
    const auto logits = std::span(result.logits).subspan(row * kernel.vocabulary(), kernel.vocabulary());
    const auto agreed =
        agrees(only(logits, allowed[row]), sampling[row], at[row].position, {}, result.chosen[row]);
    EXPECT_TRUE(agreed.value_or(true)) << "row " << row;
    EXPECT_TRUE(allowed[row].contains(result.chosen[row])) << "row " << row;
    EXPECT_NEAR(result.logprobs[row], reference_logprob(only(logits, allowed[row]), result.chosen[row]),
                kLogprobError);
  }
}

}  // namespace
}  // namespace soliton
