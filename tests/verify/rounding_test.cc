// Weights that are rounded as they are loaded: those of the GGUF file that the public package rounds the same floats to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "error_of.h"
#include "layout/fact_list.h"
#include "models/weight_rounding.h"
#include "reference_python.h"
#include "runtime/engine/engine.h"
#include "runtime/verify/host_model.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(SOLITON_SOURCE_DIR) / "models";

HfConfig open(const fs::path& model, const std::string& word) {
  HfConfig config = HfConfig::open(model);
  round_weights(word, config);
  return config;
}

std::vector<float> host_logits(const fs::path& model, const std::string& word) {
  const std::vector<int32_t> text = {0, 5, 30, 7, 200};
  const HfConfig config = open(model, word);
  return HostModel(TensorSource::open(model), config).logits(text, 3);
}

std::vector<float> kernel_logits(const fs::path& model, const std::string& word) {
  const HfConfig config = open(model, word);
  const TensorSource source = TensorSource::open(model);
  Engine engine(KernelLibrary::open(SOLITON_KERNELS "/tiny-stories-gptq-cpu.so"), {.context = 64});
  EXPECT_EQ(hash_facts(config.facts), hash_facts(engine.library().model().facts));
  const ModelTensors tensors =
      find_tensors(source, config.quantization_or_null(), config.facts, config.checkpoint);
  EXPECT_EQ(tensors.remarks.empty(), word.empty());
  engine.load(tensors, nullptr);
  engine.reset_tree();
  const std::vector<int32_t> prompt = {0, 5, 30};
  return engine.decode({.tokens = prompt, .max_tokens = 1, .want_logits = true}).logits;
}

/// The files' embedding is F16, which rounds 16 values of the model that are next to nothing, in lm_head too.
constexpr float kF16Difference = 1e-6f;

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(RoundedWeights, AreThoseOfThePublicPackage) {
  if (!has_package("gguf"))
    GTEST_SKIP() << reference_python() << " has no package gguf; set SOLITON_PYTHON to one that has";
  const TemporaryFolder folder;
  const fs::path model = kModels / "tiny-stories";
  for (const auto& [word, type] : {std::pair("q4", "Q4_0"), std::pair("q8", "Q8_0")}) {
    const fs::path file = folder.path() / (std::string(word) + ".gguf");
    ASSERT_EQ(run_script("gguf/make_gguf.py", "'" + model.string() + "' '" + file.string() + "' " + type), 0);
    const std::vector<float> expected = host_logits(file, "");
    EXPECT_FALSE(expected.empty());
    EXPECT_LT(largest_difference(host_logits(model, word), expected), kF16Difference) << word;
    EXPECT_GT(largest_difference(host_logits(model, ""), expected), 1000 * kF16Difference) << word;
  }
  EXPECT_EQ(kernel_logits(model, "q4"), kernel_logits(folder.path() / "q4.gguf", ""));
}

TEST(RoundedWeights, AreNoneOfModelsThatAreQuantised) {
  const std::string config = (kModels / "tiny-stories-gptq" / "config.json").string();
  EXPECT_EQ(
      error_of([] { open(kModels / "tiny-stories-gptq", "q8"); }),
      "5 " + config + ": --weights q8: expected a model whose layers are floats, got integers of 4 bits");
}

}  // namespace
}  // namespace soliton
