// Checkpoints of every format of integers, as numpy writes them: they load into the emulated kernels, and decode like
// the scalar reference of the weights that the writer meant. Skipped where no Python with numpy is found.
#include <sys/wait.h>

#include <cstdlib>

#include "kernel/kernel_fixture.h"

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

class QuantizedFormats : public testing::TestWithParam<Formats> {};

INSTANTIATE_TEST_SUITE_P(
    Kernels, QuantizedFormats,
    testing::Values(Formats{"int4-3",
                            {"gptq-v1-64", "gptq-v2-64", "gptq-v1-64-no-g-idx", "gptq-v2-64-zero-g-idx",
                             "gptq-v1-64-second-file", "awq-64", "c-t-64", "c-t-64-bf16-scales"}},
                    Formats{"int4-zeros-4",
                            {"gptq-v1-zeros-32-lm-head", "gptq-v2-zeros-32-lm-head", "c-t-zeros-32-lm-head"}},
                    Formats{"int4-mixed-3",
                            {"gptq-v1-zeros-128", "gptq-v2-zeros-128", "awq-zeros-128", "c-t-zeros-128"}},
                    Formats{"int4-ordered-3-all",
                            {"gptq-v1-zeros-32-act-order+lm-head", "gptq-v2-zeros-32-act-order+lm-head"}},
                    Formats{"int8-3-all",
                            {"gptq-v1-bytes-32-lm-head", "gptq-v2-bytes-32-lm-head", "c-t-bytes-32-lm-head"}},
                    Formats{"fp8-4-all", {"fp8-blocks", "fp8-channel", "fp8-tensor"}},
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

TEST_P(QuantizedFormats, DecodeLikeTheirWeights) {
  const std::string python = find_python();
  if (python.empty()) GTEST_SKIP() << "no python3 with numpy; set SOLITON_PYTHON to one that has it";
  const ModelFacts facts = facts_of(GetParam().kernel);
  ModelFacts plain = facts;
  plain.weight_bits = plain.lm_head_bits = 16;
  plain.weight_e4m3 = 0;
  const TemporaryModel base(random_weights(plain, kWeightSeed), plain);
  std::string command = "'" + python + "' -B '" SOLITON_SOURCE_DIR "/tests/quantization/make_models.py' '" +
                        base.path().string() + "' '" + (base.path() / "formats").string() + "'";
  for (const std::string& name : GetParam().names) command += " " + name;
  ASSERT_EQ(run(command), 0);

  for (const std::string& name : GetParam().names) {
    SCOPED_TRACE(name);
    const fs::path folder = base.path() / "formats" / name;
    EXPECT_EQ(hash_facts(HfConfig::open(folder).facts), hash_facts(facts));
    const TensorSource meant = TensorSource::open(folder.string() + ".meant");
    auto weights = std::make_shared<const ReferenceWeights>(load_weights(meant, facts));
    KernelUnderTest kernel(GetParam().kernel, folder, std::move(weights));
    kernel.expect_like_reference(kernel.prompt(2), 2);
  }
}

}  // namespace
}  // namespace soliton
