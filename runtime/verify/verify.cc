#include "runtime/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "layout/random.h"

namespace soliton {
namespace {

constexpr int kPromptTokens = 8;
constexpr uint64_t kPromptSeed = 1;

// Of the largest logit. Keys and values that fall on the other side of a rounding to f16, 2^-12 of their size, add
// up over layers. A tensor of zeros moves logits of tiny-stories by 0.08 or more. With many rows activations are bf16.
constexpr float kTolerance = 1.0f / 128;
constexpr float kBf16Tolerance = 1.0f / 16;
// There, of two experts that a router finds nearly alike the other one may be chosen.
constexpr float kOtherExpertTolerance = 1.0f / 8;
// Of a cache of bytes one value in 32 then falls on the other side of a rounding, which is an eighth of it at most.
constexpr float kByteTolerance = 1.0f / 8;

float tolerance_of(const ModelFacts& facts, int rows) {
  const bool is_exact = RowsPolicy(rows, CopyKind::kBulk, {}, {}, false, false).parts > 1;
  if (facts.kv_bits == 8) return is_exact ? kBf16Tolerance : kByteTolerance;
  if (is_exact) return kTolerance;
  return facts.num_experts > 0 ? kOtherExpertTolerance : kBf16Tolerance;
}

/// Collects differences, step by step, until one is too large.
class Comparison {
 public:
  /// Compares the logits [vocabulary] of one step and the token chosen by them.
  void add(std::span<const float> expected, std::span<const float> got, int32_t token, float tolerance,
           const std::string& step) {
    if (!problem_.empty()) return;
    const float scale = std::abs(*std::max_element(
        expected.begin(), expected.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
    float difference = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const float each = std::abs(expected[i] - got[i]) / scale;
      difference = std::max(difference, std::isnan(each) ? std::numeric_limits<float>::infinity() : each);
    }
    largest_ = std::max(largest_, difference);
    const auto best = std::max_element(expected.begin(), expected.end());
    if (difference > tolerance) {
      problem_ = fmt::format("{}: largest difference {:.2g} of the largest logit, expected at most {:.2g}",
                             step, difference, tolerance);
    } else if (expected[token] < *best - 2 * tolerance * scale) {  // both logits may differ
      problem_ = fmt::format("{}: expected token {}, got {}", step, best - expected.begin(), token);
    }
  }

  Verdict verdict(const std::string& kernel, size_t num_prompt_tokens) const {
    if (!problem_.empty())
      return {.agrees = false, .line = fmt::format("NOT verified: {}: {}", kernel, problem_)};
    return {
        .agrees = true,
        .line = fmt::format("verified: {}: {} tokens after a prompt of {}; largest difference {:.2g} of the "
                            "largest logit",
                            kernel, kVerifiedTokens, num_prompt_tokens, largest_)};
  }

 private:
  float largest_ = 0;
  std::string problem_;
};

}  // namespace

std::vector<int32_t> verification_prompt(const HfConfig& config) {
  const auto vocabulary = static_cast<uint32_t>(config.facts.vocabulary);
  std::vector<int32_t> prompt;
  for (uint64_t i = 0; i < kPromptTokens; ++i) {
    prompt.push_back(static_cast<int32_t>(random_bits(i, kPromptSeed) % vocabulary));
  }
  if (config.bos_id >= 0) prompt[0] = config.bos_id;
  return prompt;
}

Verdict verify(Engine& engine, const TensorSource& source, HfConfig config, std::span<const int32_t> prompt) {
  engine.set_position(0);
  DecodeResult by_rows;
  if (engine.max_rows() > 1)
    by_rows = engine.decode({.tokens = prompt, .max_tokens = 1, .want_logits = true});
  engine.set_position(0);
  engine.feed_one_by_one();
  const DecodeResult result =
      engine.decode({.tokens = prompt, .max_tokens = kVerifiedTokens, .want_logits = true});

  // The reference follows the kernel's tokens, so that one difference does not become many.
  config.facts.kv_bits = engine.library().model().facts.kv_bits;
  config.facts.max_context = engine.context();
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  text.insert(text.end(), result.tokens.begin(), result.tokens.end() - 1);
  const std::vector<float> logits = read_whole(
      source, [&] { return HostModel(source, config).logits(text, static_cast<int>(prompt.size()) - 1); });
  const size_t vocabulary = logits.size() / result.tokens.size();
  const auto step_of = [&](const std::vector<float>& all, size_t step) {
    return std::span(all).subspan(step * vocabulary, vocabulary);
  };
  Comparison comparison;
  const int rows = engine.library().descriptor().rows;
  for (size_t i = 0; i < result.tokens.size(); ++i) {
    comparison.add(step_of(logits, i), step_of(result.logits, i), result.tokens[i],
                   tolerance_of(config.facts, rows),
                   fmt::format("token {} of {}", i + 1, result.tokens.size()));
  }
  if (!by_rows.tokens.empty()) {
    comparison.add(step_of(logits, 0), step_of(by_rows.logits, 0), by_rows.tokens[0],
                   tolerance_of(config.facts, engine.max_rows()), "several rows a step");
  }
  return comparison.verdict(engine.library().path(), prompt.size());
}

}  // namespace soliton
