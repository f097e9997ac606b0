#include "models/checkpoint.h"

#include <fmt/format.h>

#include <numeric>

namespace soliton {
namespace {

/// Linear layers of their own.
LinearStack apart(int64_t columns, std::vector<LinearRows> parts) {
  for (LinearRows& part : parts) part.tensor_rows = part.rows;
  return {.parts = std::move(parts), .columns = columns};
}

/// The same rows in one linear layer.
LinearStack fused(const std::string& name, const LinearStack& stack) {
  LinearStack one = stack;
  int64_t first = 0;
  for (LinearRows& part : one.parts) {
    part = {.name = name, .first = first, .rows = part.rows, .tensor_rows = stack.rows()};
    first += part.rows;
  }
  return one;
}

}  // namespace

int64_t LinearStack::rows() const {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const LinearRows& part) { return sum + part.rows; });
}

std::string in_layer(int layer, const std::string& name) {
  return fmt::format("{}{}.{}", kLayersPrefix, layer, name);
}

Checkpoint make_checkpoint(const ModelFacts& facts, Projections projections) {
  const int64_t heads = int64_t{facts.num_heads} * facts.head_dim;
  const int64_t kv = int64_t{facts.num_kv_heads} * facts.head_dim;
  Checkpoint checkpoint{.embedding = "model.embed_tokens",
                        .stacks = {},
                        .norms = {"input_layernorm", "post_attention_layernorm"},
                        .head_norms = {"self_attn.q_norm", "self_attn.k_norm"},
                        .last_norm = "model.norm"};
  const auto stack = [&](MatrixId matrix) -> LinearStack& {
    return checkpoint.stacks[static_cast<size_t>(matrix)];
  };
  stack(MatrixId::kQkv) = apart(facts.hidden, {{.name = "self_attn.q_proj", .rows = heads},
                                               {.name = "self_attn.k_proj", .rows = kv},
                                               {.name = "self_attn.v_proj", .rows = kv}});
  stack(MatrixId::kO) = apart(heads, {{.name = "self_attn.o_proj", .rows = facts.hidden}});
  stack(MatrixId::kGateUp) = apart(facts.hidden, {{.name = "mlp.gate_proj", .rows = facts.ffn},
                                                  {.name = "mlp.up_proj", .rows = facts.ffn}});
  stack(MatrixId::kDown) = apart(facts.ffn, {{.name = "mlp.down_proj", .rows = facts.hidden}});
  const std::string head = facts.tied_lm_head != 0 ? checkpoint.embedding : "lm_head";
  stack(MatrixId::kLmHead) = apart(facts.hidden, {{.name = head, .rows = facts.vocabulary}});
  if (projections == Projections::kFused) {
    stack(MatrixId::kQkv) = fused("self_attn.qkv_proj", stack(MatrixId::kQkv));
    stack(MatrixId::kGateUp) = fused("mlp.gate_up_proj", stack(MatrixId::kGateUp));
  }
  return checkpoint;
}

}  // namespace soliton
