// Models as GGUF files: kernels have the same weights as those of the folder that has the same model, and answer alike.
#include <gtest/gtest.h>

#include <algorithm>

#include "error_of.h"
#include "gguf_model.h"
#include "layout/fact_list.h"
#include "models/hf_config.h"
#include "models/model_config.h"
#include "runtime/engine/engine.h"
#include "runtime/verify/host_model.h"
#include "runtime/verify/verify.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

constexpr uint64_t kSeed = 3;
constexpr int kContext = 64;

struct Case {
  const char* kernel;
  GgufType type;
  const char* architecture;
};

void PrintTo(const Case& each, std::ostream* stream) {
  *stream << each.kernel << " as " << gguf_type(each.type).name << " of " << each.architecture;
}

std::vector<float> logits_of(Engine& engine, const std::filesystem::path& model) {
  const HfConfig config = HfConfig::open(model);
  const TensorSource source = TensorSource::open(model);
  engine.load(find_tensors(source, config.quantization_or_null(), config.facts, config.checkpoint), nullptr);
  engine.reset_tree();
  const std::vector<int32_t> prompt = {1, 5, 3, 7, 2};
  return engine.decode({.tokens = prompt, .max_tokens = 3, .want_logits = true}).logits;
}

class GgufModel : public testing::Test {
 protected:
  static Engine open(const char* kernel) {
    const bool is_shipped = std::string_view(kernel).starts_with("tiny");
    return {KernelLibrary::open(std::string(is_shipped ? SOLITON_KERNELS : SOLITON_TEST_KERNELS) + "/" +
                                kernel + ".so"),
            {.context = kContext}};
  }
  const TemporaryFolder folder_;
};

class GgufKernels : public GgufModel, public testing::WithParamInterface<Case> {};

TEST_P(GgufKernels, AnswersAsItsFolderDoes) {
  const Case& each = GetParam();
  Engine engine = open(each.kernel);
  const ModelFacts& facts = engine.library().model().facts;
  const ReferenceWeights weights = random_weights(facts, kSeed);
  write_hf_folder(weights, facts, folder_.path() / "hf");
  const std::filesystem::path file = folder_.path() / "m.gguf";
  gguf_model(weights, facts, each.type, each.architecture).write(file);
  const HfConfig config = HfConfig::open(file);
  EXPECT_EQ(hash_facts(config.facts), hash_facts(HfConfig::open(folder_.path() / "hf").facts));
  const std::vector<float> expected = logits_of(engine, folder_.path() / "hf");
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(logits_of(engine, file), expected);
  // The model on the host reads the file by ways of its own.
  const Verdict verdict = verify(engine, TensorSource::open(file), config, verification_prompt(config));
  EXPECT_TRUE(verdict.agrees) << verdict.line;
}
INSTANTIATE_TEST_SUITE_P(Kernels, GgufKernels,
                         testing::Values(Case{"micro-3", GgufType::kF32, "llama"},
                                         Case{"micro-3", GgufType::kBF16, "phi3"},
                                         Case{"norm128-4-all", GgufType::kBF16, "qwen3"},
                                         Case{"int4-bias-3-all", GgufType::kBF16, "qwen2"},
                                         Case{"tiny-stories-gptq-cpu", GgufType::kBF16, "llama"}));

/// By the model on the host, where no test has a kernel.
class GgufHost : public GgufModel {
 protected:
  void expect_same(const ModelFacts& facts) {
    const ReferenceWeights weights = random_weights(facts, kSeed);
    write_hf_folder(weights, facts, folder_.path() / "hf");
    const std::filesystem::path file = folder_.path() / "m.gguf";
    gguf_model(weights, facts, GgufType::kBF16, gguf_architecture(facts)).write(file);
    const auto logits = [](const std::filesystem::path& model) {
      const HfConfig config = HfConfig::open(model);
      const TensorSource source = TensorSource::open(model);
      find_tensors(source, config.quantization_or_null(), config.facts, config.checkpoint);
      const std::vector<int32_t> text = {1, 5, 3, 7, 2};
      return HostModel(source, config).logits(text, 0);
    };
    const std::vector<float> expected = logits(folder_.path() / "hf");
    EXPECT_EQ(logits(file), expected);
  }
  static ModelFacts facts_of(const std::string& name) {
    return load_model_config(SOLITON_SOURCE_DIR "/tests/models/" + name + ".yaml").facts;
  }
};

TEST_F(GgufHost, OfExpertsAnswersAsItsFolderDoes) {
  ModelFacts facts = facts_of("mixture");
  std::ranges::fill(facts.layer_ffn, 0);
  expect_same(facts);
  facts.weight_bits = 4;
  facts.weight_group = 32;
  expect_same(facts);
}

