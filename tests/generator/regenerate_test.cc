// What stands in generated/ is what the generator makes today, byte for byte, and nothing is missing.
// To regenerate a folder: soliton-gen models/<model>.yaml --gpu <gpu>
#include <gtest/gtest.h>

#include <set>

#include "error_of.h"
#include "generator/generate.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

const fs::path kGenerated = fs::path(SOLITON_SOURCE_DIR) / "generated";

/// Names of the folders, or of all else, that stand in a folder; none if there is no such folder.
std::set<std::string> names_in(const fs::path& folder, bool folders) {
  std::set<std::string> names;
  if (!fs::is_directory(folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() == folders) names.insert(entry.path().filename().string());
  }
  return names;
}

TEST(Regenerate, EveryShippedPairIsPresent) {
  const std::set<std::string> present = names_in(kGenerated, true);
  for (const char* folder : {"tiny-stories-cpu", "tiny-stories-gptq-cpu", "tiny-stories-gptq-h200",
                             "qwen2.5-1.5b-h200", "qwen3-0.6b-h200"}) {
    EXPECT_TRUE(present.contains(folder)) << folder;
  }
  for (const char* model : kShippedModels) {
    for (const char* gpu : kShippedGpus) {
      EXPECT_TRUE(present.contains(fmt::format("{}-{}", model, gpu))) << model << " for " << gpu;
    }
  }
}

TEST(Regenerate, EveryFolderIsWhatTheGeneratorMakes) {
  for (const std::string& folder : names_in(kGenerated, true)) {
    const size_t dash = folder.rfind('-');
    ASSERT_NE(dash, std::string::npos) << folder << ": expected <model>-<gpu>";
    const std::string model = folder.substr(0, dash);
    const std::string gpu = folder.substr(dash + 1);
    PlanChoices choices = shipped_choices(model, gpu);
    const ModelConfig config = shipped_model(model);
    // As generated/CMakeLists.txt has it.
    choices.further_rows = gpu == "cpu" ? std::vector<int>{8} : std::vector<int>{8, 16, 32, 64};
    const bool is_quantized = config.facts.weight_bits != 16;
    if (is_quantized) std::erase(choices.further_rows, 64);
    if (model.starts_with("qwen")) choices.further_rows = {8, 64};
    const Generated generated = generate(config, shipped_gpu(gpu), choices);
    std::set<std::string> expected;
    for (const auto& [name, text] : generated.files) {
      expected.insert(name);
      EXPECT_TRUE(read_file(kGenerated / folder / name) == text)
          << folder << "/" << name << " differs: regenerate and read the diff";
    }
    EXPECT_EQ(names_in(kGenerated / folder, false), expected) << folder;
  }
}

}  // namespace
}  // namespace soliton
