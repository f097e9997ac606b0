// The table of cards in the README: all of them, as their specs have them, with the times that the planner predicts, and
// what has run of what is only planned and compiled.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "documents/document.h"
#include "generator/generate.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

const fs::path kTree = SOLITON_SOURCE_DIR;
constexpr int kContext = 128;  // tokens, as in the table of measurements

Table table_of_cards() {
  for (const Table& table : read_document(kTree, "README.md").tables) {
    if (table.column("predicted tokens/s")) return table;
  }
  throw std::runtime_error("README.md: expected a table of cards, got none");
}

/// The cards that there are measurements of.
std::set<std::string> measured_cards() {
  std::set<std::string> cards;
  for (const auto& entry : fs::directory_iterator(kTree / "runtime" / "bench" / "results")) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    const auto json = nlohmann::json::parse(file);
    if (json.contains("kernel_gpu")) cards.insert(json.at("kernel_gpu").get<std::string>());
  }
  return cards;
}

std::string predicted_tokens_per_s(const GpuSpec& gpu) {
  const ModelConfig model = load_model_config(kTree / "models" / "llama-3.1-8b-gptq.yaml");
  return fmt::format("{:.0f}", 1e6 / predicted_token_us(generate(model, gpu, {}).plan, kContext));
}

TEST(Cards, StandInTheReadmeAsTheirSpecsHaveThem) {
  const Table table = table_of_cards();
  const std::set<std::string> measured = measured_cards();
  std::set<std::string> listed;
  for (const auto& row : table.rows) {
    const auto cell = [&](const char* column) { return row.at(table.column(column).value()); };
    const std::string quoted = cell("`--gpu`");
    const std::string name = quoted.substr(1, quoted.size() - 2);
    SCOPED_TRACE(name);
    ASSERT_TRUE(listed.insert(name).second) << "twice";
    const GpuSpec gpu = load_gpu_spec(find_gpu_spec(name, default_gpus_dir()));
    EXPECT_EQ(cell("architecture"), fmt::format("sm_{}", gpu.compute_capability));
    EXPECT_EQ(cell("SMs"), fmt::format("{}", gpu.num_sms));
    EXPECT_EQ(cell("state"), measured.contains(name) ? "run here" : "generated and compiled only");
    EXPECT_EQ(cell("predicted tokens/s"), predicted_tokens_per_s(gpu));
  }
  listed.insert("cpu");
  const std::vector<std::string> shipped = list_gpus(default_gpus_dir());
  EXPECT_EQ(listed, std::set<std::string>(shipped.begin(), shipped.end()));
}

}  // namespace
}  // namespace soliton
