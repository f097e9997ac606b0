// On a card: small models against the reference, whose weights are the same exactly: 4-bit integers, biases, normed
// heads; kernels of several rows against that of one row, or with themselves. Skipped without one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "bands.h"
#include "layout/random.h"
#include "layout/several_rows.h"
#include "models/error.h"
#include "models/hf_config.h"
#include "reference_model.h"
#include "runtime/engine/engine.h"
#include "verify/verified.h"

namespace soliton {
namespace {

constexpr uint64_t kSeed = 11;
constexpr int kPromptTokens = 70;  // more than a page of the cache
constexpr int kTokens = 8;

std::string kernel_path(const std::string& model) {
  const char* chosen = std::getenv("SOLITON_KERNELS");
  return std::string(chosen != nullptr ? chosen : SOLITON_KERNELS) + "/card/" + model + ".so";
}

class ModelsOnCard : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      library_.emplace(KernelLibrary::open(kernel_path(GetParam())));
      library_->select_device(0);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  /// Decodes by kernels of at most `rows` rows and compares every logit.
  void expect_like_reference(bool one_by_one, float tolerance) {
    const ModelFacts facts = library_->model().facts;
    const auto weights = std::make_shared<ReferenceWeights>(random_weights(facts, kSeed));
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("soliton-models-" + std::to_string(getpid()));
    write_hf_folder(*weights, facts, folder);
    Engine engine(std::move(*library_), {.context = 2 * kPromptTokens});
    const HfConfig config = HfConfig::open(folder);
    engine.load(TensorSource::open(folder), nullptr, config.quantization_or_null());
    std::filesystem::remove_all(folder);

    std::vector<int32_t> prompt;
    for (int i = 0; i < kPromptTokens; ++i) {
      prompt.push_back(static_cast<int32_t>(random_bits(i, kSeed) % static_cast<uint32_t>(facts.vocabulary)));
    }
    if (one_by_one) engine.feed_one_by_one();
    const DecodeResult result = engine.decode({.tokens = prompt, .max_tokens = kTokens, .want_logits = true});
    ASSERT_EQ(result.tokens.size(), static_cast<size_t>(kTokens));
    ReferenceModel reference(facts, weights);
    for (size_t i = 0; i + 1 < prompt.size(); ++i) reference.step(prompt[i], static_cast<int>(i));
    int next = prompt.back();
    for (int i = 0; i < kTokens; ++i) {
      const std::vector<float> expected = reference.step(next, reference.length());
      float scale = 0;
      float worst = 0;
      for (size_t j = 0; j < expected.size(); ++j) {
        ASSERT_TRUE(std::isfinite(result.logits[i * expected.size() + j]))
            << "token " << i << ", logit " << j;
        scale = std::max(scale, std::abs(expected[j]));
        worst = std::max(worst, std::abs(expected[j] - result.logits[i * expected.size() + j]));
      }
      EXPECT_LE(worst, scale * tolerance) << "token " << i;
      EXPECT_GE(expected[result.tokens[i]],
                *std::max_element(expected.begin(), expected.end()) - scale * tolerance);
      next = result.tokens[i];
    }
  }

 private:
  std::optional<KernelLibrary> library_;
};

INSTANTIATE_TEST_SUITE_P(Models, ModelsOnCard,
                         testing::Values("int4", "int4-zeros", "int4-wide", "int4-ordered", "int4-8b-layer",
                                         "int4-bias", "int4-mixture", "int4-pairs", "fp8", "norm128",
                                         "norm64-bias", "deep256-group4", "broad"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(ModelsOnCard, EqualTheReferenceOneByOne) {
  expect_like_reference(true, 2e-3f);
}

TEST_P(ModelsOnCard, EqualTheReferenceWithThePromptByRows) {
  expect_like_reference(false, 1.0f / 32);  // activations of 32 rows are bf16
}

/// As soliton-chat --verify does, with a fault between the folder and the card.
TEST_P(ModelsOnCard, VerifyFindsATensorThatBecameZero) {
  const std::string_view name = GetParam();
  if (name == "int4-8b-layer") GTEST_SKIP() << "takes long, and shows no more";
  if (name == "norm64-bias") GTEST_SKIP() << "of no family: config.json cannot say what it is";
  Verified model(kernel_path(GetParam()));
  EXPECT_TRUE(model.verify_intact().agrees);
  int num_damaged = 0;
  for (const std::string_view name : model.source().names()) {
    if (name.find("layers.0.") == name.npos || name.ends_with(".g_idx") || name.ends_with(".qzeros"))
      continue;
    const Verdict verdict = model.verify_without(std::string(name));
    EXPECT_FALSE(verdict.agrees) << name << ": " << verdict.line;
    ++num_damaged;
  }
  EXPECT_GT(num_damaged, 0);
}

/// Random weights, as the kernel has them.
class RandomModelOnCard : public testing::Test {
 protected:
  /// Skips the test where there is no card.
  void open(const char* model) {
    try {
      KernelLibrary library = KernelLibrary::open(kernel_path(model));
      library.select_device(0);
      engine_.emplace(std::move(library), EngineOptions{.context = 640});
      engine_->load_random(kSeed);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::vector<int32_t> prompt(int length) const {
    const uint32_t vocabulary = engine_->library().model().facts.vocabulary;
    std::vector<int32_t> tokens;
    for (int i = 0; i < length; ++i)
      tokens.push_back(static_cast<int32_t>(random_bits(i, kSeed) % vocabulary));
    return tokens;
  }

  std::optional<Engine> engine_;
};

/// Of a block of rows of one prompt.
TEST_F(RandomModelOnCard, ChoosesTheSameWhereFewRowsAreWanted) {
  open("broad");
  if (IsSkipped()) return;
  const int rows = engine_->max_prompt_rows() - 6;
  ASSERT_TRUE(rows::multiplies_bands(*engine_->library().descriptor(engine_->kernel_for_prompt(rows)).plan));
  expect_bands_choose_alike(*engine_, prompt(rows));
}

/// Codes in E2M1: a prompt by each kernel gives the logits that one row gives.
TEST_F(RandomModelOnCard, GivesRowsOfCodesTheLogitsOfOne) {
  open("nvfp4");
  if (IsSkipped()) return;
  const auto decode = [&](const std::vector<int32_t>& tokens) {
    engine_->set_position(0);
    return engine_->decode({.tokens = tokens, .max_tokens = 1, .want_logits = true}).logits;
  };
  const auto rows_of = [&](int kernel) { return engine_->library().descriptor(kernel).plan->rows; };
  const int kernels = engine_->library().num_kernels();
  std::vector<std::vector<float>> by_rows(1);
  for (int kernel = 1; kernel < kernels; ++kernel) {
    ASSERT_EQ(engine_->kernel_for_prompt(rows_of(kernel)), kernel);
    by_rows.push_back(decode(prompt(rows_of(kernel))));
  }
  engine_->feed_one_by_one();
  for (int kernel = 1; kernel < kernels; ++kernel) {
    const std::vector<float> expected = decode(prompt(rows_of(kernel)));
    float scale = 0;
    for (const float logit : expected) scale = std::max(scale, std::abs(logit));
    ASSERT_GT(scale, 0);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(by_rows[kernel][i], expected[i], scale / 32) << rows_of(kernel) << " rows, " << i;
  }
}

}  // namespace
}  // namespace soliton
