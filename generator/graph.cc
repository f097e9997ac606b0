#include "generator/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace soliton {

namespace {

/// Before attention, which then reads what the new op writes.
void norm_heads_between(std::vector<GraphOp>& ops, int unnormed) {
  const auto attention = std::find_if(ops.begin(), ops.end(),
                                      [](const GraphOp& op) { return op.kind == PhaseKind::kAttention; });
  if (attention == ops.end()) return;
  const int heads = attention->reads;
  for (GraphOp& op : ops) {
    if (op.writes == heads) op.writes = unnormed;
  }
  const std::string name = "norm_heads" + attention->name.substr(std::string("attention").size());
  ops.insert(attention, {.name = name, .kind = PhaseKind::kNormHeads, .reads = unnormed, .writes = heads});
}

/// Behind every op that ends a block one that norms what this gives, and adds it to the residual stream.
void norm_blocks(std::vector<GraphOp>& ops, int block) {
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != PhaseKind::kMatrix || ops[i].output != OutputKind::kResidual) continue;
    const GraphOp norm = {.name = "norm_" + ops[i].name,
                          .kind = PhaseKind::kNormBlock,
                          .reads = block,
                          .writes = ops[i].writes,
                          .norm = ops[i].norm};
    ops[i].writes = block;
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(++i), norm);
  }
}

/// Behind down what experts put out is added up: what down writes becomes `outputs`.
GraphOp add_up_behind(GraphOp& down, int outputs) {
  const std::string name = "ungroup" + down.name.substr(std::string("down").size());
  const GraphOp ungroup = {
      .name = name, .kind = PhaseKind::kUngroup, .reads = outputs, .writes = down.writes};
  down.writes = outputs;
  return ungroup;
}

/// The vector of this name, which all kinds of layers share.
int shared_vector(std::vector<GraphVector>& vectors, const std::string& name) {
  const auto found = std::find_if(vectors.begin(), vectors.end(),
                                  [&](const GraphVector& vector) { return vector.name == name; });
  const auto number = static_cast<int>(found - vectors.begin());
  if (found == vectors.end()) vectors.push_back({.name = name, .elements = 0});
  return number;
}

void add_up_pairs(std::vector<GraphOp>& ops, std::vector<GraphVector>& vectors) {
  const auto gate_up =
      std::find_if(ops.begin(), ops.end(), [](const GraphOp& op) { return op.routes != kNone; });
  if (gate_up == ops.end()) return;
  const auto down = gate_up + 1;
  ops.insert(down + 1, add_up_behind(*down, shared_vector(vectors, "outputs")));
}

/// Behind the router rows choose and are grouped, and behind down what their experts put out is added up.
void group_rows(std::vector<GraphOp>& ops, std::vector<GraphVector>& vectors) {
  const auto gate_up =
      std::find_if(ops.begin(), ops.end(), [](const GraphOp& op) { return op.routes != kNone; });
  if (gate_up == ops.end()) return;
  const int outputs = shared_vector(vectors, "outputs");  // first: kernels that multiply pairs have it too
  const int choices = shared_vector(vectors, "choices");
  const int grouped = shared_vector(vectors, "grouped");
  const std::string suffix = gate_up->name.substr(std::string("gate_up").size());
  const auto down = gate_up + 1;
  const GraphOp ungroup = add_up_behind(*down, outputs);
  const GraphOp choose = {
      .name = "choose" + suffix, .kind = PhaseKind::kChoose, .reads = gate_up->routes, .writes = choices};
  const GraphOp group = {
      .name = "group" + suffix, .kind = PhaseKind::kGroup, .reads = choices, .writes = grouped};
  gate_up->reads = grouped;
  ops.insert(down + 1, ungroup);
  const auto at = std::find_if(ops.begin(), ops.end(), [](const GraphOp& op) { return op.routes != kNone; });
  ops.insert(at, {choose, group});
}

}  // namespace

Graph build_rows_graph(const ModelFacts& facts, ExpertRows experts) {
  Graph graph = build_graph(facts);
  graph.squares = static_cast<int>(graph.vectors.size());
  graph.vectors.push_back({.name = "squares", .elements = 0});  // the plan knows of how many CTAs
  for (LayerKind& kind : graph.kinds) {
    for (GraphOp& op : kind.ops) {
      if (op.input == InputKind::kHidden) op.input = InputKind::kNormed;
    }
  }
  if (holds_blocks(norm_placement(facts))) {
    graph.block = static_cast<int>(graph.vectors.size());
    graph.vectors.push_back({.name = "block", .elements = 0});  // as squares
    graph.block_squares = static_cast<int>(graph.vectors.size());
    graph.vectors.push_back({.name = "block_squares", .elements = 0});
    for (LayerKind& kind : graph.kinds) {
      norm_blocks(kind.ops, graph.block);
      for (const GraphOp& op : kind.ops) {  // sums of squares have a vector of their own
        if (op.kind == PhaseKind::kNormBlock) graph.vectors[op.writes].elements = facts.hidden;
      }
    }
  }
  if (facts.head_norm != 0) {
    // A head's tiles lie with several CTAs. v goes to the vector of attention at once.
    const int unnormed = static_cast<int>(graph.vectors.size());
    graph.vectors.push_back({.name = "unnormed", .elements = unnormed_words(facts)});
    for (LayerKind& kind : graph.kinds) norm_heads_between(kind.ops, unnormed);
  }
  for (LayerKind& kind : graph.kinds) {  // last: other kernels have all other vectors
    if (experts == ExpertRows::kGrouped) group_rows(kind.ops, graph.vectors);
    if (experts == ExpertRows::kPairs) add_up_pairs(kind.ops, graph.vectors);
  }
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
  const size_t num_kinds = graph.kinds.size() - 1;
  for (size_t kind = 0; kind < num_kinds; ++kind) {
    std::vector<int> layers;
    for (int layer = 0; layer < graph.num_layers(); ++layer) {
      if (graph.layers[layer] == static_cast<int>(kind)) layers.push_back(layer);
    }
    text += num_kinds == 1 ? "every layer:\n" : fmt::format("layers {}:\n", fmt::join(layers, ", "));
    list(graph.kinds[kind].ops);
  }
  text += "then:\n";
  list(graph.kinds[graph.once()].ops);
  return text;
}

}  // namespace soliton
