// The rotary table, and the reference's frequencies, against what transformers computes for each kind of RoPE in
// config.json: see tests/goldens/make_ropes.py.
#include "runtime/engine/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "models/hf_config.h"
#include "tests/reference_model.h"
#include "tests/temporary_folder.h"

namespace soliton {
namespace {

using nlohmann::json;

json read_goldens() {
  return json::parse(std::ifstream(std::string(SOLITON_SOURCE_DIR) + "/tests/goldens/ropes.json"));
}

/// Facts of a small model whose config.json has these members.
ModelFacts facts_with(const json& members) {
  json config = {{"architectures", {"LlamaForCausalLM"}},
                 {"hidden_size", 64},
                 {"intermediate_size", 64},
                 {"num_hidden_layers", 1},
                 {"num_attention_heads", 1},
                 {"vocab_size", 8}};
  config.update(members);
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "config.json") << config.dump();
  return HfConfig::open(folder.path()).facts;
}

/// Of cosine and sine: floats, of an angle whose frequency may be off by an ulp or two. The frequency is at most
/// that of plain RoPE.
double tolerance(const ModelFacts& facts, int position, int pair) {
  const double angle = position * std::pow(facts.rope_theta, -2.0 * pair / facts.head_dim);
  return 0x1p-22 * (1 + angle);
}

TEST(Rotary, TableIsWhatTransformersComputes) {
  const json goldens = read_goldens();
  const auto positions = goldens.at("positions").get<std::vector<int>>();
  for (const json& golden : goldens.at("cases")) {
    SCOPED_TRACE(golden.at("name").get<std::string>());
    const ModelFacts facts = facts_with(golden.at("config"));
    const int half = facts.head_dim / 2;
    const std::vector<float> table = make_rotary_table(facts, positions.back() + 1);
    const std::vector<float> frequencies = rotary_frequencies(facts);
    ASSERT_EQ(table.size(), static_cast<size_t>(positions.back() + 1) * facts.head_dim);
    for (size_t i = 0; i < positions.size(); ++i) {
      for (int pair = 0; pair < half; ++pair) {
        const double cosine = golden.at("cosines")[i][pair];
        const double sine = golden.at("sines")[i][pair];
        const double bound = tolerance(facts, positions[i], pair);
        const float* entry = table.data() + (static_cast<size_t>(positions[i]) * half + pair) * 2;
        ASSERT_NEAR(entry[0], cosine, bound) << "position " << positions[i] << ", pair " << pair;
        ASSERT_NEAR(entry[1], sine, bound) << "position " << positions[i] << ", pair " << pair;
        std::vector<double> head(static_cast<size_t>(facts.head_dim));
        head[pair] = 1.0;
        rotate(head, positions[i], frequencies, static_cast<float>(facts.rope_attention_factor));
        ASSERT_NEAR(head[pair], cosine, bound) << "reference, position " << positions[i] << ", pair " << pair;
        ASSERT_NEAR(head[pair + half], sine, bound);
      }
    }
  }
}

// Every case is another table: none passes because another kind was computed.
TEST(Rotary, CasesDiffer) {
  const json goldens = read_goldens();
  std::set<std::string> sines;
  for (const json& golden : goldens.at("cases")) {
    sines.insert(golden.at("sines").dump() + golden.at("config").at("head_dim").dump());
  }
  // The factor that is not stated is the one that is stated elsewhere; so is the context, of another head_dim.
  EXPECT_GE(sines.size() + 2, goldens.at("cases").size());
}

}  // namespace
}  // namespace soliton
