// Kernels in emulation, verified as on a user's machine: with what is in the folder, and with faults between the
// folder and the device.
#include "runtime/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>

#include "reference_model.h"
#include "runtime/error.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSeed = 7;
constexpr int kContext = 64;
constexpr const char* kFile = "model.safetensors";

std::string test_kernel(const std::string& name) {
  return std::string(SOLITON_TEST_KERNELS) + "/" + name + ".so";
}

/// A folder of random weights for a kernel, and an engine with the kernel.
class Verified {
 public:
  explicit Verified(const std::string& kernel) : engine_(KernelLibrary::open(kernel), {.context = kContext}) {
    const ModelFacts& facts = engine_.library().descriptor().facts;
    write_hf_folder(random_weights(facts, kSeed), facts, intact());
    config_ = HfConfig::open(intact());
    source_ = std::make_unique<TensorSource>(TensorSource::open(intact()));
  }

  const TensorSource& source() const { return *source_; }
  const HfConfig& config() const { return config_; }

  /// The kernel with the weights of a folder against the intact folder.
  Verdict verify_with(const fs::path& folder) {
    engine_.load(TensorSource::open(folder), nullptr, config_.quantization_or_null());
    return verify(engine_, HostModel(*source_, config_), verification_prompt(config_));
  }
  Verdict verify_intact() { return verify_with(intact()); }

  /// The kernel with weights of which one tensor has become zero.
  Verdict verify_without(const std::string& name) {
    const Tensor& tensor = *source_->find(name);
    fs::create_directories(damaged());
    fs::copy(intact() / kFile, damaged() / kFile, fs::copy_options::overwrite_existing);
    std::fstream file(damaged() / kFile, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(tensor.data.data() - begin_of_data() + data_offset()));
    const std::string zeros(tensor.data.size(), '\0');
    file.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
    file.close();
    return verify_with(damaged());
  }

 private:
  fs::path intact() const { return folder_.path() / "intact"; }
  fs::path damaged() const { return folder_.path() / "damaged"; }

  /// The tensor that comes first in the file.
  const std::byte* begin_of_data() const {
    const std::byte* begin = nullptr;
    for (const std::string_view name : source_->names()) {
      const std::byte* data = source_->find(name)->data.data();
      if (begin == nullptr || data < begin) begin = data;
    }
    return begin;
  }
  /// Tensors fill the file from behind its header to its end.
  int64_t data_offset() const {
    return static_cast<int64_t>(fs::file_size(intact() / kFile)) -
           static_cast<int64_t>(source_->total_bytes());
  }

  const TemporaryFolder folder_;
  Engine engine_;
  HfConfig config_;
  std::unique_ptr<TensorSource> source_;
};

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class Verify : public testing::TestWithParam<const char*> {};
class VerifyFaults : public testing::TestWithParam<const char*> {};  // of each tensor: some take a while

INSTANTIATE_TEST_SUITE_P(Kernels, Verify,
                         testing::Values("micro-3", "int4-3", "int4-zeros-4", "int4-ordered-3",
                                         "int4-bias-3-all", "norm128-4-all"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Kernels, VerifyFaults,
                         testing::Values("micro-3", "int4-3", "int4-zeros-4", "int4-bias-3-all",
                                         "norm128-4-all"),
                         test_name);

TEST_P(Verify, AgreesWithWhatIsInTheFolder) {
  Verified model(test_kernel(GetParam()));
  const Verdict verdict = model.verify_intact();
  EXPECT_TRUE(verdict.agrees) << verdict.line;
  EXPECT_TRUE(verdict.line.starts_with("verified: " + test_kernel(GetParam()) + ": 8 tokens"))
      << verdict.line;
  EXPECT_EQ(verdict.line.find('\n'), std::string::npos);
}

TEST_P(VerifyFaults, FindsEveryTensorThatBecameZero) {
  Verified model(test_kernel(GetParam()));
  int num_refused = 0;
  for (const std::string_view name : model.source().names()) {
    if (name.ends_with(".g_idx")) continue;  // read and checked, but has no part in the answer
    SCOPED_TRACE(name);
    try {
      const Verdict verdict = model.verify_without(std::string(name));
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
  EXPECT_EQ(num_refused, has_only_eights ? 7 * facts.num_layers : 0);
}

// With kernels of several rows, and weights that somebody trained.
TEST(VerifyTiny, FeedsByAllKernelsOfALibrary) {
  for (const std::string name : {"tiny-stories", "tiny-stories-gptq"}) {
    const fs::path folder = fs::path(SOLITON_SOURCE_DIR) / "models" / name;
    Engine engine(KernelLibrary::open(std::string(SOLITON_KERNELS) + "/" + name + "-cpu.so"),
                  {.context = kContext});
    ASSERT_GT(engine.max_rows(), 1);
    const HfConfig config = HfConfig::open(folder);
    const TensorSource source = TensorSource::open(folder);
    engine.load(source, nullptr, config.quantization_or_null());
    const Verdict verdict = verify(engine, HostModel(source, config), verification_prompt(config));
    EXPECT_TRUE(verdict.agrees) << verdict.line;
  }
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
  const ModelFacts facts = KernelLibrary::open(test_kernel(GetParam())).descriptor().facts;
  const ReferenceWeights weights = random_weights(facts, kSeed);
  const TemporaryFolder folder;
  write_hf_folder(weights, facts, folder.path());
  const HfConfig config = HfConfig::open(folder.path());
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
