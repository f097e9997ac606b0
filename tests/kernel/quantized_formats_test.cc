// Checkpoints of every format of integers, as numpy writes them: they load into the emulated kernels, and decode like
// the scalar reference of the weights that the writer meant. Skipped where no Python with numpy is found.
#include <sys/wait.h>

#include <cstdlib>

#include "kernel/kernel_cases.h"
#include "kernel/kernel_fixture.h"
#include "layout/fact_list.h"
#include "models/matrix_roles.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// Formats of tests/quantization/make_models.py, and a kernel that takes them.
struct Formats {
  const char* kernel;
  std::vector<std::string> names;
};

void PrintTo(const Formats& formats, std::ostream* out) {
  *out << formats.kernel;
}

class QuantizedFormats : public testing::TestWithParam<Formats> {
 protected:
  void SetUp() override { skip_unless_built(GetParam().kernel); }
};

INSTANTIATE_TEST_SUITE_P(
    Kernels, QuantizedFormats,
    testing::Values(
        Formats{"int4-3",
                {"gptq-v1-64", "gptq-v2-64", "gptq-v1-64-no-g-idx", "gptq-v2-64-zero-g-idx",
                 "gptq-v1-64-second-file", "awq-64", "c-t-64", "c-t-64-bf16-scales"}},
        Formats{"int4-zeros-4",
                {"gptq-v1-zeros-32-lm-head", "gptq-v2-zeros-32-lm-head", "c-t-zeros-32-lm-head"}},
        Formats{"int4-mixed-3", {"gptq-v1-zeros-128", "gptq-v2-zeros-128", "awq-zeros-128", "c-t-zeros-128"}},
        Formats{"int4-ordered-3-all",
                {"gptq-v1-zeros-32-act-order+lm-head", "gptq-v2-zeros-32-act-order+lm-head"}},
        Formats{"int8-3-all",
                {"gptq-v1-bytes-32-lm-head", "gptq-v2-bytes-32-lm-head", "c-t-bytes-32-lm-head"}},
        Formats{"fp8-4-all", {"fp8-blocks", "fp8-channel", "fp8-tensor"}},
        Formats{"int4-int8-3", {"gptq-v1-64-dynamic-eight", "gptq-v2-64-dynamic-eight+second-file"}},
        Formats{"int4-floats-3-all", {"gptq-v2-64-dynamic-skip"}},
        Formats{"plain-4-split", {"nf4", "nf4-single"}},
        Formats{"mixture-nvfp4-3-all", {"nvfp4-c-t", "nvfp4-modelopt"}},
        Formats{"nvfp4-3-all", {"nvfp4-c-t", "nvfp4-modelopt"}}, Formats{"nvfp4-2-to-128", {"nvfp4-c-t"}},
        Formats{"nvfp4-3-lanes", {"nvfp4-c-t"}}, Formats{"nvfp4-4-rows512", {"nvfp4-c-t"}},
        Formats{"int4-wide-3", {"gptq-v1-one", "gptq-v2-one", "awq-one", "c-t-one"}}),
    [](const testing::TestParamInfo<Formats>& info) {
      std::string name = info.param.kernel;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

int run(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Python with numpy; empty if there is none.
std::string find_python() {
  const char* const chosen = std::getenv("SOLITON_PYTHON");
  const std::string python = chosen == nullptr ? "python3" : chosen;
  return run("'" + python + "' -c 'import numpy' 2> /dev/null") == 0 ? python : "";
}

ModelFacts facts_of(const char* kernel) {
  return KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/" + kernel + ".so").model().facts;
}

/// The same model in bf16.
ModelFacts plain_facts(ModelFacts facts) {
  facts.weight_bits = facts.lm_head_bits = 16;
  facts.weight_e4m3 = facts.further_bits = facts.further_e2m1 = 0;
  return facts;
}

/// Writes folders of these formats beside the model's files.
int make_formats(const std::string& python, const TemporaryModel& base,
                 const std::vector<std::string>& names) {
  std::string command = "'" + python + "' -B '" SOLITON_SOURCE_DIR "/tests/quantization/make_models.py' '" +
                        base.path().string() + "' '" + (base.path() / "formats").string() + "'";
  for (const std::string& name : names) command += " " + name;
  return run(command);
}

TEST_P(QuantizedFormats, DecodeLikeTheirWeights) {
  const std::string python = find_python();
  if (python.empty()) GTEST_SKIP() << "no python3 with numpy; set SOLITON_PYTHON to one that has it";
  const ModelFacts facts = facts_of(GetParam().kernel);
  const ModelFacts plain = plain_facts(facts);
  const TemporaryModel base(random_weights(plain, kWeightSeed), plain);
  ASSERT_EQ(make_formats(python, base, GetParam().names), 0);

  for (const std::string& name : GetParam().names) {
    SCOPED_TRACE(name);
    const fs::path folder = base.path() / "formats" / name;
    EXPECT_EQ(hash_facts(HfConfig::open(folder).facts), hash_facts(facts));
    const TensorSource meant = TensorSource::open(folder.string() + ".meant");
    auto weights = std::make_shared<const ReferenceWeights>(load_weights(meant, facts));
    KernelUnderTest kernel(GetParam().kernel, folder, std::move(weights));
    kernel.expect_like_reference(kernel.prompt(2), 2);
    if (facts.further_bits == 0 || kernel.engine().max_rows() < 8) continue;
    // The same by each kernel of several rows, whose tokens one row then reads.
    const KernelLibrary& library = kernel.engine().library();
    for (int i = 0; i < library.num_kernels(); ++i) {
      const int rows = library.descriptor(i).plan->rows;
      if (rows == 1) continue;
      const int count = rows / 2 + 1;  // more than the next smaller kernel takes
      ASSERT_EQ(kernel.engine().kernel_for_prompt(count), i);
      const std::vector<int32_t> tokens = kernel.prompt(count + 1);
      kernel.engine().set_position(0);
      kernel.reference().reset();
      kernel.engine().feed(kernel.engine().main_branch(), std::span(tokens).first(count));
      for (int k = 0; k < count; ++k) kernel.reference().step(tokens[static_cast<size_t>(k)], k);
      kernel.expect_like_reference({tokens.back()}, 1);
    }
    if (kernel.engine().max_prompt_rows() < 256) continue;
    // Experts' rows side by side.
    kernel.engine().set_position(0);
    kernel.reference().reset();
    kernel.expect_like_reference(kernel.prompt(250), 1);
  }
}

// All layers, bit for bit: as compressed-tensors, modelopt and quark have them, and what left-out ones have.
class E2m1Formats : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { skip_unless_built(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Kernels, E2m1Formats, testing::Values("nvfp4-3-all", "mixture-nvfp4-3-all"),
                         [](const auto& info) { return info.param.substr(0, info.param.find('-')); });

TEST_P(E2m1Formats, AreReadAsTheirWritersCompute) {
  const std::string python = find_python();
  if (python.empty()) GTEST_SKIP() << "no python3 with numpy; set SOLITON_PYTHON to one that has it";
  const bool is_mixture = GetParam() == "mixture-nvfp4-3-all";
  const ModelFacts plain = plain_facts(facts_of(GetParam().c_str()));
  const TemporaryModel base(random_weights(plain, kWeightSeed), plain);
  std::vector<std::string> names = {"nvfp4-c-t", "nvfp4-modelopt", "mxfp4-c-t", "mxfp4-quark"};
  if (is_mixture) names.resize(2);
  ASSERT_EQ(make_formats(python, base, names), 0);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const fs::path folder = base.path() / "formats" / name;
    const HfConfig config = HfConfig::open(folder);
    EXPECT_EQ(config.facts.further_group, name.starts_with("nvfp4") ? 16 : 0);
    constexpr int32_t kAll = kQkvMatrix | kOMatrix | kGateUpMatrix | kDownMatrix;
    EXPECT_EQ(config.facts.layer_further[0], is_mixture ? kAll : kAll & ~kDownMatrix);
    EXPECT_EQ(config.facts.layer_further[1], kAll & ~kOMatrix);
    const TensorSource source = TensorSource::open(folder);
    const TensorSource meant = TensorSource::open(folder.string() + ".meant");
    const ModelTensors tensors =
        find_tensors(source, config.quantization_or_null(), config.facts, config.checkpoint);
    int num_layers = 0;
    for (const auto& layers : tensors.matrices) {
      for (const auto& [layer, parts] : layers) {
        for (const LinearTensors& part : parts) {
          if (part.floats.e2m1() == E2m1Kind::kNone) continue;
          const std::string stored(part.floats.tensor()->name);
          const Tensor* const expected = meant.find(stored.substr(0, stored.rfind('.')) + ".weight");
          std::vector<float> values(static_cast<size_t>(part.rows * part.columns));
          for (int64_t row = 0; row < part.rows; ++row)
            part.floats.read_floats(row, 0, part.columns, values.data() + row * part.columns);
          ASSERT_EQ(values.size() * sizeof(float), expected->data.size()) << stored;
          EXPECT_EQ(std::memcmp(values.data(), expected->data.data(), expected->data.size()), 0) << stored;
          ++num_layers;
        }
      }
    }
    // Of 14: q, k, v, o, gate, up, down; of the mixture all but one o, six of each of the last three.
    EXPECT_EQ(num_layers, is_mixture ? 2 * (4 + 6 * 3) - 1 : 12);
  }
}

}  // namespace
}  // namespace soliton
