#include "generator/graph.h"

#include <fmt/format.h>

#include <algorithm>

namespace soliton {

namespace {

// Indices of vectors and matrices in a graph.
enum VectorIndex : int {
  kQkv = static_cast<int>(VectorId::kQkv),
  kHeads = static_cast<int>(VectorId::kHeads),
  kPostAttention = static_cast<int>(VectorId::kPostAttention),
  kFfn = static_cast<int>(VectorId::kFfn),
  kHidden = static_cast<int>(VectorId::kHidden),
  kCandidates = static_cast<int>(VectorId::kCandidates),
  kUnnormed = static_cast<int>(VectorId::kUnnormed),
};
enum MatrixIndex : int {
  kQkvMatrix = static_cast<int>(MatrixId::kQkv),
  kO = static_cast<int>(MatrixId::kO),
  kGateUp = static_cast<int>(MatrixId::kGateUp),
  kDown = static_cast<int>(MatrixId::kDown),
  kLmHead = static_cast<int>(MatrixId::kLmHead),
};

constexpr int kDefaultGroup = 128;  // of columns that all share one scale: it is repeated

}  // namespace

WeightFormat weight_format(const ModelFacts& facts, int bits) {
  const WeightType type = type_of_bits(bits);
  if (!traits_of(type).has_scales) return {.type = type};
  return {.type = type,
          .group = facts.weight_group > 0 ? facts.weight_group : kDefaultGroup,
          .has_zeros = facts.weight_zeros != 0};
}

Graph build_graph(const ModelFacts& facts) {
  const int heads = facts.num_heads * facts.head_dim;
  const int kv_heads = facts.num_kv_heads * facts.head_dim;
  Graph graph;
  graph.vectors = {{.name = "qkv", .elements = heads + 2 * kv_heads},
                   {.name = "heads", .elements = heads},
                   {.name = "post_attention", .elements = facts.hidden},
                   {.name = "ffn", .elements = facts.ffn},
                   {.name = "hidden", .elements = facts.hidden},
                   {.name = "candidates", .elements = 0}};  // one of each CTA: the plan knows how many
  graph.matrices = {
      {.name = "qkv", .rows = heads + 2 * kv_heads, .columns = facts.hidden, .row_order = RowOrder::kRotary},
      {.name = "o", .rows = facts.hidden, .columns = heads},
      {.name = "gate_up", .rows = 2 * facts.ffn, .columns = facts.hidden, .row_order = RowOrder::kGateUp},
      {.name = "down", .rows = facts.hidden, .columns = facts.ffn},
      {.name = "lm_head", .rows = facts.vocabulary, .columns = facts.hidden}};
  for (GraphMatrix& matrix : graph.matrices) matrix.format = weight_format(facts, facts.weight_bits);
  graph.matrices[kLmHead].format = weight_format(facts, facts.lm_head_bits);
  graph.layer_ops = {
      {.name = "qkv",
       .matrix = kQkvMatrix,
       .reads = kHidden,
       .writes = kQkv,
       .input = InputKind::kHidden,
       .output = OutputKind::kRotary,
       .first_norm = 0,
       .norm_stride = 2},
      {.name = "attention", .kind = PhaseKind::kAttention, .reads = kQkv, .writes = kHeads},
      {.name = "o",
       .matrix = kO,
       .reads = kHeads,
       .writes = kPostAttention,
       .output = OutputKind::kResidual,
       .appends = true},
      {.name = "gate_up",
       .matrix = kGateUp,
       .reads = kPostAttention,
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
                      .writes = kCandidates,
                      .input = InputKind::kNormed,
                      .output = OutputKind::kLogits,
                      .first_norm = 2 * facts.num_layers}};
  return graph;
}

Graph build_rows_graph(const ModelFacts& facts) {
  Graph graph = build_graph(facts);
  graph.vectors.push_back({.name = "squares", .elements = 0});  // sums of squares of each CTA's columns
  for (GraphOp& op : graph.layer_ops) {
    if (op.input == InputKind::kHidden) op.input = InputKind::kNormed;
    op.first_norm = -1;
    op.norm_stride = 0;
    if (op.output != OutputKind::kResidual || op.kind != PhaseKind::kMatrix) continue;
    op.first_norm = op.writes == kPostAttention ? 1 : 2;  // of the phase that reads it
    op.norm_stride = 2;
  }
  graph.final_ops[0].first_norm = -1;
  const auto attention = std::find_if(graph.layer_ops.begin(), graph.layer_ops.end(),
                                      [](const GraphOp& op) { return op.kind == PhaseKind::kAttention; });
  if (facts.head_norm == 0) return graph;
  // A head's tiles lie with several CTAs. v goes to the vector of attention at once.
  graph.vectors.push_back(
      {.name = "unnormed", .elements = (facts.num_heads + facts.num_kv_heads) * facts.head_dim});
  graph.layer_ops.front().writes = kUnnormed;
  graph.layer_ops.insert(
      attention, {.name = "norm_heads", .kind = PhaseKind::kNormHeads, .reads = kUnnormed, .writes = kQkv});
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
