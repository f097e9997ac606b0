// The step of a model as ops: what they multiply, and that each reads what the one before it writes.
#include "generator/graph.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

/// The ops of a step with `num_layers` layers, in order.
std::vector<GraphOp> ops_of_step(const Graph& graph, int num_layers) {
  std::vector<GraphOp> ops;
  for (int layer = 0; layer < num_layers; ++layer) {
    const std::vector<GraphOp>& of_layer = graph.kind_of(layer).ops;
    ops.insert(ops.end(), of_layer.begin(), of_layer.end());
  }
  const std::vector<GraphOp>& once = graph.kinds[graph.once()].ops;
  ops.insert(ops.end(), once.begin(), once.end());
  return ops;
}

TEST(Graph, TinyModelInWords) {
  EXPECT_EQ(describe(build_graph(shipped_model("tiny-stories").facts)),
            "every layer:\n"
            "qkv        reads hidden         writes qkv            matrix 512 x 256\n"
            "attention  reads qkv            writes heads         \n"
            "o          reads heads          writes post_attention matrix 256 x 256\n"
            "gate_up    reads post_attention writes ffn            matrix 1536 x 256\n"
            "down       reads ffn            writes hidden         matrix 256 x 768\n"
            "then:\n"
            "lm_head    reads hidden         writes candidates     matrix 2048 x 256\n");
}

TEST(Graph, EveryOpReadsWhatTheOpBeforeWrites) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    const Graph graph = build_graph(random.model.facts);
    const std::vector<GraphOp> ops = ops_of_step(graph, random.model.facts.num_layers);
    for (size_t i = 1; i < ops.size(); ++i) {
      EXPECT_EQ(ops[i].reads, ops[i - 1].writes) << random.describe() << ": " << ops[i].name;
    }
  }
}

// The kernel reads `columns` words of the input vector and writes one word per row (per pair of rows after
// gate_up).
TEST(Graph, MatricesFitTheirVectors) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    const Graph graph = build_graph(random.model.facts);
    for (const GraphOp& op : ops_of_step(graph, 1)) {
      if (op.kind == PhaseKind::kAttention) {
        EXPECT_EQ(op.matrix, -1);
        continue;
      }
      const GraphMatrix& matrix = graph.matrices[op.matrix];
      EXPECT_EQ(matrix.columns, graph.vectors[op.reads].elements) << random.describe() << ": " << op.name;
      if (op.output == OutputKind::kLogits) {
        EXPECT_EQ(matrix.rows, random.model.facts.vocabulary);
      } else {
        const int rows_per_output = op.output == OutputKind::kSwiglu ? 2 : 1;
        EXPECT_EQ(matrix.rows, graph.vectors[op.writes].elements * rows_per_output)
            << random.describe() << ": " << op.name;
      }
    }
  }
}

TEST(Graph, EveryMatrixIsUsedByOneOp) {
  const Graph graph = build_graph(shipped_model("llama-3.1-8b").facts);
  std::multiset<int> used;
  for (const GraphOp& op : ops_of_step(graph, 1)) {
    if (op.matrix >= 0) used.insert(op.matrix);
  }
  EXPECT_EQ(used, (std::multiset<int>{0, 1, 2, 3, 4}));
  graph.for_each_op([&](const GraphOp& op, int layer) {
    if (op.matrix < 0) return;
    EXPECT_EQ(graph.matrices[op.matrix].layer_kind, graph.layers[layer]) << op.name;
  });
}

TEST(Graph, RowsThatAreCombinedShareATile) {
  const Graph graph = build_graph(shipped_model("llama-3.1-8b").facts);
  for (const GraphOp& op : ops_of_step(graph, 1)) {
    if (op.matrix < 0) continue;
    const RowOrder expected = op.output == OutputKind::kRotary   ? RowOrder::kRotary
                              : op.output == OutputKind::kSwiglu ? RowOrder::kGateUp
                                                                 : RowOrder::kPlain;
    EXPECT_EQ(graph.matrices[op.matrix].row_order, expected) << op.name;
  }
}

TEST(Graph, EveryRowOfTheNormsIsUsedOnce) {
  const int num_layers = 7;
  ModelFacts facts = shipped_model("tiny-stories").facts;
  facts.num_layers = num_layers;
  const Graph graph = build_graph(facts);
  std::vector<int> rows;
  graph.for_each_op([&](const GraphOp& op, int layer) {
    if (op.input != InputKind::kVector) rows.push_back(graph.first_norm(layer) + op.norm);
  });
  std::vector<int> in_turn(15);
  std::iota(in_turn.begin(), in_turn.end(), 0);
  EXPECT_EQ(rows, in_turn);
  EXPECT_EQ(graph.num_norms(), 15);
}

