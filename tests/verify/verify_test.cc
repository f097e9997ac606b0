// Kernels in emulation, verified as on a user's machine: with what is in the folder, and with faults between the
// folder and the device.
#include "runtime/verify/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernel/kernel_cases.h"
#include "long_tests.h"
#include "models/error.h"
#include "verify/verified.h"

namespace soliton {
namespace {

std::string test_kernel(const std::string& name) {
  return std::string(SOLITON_TEST_KERNELS) + "/" + name + ".so";
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class Verify : public KernelCases {};
class VerifyFaults : public KernelCases {};  // of each tensor: some take a while

INSTANTIATE_TEST_SUITE_P(Kernels, Verify,
                         testing::Values("micro-3", "int4-3", "int4-zeros-4", "int4-ordered-3-all",
                                         "int4-bias-3-all", "norm128-4-all", "kinds-14-all",
                                         "int4-kinds-3-all", "mixture-3", "mixture-wide-7", "int4-mixture-5",
                                         "mixture-shared-5", "int4-sigmoid-5", "mixture-joint-6",
                                         "mixture-sinks-5", "sandwich-4-all", "after-3-all",
                                         "int4-after-3-all", "scaled-4-all", "turned-3-all", "parallel-3-all",
                                         "centred-3-all", "int4-ungated-3-all", "norm-bias-3-all",
                                         "biases-3-all", "wide128-4-split", "plain-3-bytes"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Kernels, VerifyFaults,
                         testing::Values("micro-3", "int4-3", "int4-mixed-3", "int4-bias-3-all",
                                         "norm128-4-all", "after-3-all", "biases-3-all"),
                         test_name);

/// What in the names of a kernel's tensors none of the kernels above has: all that is zeroed in short runs.
std::string_view own_part(const std::string& kernel) {
  return kernel == "int4-bias-3-all" ? ".bias"
         : kernel == "biases-3-all"  ? ".bias"
         : kernel == "norm128-4-all" ? "_norm."
         : kernel == "after-3-all"   ? "_layernorm."
                                     : "";
}

TEST_P(Verify, AgreesWithWhatIsInTheFolder) {
  Verified model(test_kernel(GetParam()));
  const Verdict verdict = model.verify_intact();
  EXPECT_TRUE(verdict.agrees) << verdict.line;
  EXPECT_TRUE(verdict.line.starts_with("verified: " + test_kernel(GetParam()) + ": 8 tokens"))
      << verdict.line;
  EXPECT_EQ(verdict.line.find('\n'), std::string::npos);
}

TEST(VerifyFused, AgreesAndFindsTensorsThatBecameZero) {
  for (const char* kernel : {"micro-3", "int4-3"}) {
    SCOPED_TRACE(kernel);
    Verified model(test_kernel(kernel), fuse_projections);
    const Verdict verdict = model.verify_intact();
    EXPECT_TRUE(verdict.agrees) << verdict.line;
    const bool has_integers = model.config().facts.weight_bits < 16;
    for (const char* name : {"self_attn.qkv_proj.", "mlp.gate_up_proj."}) {
      const std::string tensor = in_layer(0, std::string(name) + (has_integers ? "qweight" : "weight"));
      EXPECT_FALSE(model.verify_without(tensor, 4).agrees) << tensor;
    }
  }
}

TEST(VerifyFused, AgreesWhereTensorsAreCalledAsGranite4CallsThem) {
  SOLITON_LONG_RUNS_ONLY("the tests of names in tests/runtime do");
  Verified model(test_kernel("scaled-4-all"), fuse_granite);
  const Verdict verdict = model.verify_intact();
  EXPECT_TRUE(verdict.agrees) << verdict.line;
  for (const char* name : {"shared_mlp.input_linear.weight", "shared_mlp.output_linear.weight"})
    EXPECT_FALSE(model.verify_without(in_layer(0, name), 4).agrees) << name;
}

TEST(VerifyFused, AgreesWhereAllExpertsStandInOneTensor) {
  SOLITON_LONG_RUNS_ONLY("the tests of names in tests/runtime do");
  Verified model(test_kernel("mixture-shared-5"), fuse_experts);
  const Verdict verdict = model.verify_intact();
  EXPECT_TRUE(verdict.agrees) << verdict.line;
  for (const char* name : {"mlp.experts.gate_up_proj", "mlp.experts.down_proj"})
    EXPECT_FALSE(model.verify_without(in_layer(1, name), 4).agrees) << name;
}

// An expert that no token of the text goes through may be anything.
TEST(VerifyExperts, FindsThoseThatBecameZeroWhereATokenGoesThroughThem) {
  Verified model(test_kernel("mixture-3"));
  const ModelFacts& facts = model.config().facts;
  const int layer = facts.num_layers - 1;
  const auto is_found = [&](const std::string& name) {
    return !model.verify_without(in_layer(layer, name) + ".weight", 4).agrees;
  };
  EXPECT_TRUE(is_found("mlp.gate"));
  // In short runs until there was one of either kind.
  int num_found = 0;
  int num_missed = 0;
  for (int expert = 0; expert < facts.num_experts; ++expert) {
    if (!long_tests() && num_found > 0 && num_missed > 0) break;
    const std::string prefix = fmt::format("mlp.experts.{}.", expert);
    const bool is_used = is_found(prefix + "down_proj");
    EXPECT_EQ(is_found(prefix + "gate_proj"), is_used) << prefix;
    EXPECT_EQ(is_found(prefix + "up_proj"), is_used) << prefix;
    ++(is_used ? num_found : num_missed);
  }
  EXPECT_GE(num_found, long_tests() ? facts.experts_per_token : 1);
}

TEST(VerifySinks, FindsTensorsThatBecameZero) {
  Verified model(test_kernel("mixture-sinks-5"));
  for (const char* name : {"self_attn.sinks", "self_attn.o_proj.bias", "mlp.router.weight", "mlp.router.bias",
                           "mlp.experts.gate_up_proj", "mlp.experts.gate_up_proj_bias",
                           "mlp.experts.down_proj", "mlp.experts.down_proj_bias"})
    EXPECT_FALSE(model.verify_without(in_layer(2, name), 4).agrees) << name;
}

TEST_P(VerifyFaults, FindsEveryTensorThatBecameZero) {
  Verified model(test_kernel(GetParam()));
  // Layers of integers have many tensors: of those models, and in the short mode of all, the last layer, and all that
  // is in none. In the short mode half the prompt has to do: queries and keys need a token before.
  const size_t num_tokens = long_tests() ? SIZE_MAX : 4;
  const bool one_layer = model.config().facts.weight_bits < 16 || !long_tests();
  const std::string last_layer = fmt::format(".layers.{}.", model.config().facts.num_layers - 1);
  int num_zeroed = 0;
  int num_refused = 0;
  for (const std::string_view name : model.source().names()) {
    if (name.ends_with(".g_idx")) continue;  // read and checked, but has no part in the answer
    if (one_layer && name.find(".layers.") != name.npos && name.find(last_layer) == name.npos) continue;
    if (!long_tests() && name.find(own_part(GetParam())) == name.npos) continue;
    SCOPED_TRACE(name);
    ++num_zeroed;
    try {
      const Verdict verdict = model.verify_without(std::string(name), num_tokens);
      EXPECT_FALSE(verdict.agrees) << verdict.line;
      EXPECT_TRUE(verdict.line.starts_with("NOT verified: ")) << verdict.line;
    } catch (const Error& error) {
      EXPECT_TRUE(name.ends_with(".qzeros")) << error.what();  // of a model that says they are all 8
      EXPECT_EQ(model.config().facts.weight_zeros, 0);
      ++num_refused;
    }
  }
  EXPECT_TRUE(model.verify_intact().agrees);  // the damage was to the weights alone
  const ModelFacts& facts = model.config().facts;
  const bool has_only_eights = facts.weight_bits < 16 && facts.weight_zeros == 0;
  const bool zeroes_integers = long_tests() || own_part(GetParam()).empty();
  EXPECT_EQ(num_refused, has_only_eights && zeroes_integers ? 7 : 0);
  EXPECT_GE(num_zeroed, 2);  // the norms of queries and of keys
}

// With kernels of several rows, and weights that somebody trained.
TEST(VerifyTiny, FeedsByAllKernelsOfALibrary) {
  for (const std::string name : {"tiny-stories", "tiny-stories-gptq", "tiny-stories-experts"}) {
    const std::filesystem::path folder = std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / name;
    Engine engine(KernelLibrary::open(std::string(SOLITON_KERNELS) + "/" + name + "-cpu.so"),
                  {.context = Verified::kContext});
    ASSERT_GT(engine.max_rows(), 1);
    const HfConfig config = HfConfig::open(folder);
    const TensorSource source = TensorSource::open(folder);
    engine.load(source, nullptr, config.quantization_or_null());
    const Verdict verdict = verify(engine, source, config, verification_prompt(config));
    EXPECT_TRUE(verdict.agrees) << verdict.line;
  }
}

/// The largest difference of logits from token `first` on, of the largest logit of its step, that an expert's matrix makes in
/// the reference if it becomes zero.
float difference_without(ReferenceWeights weights, const ModelFacts& facts, int layer, int expert,
                         Bf16Bits ReferenceExpert::*matrix, std::span<const int32_t> text, int first) {
  ReferenceModel intact(facts, weights);
  Bf16Bits& bits = weights.layers[layer].experts[expert].*matrix;
  std::fill(bits.begin(), bits.end(), uint16_t{0});
  ReferenceModel damaged(facts, std::move(weights));
  float largest = 0;
  for (int i = 0; i < std::ssize(text); ++i) {
    const std::vector<float> expected = intact.step(text[i], i);
    const std::vector<float> got = damaged.step(text[i], i);
    float scale = 0;
    for (const float logit : expected) scale = std::max(scale, std::abs(logit));
    for (size_t j = 0; i >= first && j < expected.size(); ++j)
      largest = std::max(largest, std::abs(expected[j] - got[j]) / scale);
  }
  return largest;
}

// An expert that became zero is missed where the text goes through it, and may be anything where it does not.
TEST(VerifyTiny, MissesTheExpertsThatTheTextGoesThrough) {
  SOLITON_LONG_RUNS_ONLY("VerifyExperts does, of a smaller model");
  constexpr float kFound = 1.0f / 16;  // several times what verify() lets pass
  const std::filesystem::path folder =
      std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / "tiny-stories-experts";
  Engine engine(KernelLibrary::open(SOLITON_KERNELS "/tiny-stories-experts-cpu.so"),
                {.context = Verified::kContext});
  const HfConfig config = HfConfig::open(folder);
  const TensorSource source = TensorSource::open(folder);
  engine.load(source, nullptr);
  const std::vector<int32_t> prompt = {0, 534};  // " Once"
  std::vector<int32_t> text = prompt;
  for (const int32_t token : engine.decode({.tokens = prompt, .max_tokens = kVerifiedTokens - 1}).tokens)
    text.push_back(token);
  const ReferenceWeights weights = load_weights(source, config.facts);
  const std::array matrices = {std::pair("gate_proj", &ReferenceExpert::gate),
                               std::pair("up_proj", &ReferenceExpert::up),
                               std::pair("down_proj", &ReferenceExpert::down)};
  int num_found = 0;
  int num_unused = 0;
  for (const int layer : {0, 3}) {
    for (int expert = 0; expert < config.facts.num_experts; ++expert) {
      const auto& [name, matrix] = matrices[(layer + expert) % 3];
      const float difference = difference_without(weights, config.facts, layer, expert, matrix, text, 1);
      if (difference > 0 && difference < kFound) continue;
      const std::string tensor = in_layer(layer, fmt::format("mlp.experts.{}.{}.weight", expert, name));
      TensorSource damaged = TensorSource::open(folder);
      damaged.zero(tensor);
      engine.load(damaged, nullptr);
      EXPECT_EQ(verify(engine, source, config, prompt).agrees, difference == 0) << tensor;
      ++(difference == 0 ? num_unused : num_found);
    }
  }
  EXPECT_GE(num_found, 6);
  EXPECT_GE(num_unused, 2);
}

TEST(VerifyTiny, PromptIsWithinTheVocabulary) {
  HfConfig config;
  for (const int vocabulary : {1, 40, 128256}) {
    config.facts.vocabulary = vocabulary;
    config.bos_id = -1;
    std::vector<int32_t> prompt = verification_prompt(config);
    EXPECT_EQ(prompt.size(), 8u);
    EXPECT_GE(*std::min_element(prompt.begin(), prompt.end()), 0);
    EXPECT_LT(*std::max_element(prompt.begin(), prompt.end()), vocabulary);
    config.bos_id = 0;
    EXPECT_EQ(verification_prompt(config)[0], 0);
  }
}

/// The plain forward pass against the scalar reference in double.
TEST_P(Verify, HasTheSameLogitsAsTheScalarReference) {
  const ModelFacts facts = KernelLibrary::open(test_kernel(GetParam())).model().facts;
  const ReferenceWeights weights = random_weights(facts, Verified::kSeed);
  const TemporaryFolder folder;
  write_hf_folder(weights, facts, folder.path());
  HfConfig config = HfConfig::open(folder.path());
  config.facts.kv_bits = facts.kv_bits;
  const TensorSource source = TensorSource::open(folder.path());
  const std::vector<int32_t> text = verification_prompt(config);
  const std::vector<float> logits = HostModel(source, config).logits(text, 0);
  ReferenceModel reference(facts, weights);
  for (size_t i = 0; i < text.size(); ++i) {
    const std::vector<float> expected = reference.step(text[i], static_cast<int>(i));
    float scale = 0;
    for (const float logit : expected) scale = std::max(scale, std::abs(logit));
    for (size_t j = 0; j < expected.size(); ++j) {
      EXPECT_NEAR(logits[i * expected.size() + j], expected[j], scale / 1024)
          << "token " << i << ", logit " << j;
    }
  }
}

}  // namespace
}  // namespace soliton
