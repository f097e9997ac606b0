#include "models/model_tables.h"

#include "layout/model_shape.h"
#include "layout/order.h"
#include "models/graph.h"

namespace soliton {
namespace {

constexpr int64_t kBf16Bytes = 2;

}  // namespace

int64_t ModelTables::embedding_bytes() const {
  return kBf16Bytes * embedding;
}

int64_t ModelTables::bytes() const {
  return embedding_bytes() + kBf16Bytes * (norms + head_norms) +
         (qkv_biases + router_biases + layer_biases) * static_cast<int64_t>(sizeof(float)) +
         positions * static_cast<int64_t>(sizeof(int32_t));
}

ModelTables model_tables(const ModelFacts& facts) {
  const int64_t layers = facts.num_layers;
  const Graph graph = build_graph(facts);
  const int64_t num_norms = graph.num_norms();
  ModelTables tables;
  tables.embedding = int64_t{facts.vocabulary} * facts.hidden;
  tables.norms = num_norms * facts.hidden;
  tables.head_norms = layers * head_norm_weights(facts);
  graph.for_each_op([&](const GraphOp& op, int /*layer*/) {
    if (op.matrix == kNone || op.output != OutputKind::kRotary) return;
    const GraphMatrix& matrix = graph.matrices[op.matrix];
    if (matrix.has_bias || adds_qkv_biases(facts)) tables.qkv_biases += matrix.rows;
  });
  tables.layer_biases = layers * layer_biases(facts).words() + logit_biases(facts);
  tables.router_biases = layers * router_bias_words(facts);
  if (facts.weight_order != 0) {
    tables.positions =
        OrderTables{num_norms, facts.hidden, facts.num_heads * facts.head_dim}.of_attention(layers);
  }
  return tables;
}

int64_t router_bias_words(const ModelFacts& facts) {
  return facts.router_bias != 0 ? route_words(router_rows(facts)) : 0;
}

int64_t rotary_token_bytes(const ModelFacts& facts) {
  return int64_t{rope_tables(facts)} * facts.head_dim * static_cast<int64_t>(sizeof(float));
}

int64_t context_token_bytes(const ModelFacts& facts) {
  const KvShape kv = kv_shape(facts);
  return kv.of_layers(kv.num_layers - num_window_layers(facts)).token_bytes() + rotary_token_bytes(facts);
}

}  // namespace soliton
