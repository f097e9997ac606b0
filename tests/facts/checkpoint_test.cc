// Where families have their tensors, as data: what they call otherwise than most, and rows that stand in another order.
#include "models/checkpoint.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "models/hf_config.h"
#include "models/strict_json.h"

namespace soliton {
namespace {

using testing::ElementsAre;

Checkpoint checkpoint_of(const std::string& name) {
  const std::string file = std::string(SOLITON_SOURCE_DIR) + "/tests/configs/" + name + ".json";
  return HfConfig::read(read_json(file), file, {}).checkpoint;
}

TEST(StoredRow, HasPairsSideBySideWhereTheyAreRotated) {
  for (const int64_t row : {0, 5, 70}) EXPECT_EQ(stored_row(row, 0), row);
  EXPECT_EQ(stored_row(64 + 1, 64), 64 + 2);
  EXPECT_EQ(stored_row(64 + 33, 64), 64 + 3);
  // Of heads of 64 the first 16: 0 and 8 are neighbours, the others stay.
  EXPECT_EQ(stored_row(64 + 0, 64, 16), 64 + 0);
  EXPECT_EQ(stored_row(64 + 8, 64, 16), 64 + 1);
  EXPECT_EQ(stored_row(64 + 7, 64, 16), 64 + 14);
  EXPECT_EQ(stored_row(64 + 15, 64, 16), 64 + 15);
  for (const int64_t row : {16, 40, 63}) EXPECT_EQ(stored_row(64 + row, 64, 16), 64 + row);
  std::set<int64_t> rows;
  for (int64_t row = 0; row < 128; ++row) rows.insert(stored_row(row, 64, 16));
  EXPECT_EQ(rows.size(), 128u);
}

TEST(Checkpoint, OfGlm4HasPairsAndNamesOfItsOwn) {
  const Checkpoint checkpoint = checkpoint_of("glm-4-9b");
  EXPECT_THAT(checkpoint.norms[0], ElementsAre("input_layernorm", "post_self_attn_layernorm",
                                               "post_attention_layernorm", "post_mlp_layernorm"));
  const std::vector<LinearRows>& qkv = checkpoint.stacks[0].parts;
  ASSERT_EQ(qkv.size(), 3u);
  for (const size_t i : {0, 1, 2}) {
    EXPECT_EQ(qkv[i].paired_rows, i < 2 ? 128 : 0) << i;
    EXPECT_EQ(qkv[i].paired_dims, i < 2 ? 64 : 0) << i;
  }
  const std::vector<LinearRows>& gate_up = checkpoint.stacks[2].parts;
  ASSERT_EQ(gate_up.size(), 2u);
  EXPECT_EQ(gate_up[0].name, "mlp.gate_up_proj");
  EXPECT_EQ(gate_up[1].name, "mlp.gate_up_proj");
  EXPECT_EQ(gate_up[1].first, 13696);
}

TEST(Checkpoint, OfGranite4HasGateAndUpInOneTensor) {
  const Checkpoint checkpoint = checkpoint_of("granite-4.0-1b");
  EXPECT_THAT(checkpoint.norms[0], ElementsAre("input_layernorm", "post_attention_layernorm"));
  EXPECT_EQ(checkpoint.stacks[0].parts[0].name, "self_attn.q_proj");
  const std::vector<LinearRows>& gate_up = checkpoint.stacks[2].parts;
  ASSERT_EQ(gate_up.size(), 2u);
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(gate_up[i].name, "shared_mlp.input_linear");
    EXPECT_EQ(gate_up[i].first, i * 4096);
    EXPECT_EQ(gate_up[i].tensor_rows, 8192);
  }
  EXPECT_EQ(checkpoint.stacks[3].parts[0].name, "shared_mlp.output_linear");
}

TEST(Checkpoint, OfModelsWithPicturesHasAPrefix) {
  const Checkpoint text = checkpoint_of("gemma-3-1b");
  EXPECT_EQ(text.embedding, "model.embed_tokens");
  EXPECT_EQ(text.in_layer(3, "mlp.up_proj"), "model.layers.3.mlp.up_proj");
  const Checkpoint checkpoint = checkpoint_of("gemma-3-4b");
  EXPECT_EQ(checkpoint.embedding, "language_model.model.embed_tokens");
  EXPECT_EQ(checkpoint.in_layer(3, "mlp.up_proj"), "language_model.model.layers.3.mlp.up_proj");
  EXPECT_THAT(checkpoint.norms.back(), ElementsAre("language_model.model.norm"));
  EXPECT_EQ(checkpoint.stacks.back().parts[0].name, "language_model.model.embed_tokens");
  EXPECT_THAT(checkpoint.norms[0], ElementsAre("input_layernorm", "post_attention_layernorm",
                                               "pre_feedforward_layernorm", "post_feedforward_layernorm"));
  EXPECT_THAT(checkpoint_of("olmo-2-7b").norms[0],
              ElementsAre("post_attention_layernorm", "post_feedforward_layernorm"));
}

}  // namespace
}  // namespace soliton
