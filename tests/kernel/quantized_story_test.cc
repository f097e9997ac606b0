// The shipped tiny model with layers of 4-bit integers, in emulation: the logits are those of the scalar
// reference of its weights as GPTQ defines them, and it knows its stories as well as the model it was made of.
#include "kernel/kernel_cases.h"
#include "kernel/kernel_fixture.h"
#include "layout/fact_list.h"
#include "runtime/text/tokenizer.h"

namespace soliton {
namespace {

constexpr float kLogitTolerance = KernelUnderTest::kLogitTolerance;

std::string shipped_folder(const char* name) {
  return std::string(SOLITON_SOURCE_DIR) + "/models/" + name;
}

std::vector<int32_t> with_prefix(const Tokenizer& tokenizer, const char* text) {
  std::vector<int32_t> tokens(tokenizer.prefix_ids().begin(), tokenizer.prefix_ids().end());
  const std::vector<int> encoded = tokenizer.encode(text);
  tokens.insert(tokens.end(), encoded.begin(), encoded.end());
  return tokens;
}

/// Path of a kernel library of the quantised model.
class QuantizedStory : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { skip_unless_built(std::filesystem::path(GetParam()).stem().string()); }
};

INSTANTIATE_TEST_SUITE_P(Kernels, QuantizedStory,
                         testing::Values(SOLITON_KERNELS "/tiny-stories-gptq-cpu.so",
                                         SOLITON_TEST_KERNELS "/tiny-gptq-7-counter.so"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = std::filesystem::path(info.param).stem();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(QuantizedStory, HasTheLogitsOfItsWeights) {
  constexpr int kTokens = 10;
  KernelLibrary library = KernelLibrary::open(GetParam());
  const ModelFacts facts = library.model().facts;
  const HfConfig config = HfConfig::open(shipped_folder("tiny-stories-gptq"));
  ASSERT_EQ(hash_facts(config.facts), hash_facts(facts));
  Engine engine(std::move(library), {.context = 64});
  const TensorSource source = TensorSource::open(shipped_folder("tiny-stories-gptq"));
  engine.load(source, nullptr, config.quantization_or_null());

  const Tokenizer tokenizer = Tokenizer::open(shipped_folder("tiny-stories-gptq"));
  const std::vector<int32_t> prompt = with_prefix(tokenizer, "Once upon a time");
  const DecodeResult result = engine.decode({.tokens = prompt, .max_tokens = kTokens, .want_logits = true});
  ASSERT_EQ(result.tokens.size(), static_cast<size_t>(kTokens));

  ReferenceModel reference(facts, load_weights(source, facts));
  for (size_t i = 0; i + 1 < prompt.size(); ++i) reference.step(prompt[i], reference.length());
  int32_t next = prompt.back();
  for (int i = 0; i < kTokens; ++i) {
    const std::vector<float> expected = reference.step(next, reference.length());
    const float* logits = result.logits.data() + i * expected.size();
    float scale = 0;
    float worst = 0;
    for (size_t token = 0; token < expected.size(); ++token) {
      scale = std::max(scale, std::abs(expected[token]));
      worst = std::max(worst, std::abs(expected[token] - logits[token]));
    }
    EXPECT_LE(worst, scale * kLogitTolerance) << "token " << i;
    next = result.tokens[i];
    EXPECT_GE(expected[next], *std::max_element(expected.begin(), expected.end()) - scale * kLogitTolerance);
  }
  EXPECT_TRUE(tokenizer.decode(result.tokens).starts_with(", a ")) << tokenizer.decode(result.tokens);
}

/// Mean of the negative logarithms of the probabilities of all tokens but the first.
double mean_loss(const char* folder, const std::vector<int32_t>& tokens) {
  const ModelFacts facts = HfConfig::open(shipped_folder(folder)).facts;
  const TensorSource source = TensorSource::open(shipped_folder(folder));
  ReferenceModel model(facts, load_weights(source, facts));
  double loss = 0;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const std::vector<float> logits = model.step(tokens[i], static_cast<int>(i));
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - logits[tokens[i + 1]]);
    loss += std::log(sum);
  }
  return loss / static_cast<double>(tokens.size() - 1);
}

// The beginning of a story of grammar.py that was not trained on; guesses would cost log 2048 = 7.6 a token.
TEST(QuantizedStory, IsStillKnown) {
  const Tokenizer tokenizer = Tokenizer::open(shipped_folder("tiny-stories"));
  const std::vector<int32_t> tokens = with_prefix(tokenizer,
                                                  "There once was a little camel named Otto who lived in the "
                                                  "valley. One night, he heard a strange sound. "
                                                  "Creak, creak, creak! Otto wanted to sleep. He closed the "
                                                  "door tight, but the sound came back. So he ran "
                                                  "to Oscar, a quiet monkey who lived next door.");
  const double before = mean_loss("tiny-stories", tokens);
  const double after = mean_loss("tiny-stories-gptq", tokens);
  EXPECT_LT(before, 1.0) << "is it a story of the grammar?";
  EXPECT_NE(after, before) << "are these the integers?";
  EXPECT_LT(after, before + 0.05);
}

}  // namespace
}  // namespace soliton
