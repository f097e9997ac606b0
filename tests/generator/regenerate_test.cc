// What stands in generated/ is what the generator makes today, byte for byte, and nothing is missing.
// To regenerate a folder: the command in the first line of its plan.h.
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

/// The cards that a folder's kernels are for: one library serves all of an architecture.
std::vector<std::string> cards_of(const std::string& target) {
  if (target == "sm90") return {"h200", "h100"};
  return {target};
}

TEST(Regenerate, EveryShippedModelIsPresent) {
  const std::set<std::string> present = names_in(kGenerated, true);
  for (const char* folder :
       {"tiny-stories-cpu", "tiny-stories-gptq-cpu", "tiny-stories-gptq-sm90", "tiny-stories-experts-cpu",
        "tiny-stories-experts-sm90", "llama-3.1-8b-gptq-sm90", "llama-3.1-8b-gptq-lm-head-sm90",
        "llama-3.1-70b-gptq-sm90", "qwen2.5-1.5b-sm90", "qwen3-0.6b-sm90"}) {
    EXPECT_TRUE(present.contains(folder)) << folder;
  }
  for (const char* model : kShippedModels) {
    EXPECT_TRUE(present.contains(fmt::format("{}-sm90", model))) << model;
  }
}

// All shipped cards are served.
TEST(Regenerate, OneLibraryServesEveryShippedCard) {
  const std::vector<std::string> served = cards_of("sm90");
  std::vector<GpuSpec> cards;
  for (const std::string& card : served) cards.push_back(shipped_gpu(card));
  EXPECT_EQ(name_of_target(cards), "sm90");
  for (const char* gpu : kShippedGpus) EXPECT_EQ(std::count(served.begin(), served.end(), gpu), 1) << gpu;
}

TEST(Regenerate, EveryFolderIsWhatTheGeneratorMakes) {
  for (const std::string& folder : names_in(kGenerated, true)) {
    const size_t dash = folder.rfind('-');
    ASSERT_NE(dash, std::string::npos) << folder << ": expected <model>-<target>";
    const std::string model = folder.substr(0, dash);
    const std::string target = folder.substr(dash + 1);
    std::vector<GpuSpec> cards;
    for (const std::string& card : cards_of(target)) cards.push_back(shipped_gpu(card));
    PlanChoices choices = shipped_choices(model, cards.front().name);
    const ModelConfig config = shipped_model(model);
    // As generated/CMakeLists.txt has it.
    choices.further_rows = {8, 16, 32, 64, 128, 256, 512, 1024};
    if (model.starts_with("tiny")) choices.further_rows = {8, 16, 32, 64, 128};
    if (model.starts_with("qwen")) choices.further_rows = {8, 64, 128, 256, 512, 1024};
    if (model == "tiny-stories-experts") choices.further_rows = {8, 16, 32, 64};
    if (model == "qwen3-30b-a3b") choices.further_rows = {8, 16, 32, 64, 256, 512, 1024};
    if (model == "qwen3-30b-a3b-gptq") choices.further_rows = {8, 16, 32, 256, 512, 1024};
    if (target == "cpu") choices.further_rows = {8};
    const Generated generated = generate(config, cards, choices);
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
