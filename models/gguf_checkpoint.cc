// Names of tensors, as llama.cpp's converter writes them.
#include <algorithm>

#include "models/gguf_config.h"

namespace soliton {
namespace {

LinearRows rows_of(const char* name, int64_t rows, int64_t columns, int64_t paired_rows = 0,
                   int64_t paired_dims = 0) {
  return {.name = name,
          .rows = rows,
          .tensor_rows = rows,
          .tensor_columns = columns,
          .paired_rows = paired_rows,
          .paired_dims = paired_dims};
}

LinearStack one(const char* name, int64_t rows, int64_t columns) {
  return {.parts = {rows_of(name, rows, columns)}, .columns = columns};
}

/// Parts of one linear layer.
LinearStack fused(const char* name, LinearStack stack) {
  const int64_t all = stack.rows();
  int64_t first = 0;
  for (LinearRows& part : stack.parts) {
    part.name = name;
    part.first = first;
    part.tensor_rows = all;
    first += part.rows;
  }
  return stack;
}

/// Router, gate and up, and down of a mixture, whose experts stand in one tensor each.
void add_mixture(const ModelFacts& facts, std::vector<LinearStack>& stacks) {
  const int64_t count = facts.num_experts;
  const auto add = [&](LinearStack& stack, const char* name, int64_t rows, int64_t expert) {
    stack.parts.push_back({.name = name,
                           .first = expert * rows,
                           .rows = rows,
                           .tensor_rows = count * rows,
                           .tensor_columns = stack.columns,
                           .num_layers = count,
                           .has_dots = true});
  };
  LinearStack gate_up = {.parts = {}, .columns = facts.hidden};
  LinearStack down = {.parts = {}, .columns = facts.expert_ffn};
  for (int64_t expert = 0; expert < count; ++expert) {
    add(gate_up, "ffn_gate_exps", facts.expert_ffn, expert);
    add(gate_up, "ffn_up_exps", facts.expert_ffn, expert);
    add(down, "ffn_down_exps", facts.hidden, expert);
  }
  stacks.push_back(one("ffn_gate_inp", count, facts.hidden));
  stacks.push_back(std::move(gate_up));
  stacks.push_back(std::move(down));
}

std::vector<std::string> norms_of(NormPlacement placement, const GgufNames& names) {
  switch (placement) {
    case NormPlacement::kBefore:
    case NormPlacement::kCentred:
      return {"attn_norm", names.ffn_norm};
    case NormPlacement::kAround:
      return {"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"};
    case NormPlacement::kAfter:
      return {"post_attention_norm", "post_ffw_norm"};
    case NormPlacement::kParallel:  // both blocks read one norm
      return {"attn_norm", "attn_norm"};
  }
  return {};
}

}  // namespace

Checkpoint make_gguf_checkpoint(const ModelFacts& facts, const GgufNames& names) {
  const int64_t heads = int64_t{facts.num_heads} * facts.head_dim;
  const int64_t kv = int64_t{facts.num_kv_heads} * facts.head_dim;
  const int64_t paired = names.pairs ? facts.head_dim : 0;
  const auto rotated = [&](const char* name, int64_t rows) {
    return rows_of(name, rows, facts.hidden, paired, paired > 0 ? rotated_dims(facts) : 0);
  };
  const Graph graph = build_graph(facts);
  Checkpoint checkpoint = {.embedding = "token_embd",
                           .stacks = {},
                           .other_stacks = {},
                           .norms = {},
                           .head_norms = {"attn_q_norm", "attn_k_norm"},
                           .router_bias = names.router_bias,
                           .sinks = "attn_sinks.weight",
                           .layers_prefix = "blk."};
  std::vector<LinearStack>& stacks = checkpoint.stacks;
  for (int kind = 0; kind < graph.once(); ++kind) {
    const auto first = std::find(graph.layers.begin(), graph.layers.end(), kind) - graph.layers.begin();
    const int64_t ffn = ffn_of_layer(facts, static_cast<int>(first));
    const LinearStack qkv = {
        .parts = {rotated("attn_q", heads), rotated("attn_k", kv), rows_of("attn_v", kv, facts.hidden)},
        .columns = facts.hidden};
    stacks.push_back(names.projections == Projections::kFused ? fused("attn_qkv", qkv) : qkv);
    stacks.push_back(one("attn_output", facts.hidden, heads));
    if (ffn == kMixture) {
      add_mixture(facts, stacks);
    } else {
      const LinearStack gate_up = {
          .parts = {rows_of("ffn_gate", ffn, facts.hidden), rows_of("ffn_up", ffn, facts.hidden)},
          .columns = facts.hidden};
      stacks.push_back(names.projections != Projections::kApart ? fused("ffn_up", gate_up) : gate_up);
      stacks.push_back(one("ffn_down", facts.hidden, ffn));
    }
    checkpoint.norms.push_back(norms_of(norm_placement(facts), names));
  }
  stacks.push_back(one(facts.tied_lm_head != 0 ? "token_embd" : "output", facts.vocabulary, facts.hidden));
  checkpoint.other_stacks.resize(stacks.size());
  checkpoint.norms.push_back({"output_norm"});
  return checkpoint;
}

}  // namespace soliton
