// The shipped tiny mixture of experts in emulation: its logits are those of the scalar reference, by the kernel of one row and
// by that of eight, on tokens that go through most of its experts.
#include <set>

#include "kernel/kernel_fixture.h"
#include "layout/fact_list.h"
#include "runtime/text/tokenizer.h"

namespace soliton {
namespace {

const std::string kExpertsFolder = std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories-experts";

/// Path of a kernel library of the mixture.
class ExpertsStory : public testing::TestWithParam<const char*> {
 protected:
  ExpertsStory()
      : engine_(KernelLibrary::open(GetParam()), {.context = 64, .pool_tokens = 1024}),
        facts_(HfConfig::open(kExpertsFolder).facts) {
    const TensorSource source = TensorSource::open(kExpertsFolder);
    engine_.load(source, nullptr);
    weights_ = std::make_shared<const ReferenceWeights>(load_weights(source, facts_));
  }

  /// Tells which experts the reference went to, too.
  std::vector<float> step(ReferenceModel& reference, int token) {
    std::vector<float> logits = reference.step(token, reference.length());
    for (size_t layer = 0; layer < reference.routes().size(); ++layer) {
      for (const RoutedExpert& routed : reference.routes()[layer]) used_.emplace(layer, routed.expert);
    }
    return logits;
  }

  static void expect_near(std::span<const float> logits, std::span<const float> expected) {
    float scale = 0;
    float worst = 0;
    for (size_t token = 0; token < expected.size(); ++token) {
      scale = std::max(scale, std::abs(expected[token]));
      const float difference = std::abs(expected[token] - logits[token]);
      if (!(difference <= worst)) worst = difference;
    }
    EXPECT_LE(worst, scale * KernelUnderTest::kLogitTolerance);
  }

  Engine engine_;
  const ModelFacts facts_;
  std::shared_ptr<const ReferenceWeights> weights_;
  std::set<std::pair<size_t, int>> used_;  // layer, expert
};

INSTANTIATE_TEST_SUITE_P(Kernels, ExpertsStory,
                         testing::Values(SOLITON_KERNELS "/tiny-stories-experts-cpu.so",
                                         SOLITON_TEST_KERNELS "/tiny-experts-7-counter.so"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = std::filesystem::path(info.param).stem();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(ExpertsStory, HasTheLogitsOfItsWeightsByEveryKernel) {
  constexpr int kTokens = 8;
  ASSERT_EQ(hash_facts(engine_.library().model().facts), hash_facts(facts_));
  const Tokenizer tokenizer = Tokenizer::open(kExpertsFolder);
  std::vector<int32_t> prompt(tokenizer.prefix_ids().begin(), tokenizer.prefix_ids().end());
  for (const int token : tokenizer.encode("One day, a curious fox named Ruby was playing in the forest. She"))
    prompt.push_back(token);

  for (int kernel = 0; kernel < engine_.library().num_kernels(); ++kernel) {
    SCOPED_TRACE(fmt::format("{} rows", engine_.library().descriptor(kernel).rows));
    engine_.set_position(0);
    engine_.generate_with(kernel);
    const DecodeResult result =
        engine_.decode({.tokens = prompt, .max_tokens = kTokens, .want_logits = true});
    ASSERT_EQ(result.tokens.size(), static_cast<size_t>(kTokens));
    ReferenceModel reference(facts_, weights_);
    for (size_t i = 0; i + 1 < prompt.size(); ++i) step(reference, prompt[i]);
    int32_t next = prompt.back();
    for (int i = 0; i < kTokens; ++i) {
      SCOPED_TRACE(fmt::format("token {}", i));
      const std::vector<float> expected = step(reference, next);
      expect_near(std::span(result.logits).subspan(i * expected.size(), expected.size()), expected);
      next = result.tokens[i];
      EXPECT_EQ(next, argmax(expected));
    }
    EXPECT_EQ(tokenizer.decode(result.tokens), " had a white toy boat and loved to");
  }
  EXPECT_GE(used_.size(), static_cast<size_t>(facts_.num_layers * facts_.num_experts * 3 / 4));
}

// Rows of one launch that want different experts of a layer, and the same.
TEST_P(ExpertsStory, HasTheLogitsOfItsWeightsOnBranches) {
  if (engine_.max_rows() == 1) GTEST_SKIP() << "a kernel of one row";
  const std::vector<int32_t> prompt = {0, 534, 533, 260, 466};
  const std::vector<int32_t> tokens = {13, 260, 889, 260, 42, 1024, 7, 260};  // of each branch, the next one
  engine_.feed(engine_.main_branch(), prompt);
  engine_.tree().fork(engine_.main_branch(), static_cast<int>(tokens.size()));
  ReferenceModel reference(facts_, weights_);
  for (const int32_t token : prompt) reference.step(token, reference.length());
  const TreeResult result = engine_.decode_tree({.tokens = tokens, .want_logits = true});
  ASSERT_EQ(result.num_rows, std::ssize(tokens));
  for (size_t row = 0; row < tokens.size(); ++row) {
    SCOPED_TRACE(row);
    ReferenceModel branch = reference;
    const std::vector<float> expected = step(branch, tokens[row]);
    expect_near(std::span(result.logits).subspan(row * expected.size(), expected.size()), expected);
    EXPECT_EQ(result.chosen[row], argmax(expected));
  }
  EXPECT_GE(used_.size(), static_cast<size_t>(facts_.num_layers * facts_.num_experts / 2));
}

}  // namespace
}  // namespace soliton
