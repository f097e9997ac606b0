#include "generator/graph.h"

#include <fmt/format.h>

namespace soliton {

Graph build_graph(const ModelFacts& facts) {
  const int heads = facts.num_heads * facts.head_dim;
  const int kv_heads = facts.num_kv_heads * facts.head_dim;
  enum VectorIndex { kQkv, kHeads, kMiddle, kFfn, kHidden, kOffers };
  enum MatrixIndex { kQkvMatrix, kO, kGateUp, kDown, kLmHead };

  Graph graph;
  graph.vectors = {{.name = "qkv", .elements = heads + 2 * kv_heads},
                   {.name = "heads", .elements = heads},
                   {.name = "middle", .elements = facts.hidden},
                   {.name = "ffn", .elements = facts.ffn},
                   {.name = "hidden", .elements = facts.hidden},
                   {.name = "offers", .elements = 0}};  // one of each CTA: the plan knows how many
  graph.matrices = {
      {.name = "qkv", .rows = heads + 2 * kv_heads, .columns = facts.hidden, .row_order = RowOrder::kRotary},
      {.name = "o", .rows = facts.hidden, .columns = heads},
      {.name = "gate_up", .rows = 2 * facts.ffn, .columns = facts.hidden, .row_order = RowOrder::kGateUp},
      {.name = "down", .rows = facts.hidden, .columns = facts.ffn},
      {.name = "lm_head", .rows = facts.vocabulary, .columns = facts.hidden}};
  graph.layer_ops = {
      {.name = "qkv",
       .matrix = kQkvMatrix,
       .reads = kHidden,
       .writes = kQkv,
       .input = InputKind::kHidden,
       .output = OutputKind::kRotary,
       .first_norm = 0,
       .norm_stride = 2},
      {.name = "attention", .kind = OpKind::kAttention, .reads = kQkv, .writes = kHeads},
      {.name = "o", .matrix = kO, .reads = kHeads, .writes = kMiddle, .output = OutputKind::kResidual},
      {.name = "gate_up",
       .matrix = kGateUp,
       .reads = kMiddle,
       .writes = kFfn,
       .input = InputKind::kNormed,
       .output = OutputKind::kSwiglu,
       .first_norm = 1,
       .norm_stride = 2},
      {.name = "down", .matrix = kDown, .reads = kFfn, .writes = kHidden, .output = OutputKind::kResidual}};
  graph.final_ops = {{.name = "lm_head",
                      .per_layer = false,
                      .matrix = kLmHead,
                      .reads = kHidden,
                      .writes = kOffers,
                      .input = InputKind::kNormed,
                      .output = OutputKind::kGreedy,
                      .first_norm = 2 * facts.num_layers}};
  return graph;
}

std::string describe(const Graph& graph) {
  std::string text;
  const auto list = [&](const std::vector<GraphOp>& ops) {
    for (const GraphOp& op : ops) {
      text += fmt::format("{:<10} reads {:<7} writes {:<7}", op.name, graph.vectors[op.reads].name,
                          graph.vectors[op.writes].name);
      if (op.matrix >= 0) {
        text +=
            fmt::format(" matrix {} x {}", graph.matrices[op.matrix].rows, graph.matrices[op.matrix].columns);
      }
      text += '\n';
    }
  };
  text += "every layer:\n";
  list(graph.layer_ops);
  text += "then:\n";
  list(graph.final_ops);
  return text;
}

}  // namespace soliton
