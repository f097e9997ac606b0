#include "runtime/tools/make/model_memory.h"

#include <algorithm>

#include "generator/graph.h"
#include "layout/page.h"
#include "layout/weight_format.h"
#include "runtime/kv_pool.h"

namespace soliton {
namespace {

constexpr int64_t kBf16Bytes = 2;
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
  const int64_t norms = (2 * int64_t{facts.num_layers} + 1) * facts.hidden;
  return facts.num_layers * bytes_of(graph.layer_ops) + bytes_of(graph.final_ops) + kBf16Bytes * norms;
}

int64_t device_weight_bytes(const ModelFacts& facts) {
  const int64_t embedding = int64_t{facts.hidden} * facts.vocabulary;
  return read_weight_bytes(facts) + kBf16Bytes * embedding;
}

int64_t device_token_bytes(const ModelFacts& facts) {
  const int64_t rotary = int64_t{facts.head_dim} * static_cast<int64_t>(sizeof(float));
  return KvPool::bytes(facts, 1) / kKvPageTokens + rotary;
}

int32_t fitting_context(const ModelFacts& facts, int64_t free_bytes) {
  const int64_t left = free_bytes - device_weight_bytes(facts) - kOtherBytes;
  const int64_t pages = std::max<int64_t>(left, 0) / (device_token_bytes(facts) * kKvPageTokens);
  return static_cast<int32_t>(std::min<int64_t>(pages * kKvPageTokens, facts.max_context));
}

}  // namespace soliton
