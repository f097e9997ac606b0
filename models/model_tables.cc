#include "models/model_tables.h"

#include "layout/order.h"

namespace soliton {
namespace {

constexpr int64_t kBf16Bytes = 2;

}  // namespace

int64_t ModelTables::embedding_bytes() const {
  return kBf16Bytes * embedding;
}

int64_t ModelTables::bytes() const {
  return embedding_bytes() + kBf16Bytes * (norms + head_norms) +
         qkv_biases * static_cast<int64_t>(sizeof(float)) + positions * static_cast<int64_t>(sizeof(int32_t));
}

ModelTables model_tables(const ModelFacts& facts) {
  const int64_t layers = facts.num_layers;
  const int64_t qkv_rows = (facts.num_heads + 2 * int64_t{facts.num_kv_heads}) * facts.head_dim;
  ModelTables tables;
  tables.embedding = int64_t{facts.vocabulary} * facts.hidden;
  tables.norms = (2 * layers + 1) * facts.hidden;
  if (facts.head_norm != 0) tables.head_norms = 2 * layers * facts.head_dim;
  if (facts.qkv_bias != 0) tables.qkv_biases = layers * qkv_rows;
  if (facts.weight_order != 0) {  // behind the layers the lm_head has an input, and no heads
    tables.positions =
        order_offset(facts.hidden, facts.num_heads * facts.head_dim, facts.num_layers, OrderTable::kHeads);
  }
  return tables;
}

int64_t rotary_token_bytes(const ModelFacts& facts) {
  return facts.head_dim * static_cast<int64_t>(sizeof(float));
}

int64_t context_token_bytes(const ModelFacts& facts) {
  return kv_shape(facts).token_bytes() + rotary_token_bytes(facts);
}

}  // namespace soliton