// Layers of a width are a kind; its matrices are its own, and so is the vector of that width.
TEST(Graph, LayersOfOtherWidthsAreOtherKinds) {
  const ModelFacts facts =
      load_model_config(std::string(SOLITON_SOURCE_DIR) + "/tests/models/kinds.yaml").facts;
  const Graph graph = build_graph(facts);
  EXPECT_EQ(graph.layers, (std::vector<int>{0, 1, 0, 2}));
  EXPECT_EQ(named(graph.matrices, "gate_up").rows, 2 * 192);
  EXPECT_EQ(named(graph.matrices, "gate_up_1").rows, 2 * 384);
  EXPECT_EQ(named(graph.matrices, "down_1").columns, 384);
  EXPECT_EQ(named(graph.vectors, "ffn").elements, 192);
  EXPECT_EQ(named(graph.vectors, "ffn_1").elements, 384);
  EXPECT_EQ(graph.num_norms(), 7);
  EXPECT_EQ(graph.reader(1, named(graph.kinds[1].ops, "gate_up_1").writes),
            named(graph.kinds[1].ops, "down_1").matrix);
  const std::string text = describe(graph);
  EXPECT_NE(text.find("layers 0, 2:\nqkv "), std::string::npos) << text;
  EXPECT_NE(text.find("layers 1:\nqkv_1 "), std::string::npos) << text;
}

TEST(Graph, GroupedHeadsShareKeysAndValues) {
  const Graph graph = build_graph(shipped_model("llama-3.1-8b").facts);
  EXPECT_EQ(graph.matrices[0].rows, 32 * 128 + 2 * 8 * 128);
  EXPECT_EQ(graph.matrices[1].columns, 32 * 128);
  EXPECT_EQ(named(graph.vectors, "qkv").elements, 6144);
}

// With several rows a head's tiles lie with several CTAs: heads are normed in a phase of their own.
TEST(Graph, HeadsAreNormedBetweenQkvAndAttention) {
  ModelFacts facts = shipped_model("tiny-stories").facts;
  const auto names_of = [](const Graph& graph) {
    std::vector<std::string> names;
    for (const GraphOp& op : graph.kinds[0].ops) names.push_back(op.name);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(build_rows_graph(facts)), (Names{"qkv", "attention", "o", "gate_up", "down"}));
  facts.head_norm = 1;
  EXPECT_EQ(names_of(build_graph(facts)), (Names{"qkv", "attention", "o", "gate_up", "down"}));
  const Graph graph = build_rows_graph(facts);
  EXPECT_EQ(names_of(graph), (Names{"qkv", "norm_heads", "attention", "o", "gate_up", "down"}));
  EXPECT_EQ(graph.kinds[0].ops[1].reads, graph.kinds[0].ops[0].writes);
  EXPECT_EQ(graph.kinds[0].ops[2].reads, graph.kinds[0].ops[1].writes);
  EXPECT_EQ(named(graph.vectors, "unnormed").elements, (4 + 2) * 64);
}

// A mixture's rows choose, are grouped, and are added up again; kernels that do not group them have all other vectors, in the
// same places.
TEST(Graph, GroupsTheRowsOfAMixture) {
  const ModelFacts facts = shipped_model("qwen3-30b-a3b").facts;
  const Graph plain = build_rows_graph(facts);
  const Graph grouped = build_rows_graph(facts, ExpertRows::kGrouped);
  ASSERT_EQ(grouped.vectors.size(), plain.vectors.size() + 3);
  for (size_t i = 0; i < plain.vectors.size(); ++i) EXPECT_EQ(grouped.vectors[i].name, plain.vectors[i].name);
  std::vector<std::string> names;
  for (const GraphOp& op : grouped.kinds[0].ops) names.push_back(op.name);
  EXPECT_EQ(names, (std::vector<std::string>{"qkv", "norm_heads", "attention", "o", "router", "choose",
                                             "group", "gate_up", "down", "ungroup"}));
  for (size_t i = 5; i < names.size(); ++i)
    EXPECT_EQ(grouped.kinds[0].ops[i].reads, grouped.kinds[0].ops[i - 1].writes) << names[i];
  EXPECT_EQ(grouped.kinds[0].ops.back().writes, plain.kinds[0].ops.back().writes);
}

TEST(Graph, AddsUpThePairsOfAMixture) {
  const ModelFacts facts = shipped_model("qwen3-30b-a3b-gptq").facts;
  const Graph plain = build_rows_graph(facts);
  const Graph pairs = build_rows_graph(facts, ExpertRows::kPairs);
  ASSERT_EQ(pairs.vectors.size(), plain.vectors.size() + 1);
  const std::vector<GraphOp>& ops = pairs.kinds[0].ops;
  ASSERT_EQ(ops.size(), plain.kinds[0].ops.size() + 1);
  EXPECT_EQ(ops.back().name, "ungroup");
  EXPECT_EQ(ops.back().reads, ops[ops.size() - 2].writes);
  EXPECT_EQ(ops.back().writes, plain.kinds[0].ops.back().writes);
}

// head_dim need not be hidden / num_heads.
TEST(Graph, HeadsNeedNotAddUpToHidden) {
  ModelFacts facts = shipped_model("tiny-stories").facts;
  facts.head_dim = 256;
  const Graph graph = build_graph(facts);
  EXPECT_EQ(graph.matrices[1].rows, 256);
  EXPECT_EQ(graph.matrices[1].columns, 4 * 256);
}

}  // namespace
}  // namespace soliton
