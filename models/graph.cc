#include "models/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "layout/model_shape.h"
#include "models/matrix_roles.h"

namespace soliton {
namespace {

enum VectorIndex : int { kQkv, kHeads, kPostAttention, kFfn, kHidden, kCandidates };
constexpr int kAttentionNorm = 0;

constexpr int kDefaultGroup = 128;  // of columns that all share one scale: it is repeated

/// What tells names of kinds of layers apart: nothing of the first, "_1" of the second.
std::string named(const std::string& name, int kind) {
  return kind == 0 ? name : fmt::format("{}_{}", name, kind);
}

/// Adds to a graph the matrices and ops of one kind of layers.
class KindBuilder {
 public:
  KindBuilder(const ModelFacts& facts, Graph& graph)
      : facts_(facts),
        graph_(graph),
        kind_(static_cast<int>(graph.kinds.size())),
        next_norm_(norms_of_layer(norm_placement(facts))),
        ffn_norm_(next_norm_ / 2) {}

  /// `ffn`: see ffn_of_layer(); `further`: see further_of_layer().
  void add(int ffn, int32_t further) {
    further_ = further;
    add_attention();
    if (ffn == kMixture) {
      add_mixture();
    } else {
      add_dense(ffn);
    }
    graph_.kinds.push_back({.ops = std::move(ops_), .num_norms = next_norm_});
  }

 private:
  WeightFormat format(MatrixRole role) const {
    return weight_format(facts_, (further_ & role) != 0 ? facts_.further_bits : facts_.weight_bits);
  }

  int add_matrix(GraphMatrix matrix) {
    matrix.name = named(matrix.name, kind_);
    matrix.layer_kind = kind_;
    graph_.matrices.push_back(std::move(matrix));
    return static_cast<int>(graph_.matrices.size()) - 1;
  }

  /// A vector of the kind's own: all of it is written whenever it is.
  int add_vector(const std::string& name, int elements) {
    graph_.vectors.push_back({.name = named(name, kind_), .elements = elements});
    return static_cast<int>(graph_.vectors.size()) - 1;
  }

  void add_op(GraphOp op) {
    op.name = named(op.name, kind_);
    ops_.push_back(std::move(op));
  }

  void add_attention() {
    const int heads = facts_.num_heads * facts_.head_dim;
    const int qkv = add_matrix({.name = "qkv",
                                .rows = heads + 2 * facts_.num_kv_heads * facts_.head_dim,
                                .columns = facts_.hidden,
                                .row_order = RowOrder::kRotary,
                                .format = format(kQkvMatrix),
                                .has_bias = facts_.qkv_bias != 0});
    const int o = add_matrix({.name = "o",
                              .rows = facts_.hidden,
                              .columns = heads,
                              .format = format(kOMatrix),
                              .has_bias = facts_.o_bias != 0});
    add_op({.name = "qkv",
            .matrix = qkv,
            .reads = kHidden,
            .writes = kQkv,
            .input = InputKind::kHidden,
            .output = OutputKind::kRotary,
            .norm = kAttentionNorm});
    add_op({.name = "attention", .kind = PhaseKind::kAttention, .reads = kQkv, .writes = kHeads});
    add_op({.name = "o",
            .matrix = o,
            .reads = kHeads,
            .writes = kPostAttention,
            .output = OutputKind::kResidual,
            .norm = ffn_norm_,
            .appends = true});
  }

  /// What gate and up make of the residual stream, and down adds to it.
  void add_gated(const GraphMatrix& gate_up, const GraphMatrix& down, int gated, int routes) {
    add_op({.name = "gate_up",
            .matrix = add_matrix(gate_up),
            .reads = kPostAttention,
            .writes = gated,
            .routes = routes,
            .input = InputKind::kNormed,
            .output = OutputKind::kSwiglu,
            .norm = ffn_norm_});
    add_op({.name = "down",
            .matrix = add_matrix(down),
            .reads = gated,
            .writes = kHidden,
            .output = OutputKind::kResidual,
            .norm = next_norm_});
  }

