#include "models/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
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

/// Of a layer that is a mixture of experts: its router, and what all experts have of gate and up, and of down.
std::array<LinearStack, 3> mixture_stacks(const ModelFacts& facts, const MixtureNames& names) {
  std::vector<LinearRows> gate_up;
  std::vector<LinearRows> down;
  for (int expert = 0; expert < facts.num_experts; ++expert) {
    const auto name = [&](const char* layer) {
      return fmt::format("{}.{}.{}", names.experts, expert, layer);
    };
    gate_up.push_back({.name = name(names.gate), .rows = facts.expert_ffn});
    gate_up.push_back({.name = name(names.up), .rows = facts.expert_ffn});
    down.push_back({.name = name(names.down), .rows = facts.hidden});
  }
  return {apart(facts.hidden, {{.name = names.router, .rows = facts.num_experts}}),
          apart(facts.hidden, std::move(gate_up)), apart(facts.expert_ffn, std::move(down))};
}

}  // namespace

int64_t LinearStack::rows() const {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const LinearRows& part) { return sum + part.rows; });
}

std::string in_layer(int layer, const std::string& name) {
  return fmt::format("{}{}.{}", kLayersPrefix, layer, name);
}

Checkpoint make_checkpoint(const ModelFacts& facts, Projections projections, const MixtureNames& mixture) {
  const int64_t heads = int64_t{facts.num_heads} * facts.head_dim;
  const int64_t kv = int64_t{facts.num_kv_heads} * facts.head_dim;
  const bool is_fused = projections == Projections::kFused;
  const Graph graph = build_graph(facts);
  Checkpoint checkpoint = {.embedding = "model.embed_tokens",
                           .stacks = {},
                           .norms = {},
                           .head_norms = {"self_attn.q_norm", "self_attn.k_norm"}};
  const auto add = [&](LinearStack stack) { checkpoint.stacks.push_back(std::move(stack)); };
  for (int kind = 0; kind < graph.once(); ++kind) {
    const auto first = std::find(graph.layers.begin(), graph.layers.end(), kind) - graph.layers.begin();
    const int64_t ffn = ffn_of_layer(facts, static_cast<int>(first));
    const LinearStack qkv = apart(facts.hidden, {{.name = "self_attn.q_proj", .rows = heads},
                                                 {.name = "self_attn.k_proj", .rows = kv},
                                                 {.name = "self_attn.v_proj", .rows = kv}});
    add(is_fused ? fused("self_attn.qkv_proj", qkv) : qkv);
    add(apart(heads, {{.name = "self_attn.o_proj", .rows = facts.hidden}}));
    if (ffn == kMixture) {
      for (LinearStack& stack : mixture_stacks(facts, mixture)) add(std::move(stack));
    } else {
      const LinearStack gate_up =
          apart(facts.hidden, {{.name = "mlp.gate_proj", .rows = ffn}, {.name = "mlp.up_proj", .rows = ffn}});
      add(is_fused ? fused("mlp.gate_up_proj", gate_up) : gate_up);
      add(apart(ffn, {{.name = "mlp.down_proj", .rows = facts.hidden}}));
    }
    checkpoint.norms.push_back({"input_layernorm", "post_attention_layernorm"});
  }
  const std::string head = facts.tied_lm_head != 0 ? checkpoint.embedding : "lm_head";
  add(apart(facts.hidden, {{.name = head, .rows = facts.vocabulary}}));
  checkpoint.norms.push_back({"model.norm"});
  return checkpoint;
}

}  // namespace soliton
