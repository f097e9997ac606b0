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
  LinearStack qkv = apart(facts.hidden, {{.name = "self_attn.q_proj", .rows = heads},
                                         {.name = "self_attn.k_proj", .rows = kv},
                                         {.name = "self_attn.v_proj", .rows = kv}});
  LinearStack gate_up = apart(facts.hidden, {{.name = "mlp.gate_proj", .rows = facts.ffn},
                                             {.name = "mlp.up_proj", .rows = facts.ffn}});
  if (projections == Projections::kFused) {
    qkv = fused("self_attn.qkv_proj", qkv);
    gate_up = fused("mlp.gate_up_proj", gate_up);
  }
  const std::string embedding = "model.embed_tokens";
  const std::string head = facts.tied_lm_head != 0 ? embedding : "lm_head";
  return {.embedding = embedding,
          .stacks = {std::move(qkv), apart(heads, {{.name = "self_attn.o_proj", .rows = facts.hidden}}),
                     std::move(gate_up), apart(facts.ffn, {{.name = "mlp.down_proj", .rows = facts.hidden}}),
                     apart(facts.hidden, {{.name = head, .rows = facts.vocabulary}})},
          .norms = {"input_layernorm", "post_attention_layernorm", "model.norm"},
          .head_norms = {"self_attn.q_norm", "self_attn.k_norm"}};
}

}  // namespace soliton
