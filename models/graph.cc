#include "models/graph.h"

#include <algorithm>

namespace soliton {
namespace {

// Indices in a graph.
enum VectorIndex : int { kQkv, kHeads, kPostAttention, kFfn, kHidden, kCandidates };
enum MatrixIndex : int { kQkvMatrix, kO, kGateUp, kDown, kLmHead };
enum NormIndex : int { kAttentionNorm, kFfnNorm, kLastNorm };

constexpr int kDefaultGroup = 128;  // of columns that all share one scale: it is repeated

/// The matrix of the op that reads `vector`.
int reader(const std::vector<GraphOp>& ops, int vector) {
  const auto reads = [&](const GraphOp& op) { return op.kind == PhaseKind::kMatrix && op.reads == vector; };
  const auto found = std::find_if(ops.begin(), ops.end(), reads);
  return found == ops.end() ? kNone : found->matrix;
}

}  // namespace

int Graph::layer_norms() const {
  return static_cast<int>(
      std::count_if(norms.begin(), norms.end(), [](const GraphNorm& norm) { return norm.per_layer; }));
}

int Graph::num_norm_rows(int num_layers) const {
  return layer_norms() * num_layers + static_cast<int>(norms.size()) - layer_norms();
}

int Graph::norm_row(int norm, int layer, int num_layers) const {
  if (norms[norm].per_layer) return layer * layer_norms() + norm;
  return layer_norms() * (num_layers - 1) + norm;
}

int Graph::reader_in_layer(int vector) const {
  return reader(layer_ops, vector);
}

int Graph::reader_behind_layers(int vector) const {
  return reader(final_ops, vector);
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
  const int kv_heads = facts.num_kv_heads * facts.head_dim;
  const WeightFormat format = weight_format(facts, facts.weight_bits);
  return {.vectors = {{.name = "qkv", .elements = heads + 2 * kv_heads},
                      {.name = "heads", .elements = heads},
                      {.name = "post_attention", .elements = facts.hidden},
                      {.name = "ffn", .elements = facts.ffn},
                      {.name = "hidden", .elements = facts.hidden},
                      {.name = "candidates", .elements = 0}},  // one of each CTA: the plan knows how many
          .matrices = {{.name = "qkv",
                        .rows = heads + 2 * kv_heads,
                        .columns = facts.hidden,
                        .row_order = RowOrder::kRotary,
                        .format = format,
                        .has_bias = facts.qkv_bias != 0},
                       {.name = "o", .rows = facts.hidden, .columns = heads, .format = format},
                       {.name = "gate_up",
                        .rows = 2 * facts.ffn,
                        .columns = facts.hidden,
                        .row_order = RowOrder::kGateUp,
                        .format = format},
                       {.name = "down", .rows = facts.hidden, .columns = facts.ffn, .format = format},
                       {.name = "lm_head",
                        .rows = facts.vocabulary,
                        .columns = facts.hidden,
                        .format = weight_format(facts, facts.lm_head_bits),
                        .per_layer = false}},
          .norms = {{.name = "attention"}, {.name = "ffn"}, {.name = "last", .per_layer = false}},
          .layer_ops = {{.name = "qkv",
                         .matrix = kQkvMatrix,
                         .reads = kHidden,
                         .writes = kQkv,
                         .input = InputKind::kHidden,
                         .output = OutputKind::kRotary,
                         .norm = kAttentionNorm},
                        {.name = "attention", .kind = PhaseKind::kAttention, .reads = kQkv, .writes = kHeads},
                        {.name = "o",
                         .matrix = kO,
                         .reads = kHeads,
                         .writes = kPostAttention,
                         .output = OutputKind::kResidual,
                         .norm = kFfnNorm,
                         .appends = true},
                        {.name = "gate_up",
                         .matrix = kGateUp,
                         .reads = kPostAttention,
                         .writes = kFfn,
                         .input = InputKind::kNormed,
                         .output = OutputKind::kSwiglu,
                         .norm = kFfnNorm},
                        {.name = "down",
                         .matrix = kDown,
                         .reads = kFfn,
                         .writes = kHidden,
                         .output = OutputKind::kResidual,
                         .norm = kAttentionNorm,
                         .next_layers_norm = true}},
          .final_ops = {{.name = "lm_head",
                         .per_layer = false,
                         .matrix = kLmHead,
                         .reads = kHidden,
                         .writes = kCandidates,
                         .input = InputKind::kNormed,
                         .output = OutputKind::kLogits,
                         .norm = kLastNorm}}};
}

}  // namespace soliton
