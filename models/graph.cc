#include "models/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace soliton {
namespace {

enum VectorIndex : int { kQkv, kHeads, kPostAttention, kFfn, kHidden, kCandidates };
enum NormIndex : int { kAttentionNorm, kFfnNorm, kNextNorm };

constexpr int kDefaultGroup = 128;  // of columns that all share one scale: it is repeated

/// What tells names of kinds of layers apart: nothing of the first, "_1" of the second.
std::string named(const std::string& name, int kind) {
  return kind == 0 ? name : fmt::format("{}_{}", name, kind);
}

/// Layers whose feed-forward network has so many elements: a further kind.
void add_kind(const ModelFacts& facts, int ffn, Graph& graph) {
  const int heads = facts.num_heads * facts.head_dim;
  const int kv_heads = facts.num_kv_heads * facts.head_dim;
  const WeightFormat format = weight_format(facts, facts.weight_bits);
  const int kind = static_cast<int>(graph.kinds.size());
  const auto add_matrix = [&](GraphMatrix matrix) {
    matrix.name = named(matrix.name, kind);
    matrix.layer_kind = kind;
    matrix.format = format;
    graph.matrices.push_back(std::move(matrix));
    return static_cast<int>(graph.matrices.size()) - 1;
  };
  const int qkv = add_matrix({.name = "qkv",
                              .rows = heads + 2 * kv_heads,
                              .columns = facts.hidden,
                              .row_order = RowOrder::kRotary,
                              .has_bias = facts.qkv_bias != 0});
  const int o = add_matrix({.name = "o", .rows = facts.hidden, .columns = heads});
  const int gate_up = add_matrix(
      {.name = "gate_up", .rows = 2 * ffn, .columns = facts.hidden, .row_order = RowOrder::kGateUp});
  const int down = add_matrix({.name = "down", .rows = facts.hidden, .columns = ffn});
  // A vector of the kind's own: all of it is written whenever it is.
  const int gated = kind == 0 ? int{kFfn} : static_cast<int>(graph.vectors.size());
  if (kind > 0) graph.vectors.push_back({.name = named("ffn", kind)});
  graph.vectors[gated].elements = ffn;
  graph.kinds.push_back({.ops = {{.name = named("qkv", kind),
                                  .matrix = qkv,
                                  .reads = kHidden,
                                  .writes = kQkv,
                                  .input = InputKind::kHidden,
                                  .output = OutputKind::kRotary,
                                  .norm = kAttentionNorm},
                                 {.name = named("attention", kind),
                                  .kind = PhaseKind::kAttention,
                                  .reads = kQkv,
                                  .writes = kHeads},
                                 {.name = named("o", kind),
                                  .matrix = o,
                                  .reads = kHeads,
                                  .writes = kPostAttention,
                                  .output = OutputKind::kResidual,
                                  .norm = kFfnNorm,
                                  .appends = true},
                                 {.name = named("gate_up", kind),
                                  .matrix = gate_up,
                                  .reads = kPostAttention,
                                  .writes = gated,
                                  .input = InputKind::kNormed,
                                  .output = OutputKind::kSwiglu,
                                  .norm = kFfnNorm},
                                 {.name = named("down", kind),
                                  .matrix = down,
                                  .reads = gated,
                                  .writes = kHidden,
                                  .output = OutputKind::kResidual,
                                  .norm = kNextNorm}},
                         .num_norms = kNextNorm});
}

/// What stands once, behind the layers.
void add_head(const ModelFacts& facts, Graph& graph) {
  const int kind = static_cast<int>(graph.kinds.size());
  graph.matrices.push_back({.name = "lm_head",
                            .layer_kind = kind,
                            .rows = facts.vocabulary,
                            .columns = facts.hidden,
                            .format = weight_format(facts, facts.lm_head_bits)});
  graph.kinds.push_back({.ops = {{.name = "lm_head",
                                  .matrix = static_cast<int>(graph.matrices.size()) - 1,
                                  .reads = kHidden,
                                  .writes = kCandidates,
                                  .input = InputKind::kNormed,
                                  .output = OutputKind::kLogits,
                                  .norm = 0}},
                         .num_norms = 1});
  graph.layers.push_back(kind);
}

}  // namespace

int Graph::first_norm(size_t layer) const {
  return std::accumulate(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(layer), 0,
                         [&](int sum, int kind) { return sum + kinds[kind].num_norms; });
}

int Graph::reader(int layer, int vector) const {
  const std::vector<GraphOp>& ops = kind_of(layer).ops;
  const auto reads = [&](const GraphOp& op) { return op.kind == PhaseKind::kMatrix && op.reads == vector; };
  const auto found = std::find_if(ops.begin(), ops.end(), reads);
  return found == ops.end() ? kNone : found->matrix;
}

WeightFormat weight_format(const ModelFacts& facts, int bits) {
  const WeightType type = type_of_bits(bits);
  if (!traits_of(type).has_scales) return {.type = type};
  return {.type = type,
          .group = facts.weight_group > 0 ? facts.weight_group : kDefaultGroup,
          .has_zeros = facts.weight_zeros != 0};
}

Graph build_graph(const ModelFacts& facts) {
  const int heads = facts.num_heads * facts.head_dim;
  Graph graph;
  graph.vectors = {{.name = "qkv", .elements = heads + 2 * facts.num_kv_heads * facts.head_dim},
                   {.name = "heads", .elements = heads},
                   {.name = "post_attention", .elements = facts.hidden},
                   {.name = "ffn", .elements = 0},
                   {.name = "hidden", .elements = facts.hidden},
                   {.name = "candidates", .elements = 0}};  // one of each CTA: the plan knows how many
  std::vector<int> ffns;                                    // of each kind
  for (int layer = 0; layer < facts.num_layers; ++layer) {
    const int ffn = ffn_of_layer(facts, layer);
    const auto found = std::find(ffns.begin(), ffns.end(), ffn);
    graph.layers.push_back(static_cast<int>(found - ffns.begin()));
    if (found != ffns.end()) continue;
    ffns.push_back(ffn);
    add_kind(facts, ffn, graph);
  }
  add_head(facts, graph);
  return graph;
}

}  // namespace soliton
