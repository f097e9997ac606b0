#include "generator/graph.h"

#include <fmt/format.h>

#include <algorithm>

namespace soliton {

Graph build_rows_graph(const ModelFacts& facts) {
  Graph graph = build_graph(facts);
  graph.squares = static_cast<int>(graph.vectors.size());
  graph.vectors.push_back({.name = "squares", .elements = 0});  // the plan knows of how many CTAs
  for (GraphOp& op : graph.layer_ops) {
    if (op.input == InputKind::kHidden) op.input = InputKind::kNormed;
  }
  if (facts.head_norm == 0) return graph;
  // A head's tiles lie with several CTAs. v goes to the vector of attention at once.
  const auto attention = std::find_if(graph.layer_ops.begin(), graph.layer_ops.end(),
                                      [](const GraphOp& op) { return op.kind == PhaseKind::kAttention; });
  const int heads = attention->reads;
  const int unnormed = static_cast<int>(graph.vectors.size());
  graph.vectors.push_back(
      {.name = "unnormed", .elements = (facts.num_heads + facts.num_kv_heads) * facts.head_dim});
  for (GraphOp& op : graph.layer_ops) {
    if (op.writes == heads) op.writes = unnormed;
  }
  graph.layer_ops.insert(
      attention, {.name = "norm_heads", .kind = PhaseKind::kNormHeads, .reads = unnormed, .writes = heads});
  return graph;
}

std::string describe(const Graph& graph) {
  std::string text;
  const auto list = [&](const std::vector<GraphOp>& ops) {
    for (const GraphOp& op : ops) {
      text += fmt::format("{:<10} reads {:<14} writes {:<14}", op.name, graph.vectors[op.reads].name,
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