TEST_F(GgufHost, OfAnLmHeadOfIntegersAnswersAsItsFolderDoes) {
  ModelFacts facts = facts_of("int4-bias");
  facts.tied_lm_head = 0;
  facts.lm_head_bits = 4;
  facts.vocabulary = 48;  // GPTQ packs eight rows
  expect_same(facts);
}

class GgufWeights : public GgufModel {
 protected:
  /// What finding the tensors is refused with, where one of them is made another.
  std::string refusal(const ModelFacts& facts, const std::string& name, GgufType type,
                      const std::string& bytes) {
    ReferenceWeights weights = random_weights(facts, kSeed);
    const std::filesystem::path file = folder_.path() / "m.gguf";
    gguf_model(weights, facts, GgufType::kBF16, gguf_architecture(facts))
        .replace(name, type, bytes)
        .write(file);
    return error_of([&] {
      const HfConfig config = HfConfig::open(file);
      const TensorSource source = TensorSource::open(file);
      remarks_ = find_tensors(source, config.quantization_or_null(), config.facts, config.checkpoint).remarks;
    });
  }
  std::vector<std::string> remarks_;
};

std::string zeros(const ModelFacts& facts, GgufType type, int64_t rows) {
  const GgufTypeFacts& of = gguf_type(type);
  return std::string(static_cast<size_t>(rows * facts.hidden / of.block_columns * of.block_bytes), '\0');
}

TEST_F(GgufWeights, AreExactOrRefused) {
  const Engine engine = open("micro-3");
  const ModelFacts& facts = engine.library().model().facts;
  const std::string name = "blk.1.ffn_gate.weight";
  std::string floats = zeros(facts, GgufType::kF32, facts.ffn);
  EXPECT_EQ(refusal(facts, name, GgufType::kF32, floats), "no error");
  floats.replace(floats.size() - 4, 4, bytes_of(1 + 0x1p-8f));
  EXPECT_EQ(refusal(facts, name, GgufType::kF32, floats),
            "5 " + (folder_.path() / "m.gguf").string() + ": " + name +
                ": expected values that bf16 has, got others as F32: no kernel computes with them");
  std::string halves = zeros(facts, GgufType::kF16, facts.ffn);
  halves.replace(0, 2, bytes_of(uint16_t{0x3c01}));
  EXPECT_NE(refusal(facts, name, GgufType::kF16, halves).find("got others as F16"), std::string::npos);
  EXPECT_NE(refusal(facts, "output_norm.weight", GgufType::kF32,
                    std::string(static_cast<size_t>(facts.hidden) * 4, '\1'))
                .find("output_norm.weight: expected values that bf16 has"),
            std::string::npos);
  EXPECT_NE(refusal(facts, name, GgufType::kQ8_0, zeros(facts, GgufType::kQ8_0, facts.ffn))
                .find(": expected blocks of integers, as other layers have, got "),
            std::string::npos);
}

TEST_F(GgufWeights, OfAnEmbeddingAreRoundedWhichIsSaid) {
  const Engine engine = open("micro-3");
  const ModelFacts& facts = engine.library().model().facts;
  const std::string file = (folder_.path() / "m.gguf").string();
  const std::string name = "token_embd.weight";
  EXPECT_EQ(refusal(facts, name, GgufType::kQ8_0, zeros(facts, GgufType::kQ8_0, facts.vocabulary)),
            "no error");
  EXPECT_EQ(remarks_, std::vector<std::string>{file + ": token_embd.weight: rounded from Q8_0 to bf16"});
  std::string floats = zeros(facts, GgufType::kF32, facts.vocabulary);
  EXPECT_EQ(refusal(facts, name, GgufType::kF32, floats), "no error");
  EXPECT_EQ(remarks_, std::vector<std::string>{});
  floats.replace(0, 4, bytes_of(1 + 0x1p-8f));
  EXPECT_EQ(refusal(facts, name, GgufType::kF32, floats), "no error");
  EXPECT_EQ(remarks_, std::vector<std::string>{file + ": token_embd.weight: rounded from F32 to bf16"});
}

TEST_F(GgufWeights, AreOfOneTypeInAllLayers) {
  const Engine engine = open("int4-bias-3-all");
  const ModelFacts& facts = engine.library().model().facts;
  const std::string name = "blk.1.ffn_gate.weight";
  for (const GgufType type : {GgufType::kF16, GgufType::kBF16}) {
    const std::string error = refusal(facts, name, type, zeros(facts, type, facts.ffn));
    EXPECT_NE(error.find(fmt::format("{}: expected blocks of integers, as other layers have, got {} [", name,
                                     gguf_type(type).name)),
              std::string::npos)
        << error;
  }
}

}  // namespace
}  // namespace soliton
