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
    const std::vector<float> table = make_rotary_table(facts, positions.back() + 1, facts.max_context);
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

ModelFacts stretched_facts() {
  const json factors = std::vector<double>(32, 2.0);
  return facts_with({{"max_position_embeddings", 4096},
                     {"rope_scaling",
                      {{"rope_type", "longrope"},
                       {"short_factor", std::vector<double>(32, 1.0)},
                       {"long_factor", factors},
                       {"attention_factor", 1.0},
                       {"original_max_position_embeddings", 1000}}}});
}

// A context that is not longer than the original one is not stretched, however long the model's may be.
TEST(Rotary, LongropeTurnsByTheContextThatThereIs) {
  const ModelFacts facts = stretched_facts();
  ModelFacts plain = facts;
  plain.rope_kind = RopeKind::kDefault;
  EXPECT_EQ(make_rotary_table(facts, 64, 1000), make_rotary_table(plain, 64, 1000));
  const std::vector<float> stretched = make_rotary_table(facts, 64, 1001);
  const std::vector<float> table = make_rotary_table(plain, 64, 1001);
  const auto at = [&](const std::vector<float>& values, int position) {
    return std::vector(values.begin() + position * 64, values.begin() + (position + 1) * 64);
  };
  EXPECT_EQ(at(stretched, 62), at(table, 31));
}

// Queries have a table of their own, which keys' positions do not scale.
TEST(Rotary, QueriesAreScaledBeyondTheirContext) {
  ModelFacts facts = stretched_facts();
  facts.rope_kind = RopeKind::kDefault;
  facts.rope_dims = 48;
  const std::vector<float> plain = make_rotary_table(facts, 20, 20);
  facts.query_scale_beta = 0.5;
  facts.query_scale_context = 8;
  const std::vector<float> scaled = make_rotary_table(facts, 20, 20);
  ASSERT_EQ(scaled.size(), 2 * plain.size());
  for (int position = 0; position < 20; ++position) {
    const float scale = 1.0f + 0.5f * std::log(1.0f + std::floor(static_cast<float>(position) / 8.0f));
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(scaled[position * 128 + i], plain[position * 64 + i]);
      EXPECT_FLOAT_EQ(scaled[position * 128 + 64 + i], scale * plain[position * 64 + i]);
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
  // The factor that is not stated is the one that is stated elsewhere; so is the context, of another head_dim. Dynamic scaling
  // is none up to its context.
  EXPECT_GE(sines.size() + 3, goldens.at("cases").size());
}

}  // namespace
}  // namespace soliton
