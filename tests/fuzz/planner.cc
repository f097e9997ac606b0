// A card's YAML and, below a line of %%, overrides: what is read survives being written, and a plan for it is sound or
// refused.
#include "fuzz/fuzz_target.h"
#include "generator/generate.h"
#include "generator/overrides.h"
#include "models/model_config.h"
#include "models/strict_yaml.h"

namespace soliton {
namespace {

constexpr std::string_view kSeparator = "%%\n";

/// Small, with all kinds of phases; 8 rows have a plan of their own.
const ModelConfig& model() {
  static const ModelConfig model =
      load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "tests/models/micro.yaml");
  return model;
}

GpuSpec read_gpu(const std::string& text) {
  const GpuSpec gpu = parse_gpu_spec(StrictYaml::parse(text, "gpu.yaml"));
  const std::string written = format_gpu_spec(gpu, "");
  const GpuSpec again = parse_gpu_spec(StrictYaml::parse(written, "gpu.yaml"));
  expect(format_gpu_spec(again, "") == written, "a card that survives being written");
  return gpu;
}

PlanChoices read_choices(const std::string& text) {
  const PlanChoices choices = parse_overrides(StrictYaml::parse(text, "tuned.yaml"));
  const std::string written = format_overrides(choices, "");
  if (!written.empty()) {
    const PlanChoices again = parse_overrides(StrictYaml::parse(written, "tuned.yaml"));
    expect(format_overrides(again, "") == written, "overrides that survive being written");
  }
  return choices;
}

void plan(const std::string& text) {
  const size_t end = text.find(kSeparator);
  const GpuSpec gpu = read_gpu(text.substr(0, end));
  PlanChoices choices;
  if (end != std::string::npos) choices = read_choices(text.substr(end + kSeparator.size()));
  for (const int rows : {1, 8}) {
    choices.rows = rows;
    accepts([&] {
      const Generated made = generate(model(), gpu, choices);
      expect(made.files.contains("plan.h") && made.files.contains("kernel.cu"), "a kernel of each plan");
    });
  }
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  accepts([&] { plan(std::string(as_text(data, size))); });
  return 0;
}
