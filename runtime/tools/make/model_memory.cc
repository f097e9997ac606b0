#include "runtime/tools/make/model_memory.h"

#include <algorithm>

#include "generator/graph.h"
#include "layout/page.h"
#include "layout/weight_format.h"
#include "models/model_tables.h"

namespace soliton {
namespace {

constexpr int64_t kOtherBytes = 64 << 20;  // workspaces, records, and what the driver takes for itself

}  // namespace

int64_t read_weight_bytes(const ModelFacts& facts) {
  const Graph graph = build_graph(facts);
  const auto bytes_of = [&](const std::vector<GraphOp>& ops) {
    int64_t bytes = 0;
    for (const GraphOp& op : ops) {
      if (op.kind != PhaseKind::kMatrix) continue;
      const GraphMatrix& matrix = graph.matrices[op.matrix];
      bytes +=
          int64_t{matrix.rows} * matrix.columns * block_bytes(matrix.format) / (kColumnBlock * kTileRows);
    }
    return bytes;
  };
  const ModelTables tables = model_tables(facts);
  return facts.num_layers * bytes_of(graph.layer_ops) + bytes_of(graph.final_ops) + tables.bytes() -
         tables.embedding_bytes();
}

int64_t device_weight_bytes(const ModelFacts& facts) {
  return read_weight_bytes(facts) + model_tables(facts).embedding_bytes();
}

int32_t fitting_context(const ModelFacts& facts, int64_t free_bytes) {
  const int64_t left = free_bytes - device_weight_bytes(facts) - kOtherBytes;
  const int64_t pages = std::max<int64_t>(left, 0) / (context_token_bytes(facts) * kKvPageTokens);
  return static_cast<int32_t>(std::min<int64_t>(pages * kKvPageTokens, facts.max_context));
}

}  // namespace soliton
