// What a device holds of a model beside its matrices, against what config.json and the files of real models say.
#include "models/model_tables.h"

#include <gtest/gtest.h>

#include "models/model_config.h"

namespace soliton {
namespace {

ModelFacts shipped_facts(const std::string& model) {
  return load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / (model + ".yaml")).facts;
}

TEST(ModelTables, EmbeddingAndNormsAreThereInEveryModel) {
  const ModelTables tables = model_tables(shipped_facts("llama-3.1-8b"));
  EXPECT_EQ(tables.embedding, int64_t{128256} * 4096);
  EXPECT_EQ(tables.norms, (2 * 32 + 1) * 4096);
  EXPECT_EQ(tables.head_norms, 0);
  EXPECT_EQ(tables.qkv_biases, 0);
  EXPECT_EQ(tables.positions, 0);
  EXPECT_EQ(tables.bytes(), 2 * (128256 + 65) * 4096);
}

TEST(ModelTables, BiasesAreFloats) {
  const ModelTables tables = model_tables(shipped_facts("qwen2.5-1.5b"));
  EXPECT_EQ(tables.qkv_biases, 28 * (1536 + 256 + 256));
  EXPECT_EQ(tables.bytes(), 2 * (151936 + 57) * 1536 + 4 * 28 * 2048);
}

TEST(ModelTables, HeadsOfQueriesAndKeysHaveTheirNorms) {
  const ModelTables tables = model_tables(shipped_facts("qwen3-0.6b"));
  EXPECT_EQ(tables.head_norms, 28 * (128 + 128));
  EXPECT_EQ(tables.bytes(), 2 * ((151936 + 57) * 1024 + 28 * 256));
}

// For the inputs of qkv, o and gate_up in each layer, and for that of the lm_head.
TEST(ModelTables, ColumnsInAnOrderOfTheirOwnHavePositions) {
  ModelFacts facts = shipped_facts("llama-3.1-8b-gptq");
  const int64_t without = model_tables(facts).bytes();
  facts.weight_order = 1;
  EXPECT_EQ(model_tables(facts).positions, (32 * 3 + 1) * 4096);
  EXPECT_EQ(model_tables(facts).bytes(), without + 4 * 97 * 4096);
}

// In each of 28 layers 8 keys and 8 values of 128 halves; and cosine and sine of 64 angles.
TEST(ModelTables, ATokenOfContextHasKeysValuesAndRotations) {
  const ModelFacts facts = shipped_facts("qwen3-0.6b");
  EXPECT_EQ(rotary_token_bytes(facts), 64 * 2 * 4);
  EXPECT_EQ(context_token_bytes(facts), 28 * 2 * 8 * 128 * 2 + 512);
}

}  // namespace
}  // namespace soliton
