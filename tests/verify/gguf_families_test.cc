// Families as GGUF files by the public writer: facts are those of config.json, and logits those that transformers gives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "layout/fact_list.h"
#include "long_tests.h"
#include "models/hf_config.h"
#include "models/strict_json.h"
#include "reference_model.h"
#include "reference_python.h"
#include "runtime/engine/engine.h"
#include "runtime/verify/host_model.h"
#include "runtime/verify/verify.h"
#include "runtime/weights/model_tensors.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kTokens = 42;  // beyond the goldens' windows

const char* const kFamilies[] = {"gemma2", "gemma3_text", "granite",         "olmo2",
                                 "olmo3",  "smollm3",     "ministral3",      "exaone4",
                                 "glm4",   "seed_oss",    "hunyuan_v1_dense"};

json golden_of(const std::string& family) {
  return read_json(fs::path(SOLITON_SOURCE_DIR) / "tests" / "goldens" / "families" / (family + ".json"));
}

/// Facts of the file, but for what no key of such a file says: these are checked, and become those of config.json.
ModelFacts known_facts(const std::string& family, ModelFacts facts, const ModelFacts& meant) {
  if (family.starts_with("gemma")) {
    EXPECT_EQ(facts.attention_scale, 1 / std::sqrt(static_cast<double>(meant.head_dim))) << family;
    facts.attention_scale = meant.attention_scale;
  }
  EXPECT_NEAR(facts.rope_theta, meant.rope_theta, meant.rope_theta * 0x1p-24) << family;
  facts.rope_theta = meant.rope_theta;
  return facts;
}

/// As tests/reference_goldens_test.cc has it, with keys and values that are sums of two f16.
const double kTolerance = 2.0 * std::sqrt(28672.0) * 0x1p-24 + 0x1p-16;

void expect_transformers(const std::string& family, const fs::path& file) {
  const json golden = golden_of(family);
  HfConfig config = HfConfig::open(file);
  const ModelFacts meant = HfConfig::read(golden["config"], "config.json", {}).facts;
  config.facts = known_facts(family, config.facts, meant);
  EXPECT_EQ(hash_facts(config.facts), hash_facts(meant)) << family;
  const TensorSource source = TensorSource::open(file);
  find_tensors(source, config.quantization_or_null(), config.facts, config.checkpoint);
  config.facts.kv_bits = 32;
  auto text = golden["prompt"].get<std::vector<int32_t>>();
  const auto more = golden["tokens"].get<std::vector<int32_t>>();
  text.insert(text.end(), more.begin(), more.end());
  text.resize(kTokens);
  const std::vector<float> logits = HostModel(source, config).logits(text, 0);
  const auto vocabulary = static_cast<size_t>(config.facts.vocabulary);
  for (const auto& [position, expected] : golden["logits"].items()) {
    const size_t token = std::stoul(position);
    for (size_t i = 0; token < kTokens && i < vocabulary; ++i)
      ASSERT_NEAR(logits[token * vocabulary + i], expected[i].get<float>(), kTolerance) << family << position;
  }
}

TEST(GgufFamilies, AgreeWithTransformers) {
  if (!has_package("gguf"))
    GTEST_SKIP() << reference_python() << " has no package gguf; set SOLITON_PYTHON to one that has";
  const TemporaryFolder folder;
  std::string arguments;
  for (const std::string family : kFamilies) {
    const json golden = golden_of(family);
    const ModelFacts facts = HfConfig::read(golden["config"], "config.json", {}).facts;
    const fs::path path = folder.path() / family;
    write_hf_folder(random_weights(facts, golden["seed"].get<uint64_t>()), facts, path);
    std::ofstream(path / "config.json") << golden["config"];
    arguments += fmt::format("'{}' ", path.string());
  }
  ASSERT_EQ(run_script("gguf/make_families.py", arguments), 0);
  for (const std::string family : kFamilies)
    expect_transformers(family, folder.path() / family / "model.gguf");
}

/// Of the first tokens after a prompt.
std::vector<float> logits_of(const char* kernel, const fs::path& model) {
  Engine engine(KernelLibrary::open(fmt::format(SOLITON_TEST_KERNELS "/{}.so", kernel)), {.context = 64});
  const HfConfig config = HfConfig::open(model);
  const TensorSource source = TensorSource::open(model);
  EXPECT_EQ(hash_facts(config.facts), hash_facts(engine.library().model().facts)) << model;
  engine.load(find_tensors(source, config.quantization_or_null(), config.facts, config.checkpoint), nullptr);
  engine.reset_tree();
  const std::vector<int32_t> prompt = {1, 5};  // behind which verify() has more
  const Verdict verdict = verify(engine, source, config, prompt);
  EXPECT_TRUE(verdict.agrees) << verdict.line;
  engine.reset_tree();
  return engine.decode({.tokens = prompt, .max_tokens = 1, .want_logits = true}).logits;
}

TEST(GgufFamilies, OfGptOssHaveTheirExpertsInMxfp4) {
  SOLITON_LONG_RUNS_ONLY("AgreeWithTransformers has other families");
  if (!has_package("gguf"))
    GTEST_SKIP() << reference_python() << " has no package gguf; set SOLITON_PYTHON to one that has";
  const TemporaryFolder folder;
  const KernelLibrary library = KernelLibrary::open(SOLITON_TEST_KERNELS "/mixture-mxfp4-5.so");
  const ModelFacts facts = library.model().facts;
  write_hf_folder(random_weights(facts, 3), facts, folder.path());
  ASSERT_EQ(run_script("gguf/make_families.py", "'" + folder.path().string() + "'"), 0);
  const std::vector<float> expected = logits_of("mixture-mxfp4-5", folder.path());
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(logits_of("mixture-mxfp4-5", folder.path() / "model.gguf"), expected);
  logits_of("mixture-q8-mxfp4-4", folder.path() / "q8.gguf");
}

}  // namespace
}  // namespace soliton