  void add_dense(int ffn) {
    const int gated = kind_ == 0 ? int{kFfn} : add_vector("ffn", 0);
    graph_.vectors[gated].elements = ffn;
    const bool has_gate = facts_.ungated == 0;
    add_gated({.name = "gate_up",
               .rows = has_gate ? 2 * ffn : ffn,
               .columns = facts_.hidden,
               .row_order = has_gate ? RowOrder::kGateUp : RowOrder::kPlain,
               .format = format(kGateUpMatrix),
               .has_bias = facts_.ffn_bias != 0},
              {.name = "down",
               .rows = facts_.hidden,
               .columns = ffn,
               .format = format(kDownMatrix),
               .has_bias = facts_.ffn_bias != 0},
              gated, kNone);
  }

  /// The router is small, and what it decides delicate: its weights are never integers.
  void add_mixture() {
    const int router = add_matrix({.name = "router", .rows = router_rows(facts_), .columns = facts_.hidden});
    const int ffn = used_experts(facts_) * expert_width(facts_);
    const int gated = kind_ == 0 ? int{kFfn} : add_vector("ffn", 0);
    graph_.vectors[gated].elements = ffn;
    const int routes = add_vector("routes", route_words(router_rows(facts_)));
    add_op({.name = "router",
            .matrix = router,
            .reads = kPostAttention,
            .writes = routes,
            .input = InputKind::kNormed,
            .output = OutputKind::kRouter,
            .norm = ffn_norm_});
    const auto experts = [&](ExpertAxis axis) {
      return ExpertParts{axis, stored_experts(facts_), used_experts(facts_)};
    };
    add_gated({.name = "gate_up",
               .rows = 2 * ffn,
               .columns = facts_.hidden,
               .row_order = RowOrder::kGateUp,
               .format = format(kGateUpMatrix),
               .has_bias = facts_.expert_bias != 0,
               .experts = experts(ExpertAxis::kRows)},
              {.name = "down",
               .rows = facts_.hidden,
               .columns = ffn,
               .format = format(kDownMatrix),
               .has_bias = facts_.expert_bias != 0,
               .experts = experts(ExpertAxis::kColumns)},
              gated, routes);
  }

  const ModelFacts& facts_;
  Graph& graph_;
  const int kind_;
  const int next_norm_;  // the first of the next layer, and before it those of this one
  const int ffn_norm_;
  int32_t further_ = 0;
  std::vector<GraphOp> ops_;
};

/// See Layer::rope.
int rope_table(int32_t rope) {
  return rope == kNoRope ? kNone : rope == kLocalRope ? 1 : 0;
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
  if (bits == facts.further_bits && bits != facts.weight_bits) return further_format(facts);
  const WeightType type = type_of_bits(bits);
  if (!traits_of(type).has_scales) return {.type = type};
  if (facts.weight_e4m3 != 0) return {.type = WeightType::kE4m3, .group = facts.weight_group};
  return {.type = type,
          .group = facts.weight_group > 0 ? facts.weight_group : kDefaultGroup,
          .has_zeros = facts.weight_zeros != 0,
          .has_minima = facts.weight_minima != 0,
          .block = facts.weight_block};
}

Graph build_graph(const ModelFacts& facts) {
  const int heads = facts.num_heads * facts.head_dim;
  Graph graph;
  graph.vectors = {{.name = "qkv", .elements = qkv_words(facts)},
                   {.name = "heads", .elements = heads},
                   {.name = "post_attention", .elements = block_output_words(facts)},
                   {.name = "ffn", .elements = 0},
                   {.name = "hidden", .elements = block_output_words(facts)},
                   {.name = "candidates", .elements = 0}};  // one of each CTA: the plan knows how many
  std::vector<std::pair<int, int32_t>> kinds;  // each one's ffn, and which of its matrices have further_bits
  for (int layer = 0; layer < facts.num_layers; ++layer) {
    if (has_windows(facts)) graph.windows.push_back(window_of_layer(facts, layer));
    if (has_chunks(facts)) graph.chunks.push_back(chunk_of_layer(facts, layer));
    if (lists_ropes(facts)) graph.ropes.push_back(rope_table(rope_of_layer(facts, layer)));
    const std::pair kind(ffn_of_layer(facts, layer), further_of_layer(facts, layer));
    const auto found = std::find(kinds.begin(), kinds.end(), kind);
    graph.layers.push_back(static_cast<int>(found - kinds.begin()));
    if (found != kinds.end()) continue;
    kinds.push_back(kind);
    KindBuilder(facts, graph).add(kind.first, kind.second);
  }
  add_head(facts, graph);
  return graph;
}

}  // namespace soliton
