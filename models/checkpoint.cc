#include "models/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace soliton {
namespace {

/// Linear layers of their own, unless a part says of which it is.
LinearStack apart(int64_t columns, std::vector<LinearRows> parts) {
  for (LinearRows& part : parts) {
    if (part.tensor_rows == 0) part.tensor_rows = part.rows;
    if (part.tensor_columns == 0) part.tensor_columns = columns;
  }
  return {.parts = std::move(parts), .columns = columns};
}

/// The same rows in one linear layer.
LinearStack fused(const std::string& name, const LinearStack& stack) {
  LinearStack one = stack;
  int64_t first = 0;
  for (LinearRows& part : one.parts) {
    part = {.name = name,
            .first = first,
            .rows = part.rows,
            .tensor_rows = stack.rows(),
            .tensor_columns = stack.columns};
    first += part.rows;
  }
  return one;
}

/// Adds the shared experts, which are slices of one feed-forward network: of its rows, and of the columns of down.
void add_shared_experts(const ModelFacts& facts, const MixtureNames& names, std::vector<LinearRows>& gate_up,
                        std::vector<LinearRows>& down) {
  const int64_t width = facts.expert_ffn;
  const int64_t all = facts.shared_experts * width;
  const auto name = [&](const char* layer) { return fmt::format("{}.{}", names.shared, layer); };
  for (int64_t first = 0; first < all; first += width) {
    for (const char* layer : {names.gate, names.up})
      gate_up.push_back({.name = name(layer), .first = first, .rows = width, .tensor_rows = all});
    down.push_back(
        {.name = name(names.down), .rows = facts.hidden, .first_column = first, .tensor_columns = all});
  }
}

/// The router of a layer, and what all experts have of gate and up, and of down, which are given.
std::array<LinearStack, 3> with_router(const ModelFacts& facts, const MixtureNames& names,
                                       std::vector<LinearRows> gate_up, std::vector<LinearRows> down) {
  add_shared_experts(facts, names, gate_up, down);
  std::vector<LinearRows> router = {{.name = names.router, .rows = facts.num_experts}};
  if (facts.shared_gate != 0) router.push_back({.name = names.shared_gate, .rows = 1});
  return {apart(facts.hidden, std::move(router)), apart(facts.hidden, std::move(gate_up)),
          apart(facts.expert_ffn, std::move(down))};
}

/// Of a layer that is a mixture of experts, each of which has linear layers of its own.
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
  return with_router(facts, names, std::move(gate_up), std::move(down));
}

/// The same where all experts' stand in one tensor, and in one more.
std::array<LinearStack, 3> fused_mixture_stacks(const ModelFacts& facts, MixtureNames names) {
  names.router = MixtureNames{}.router;
  names.experts = MixtureNames{}.experts;
  const int64_t count = facts.num_experts;
  std::vector<LinearRows> gate_up;
  std::vector<LinearRows> down;
  const auto add = [&](std::vector<LinearRows>& to, const char* name, int64_t all, int64_t rows) {
    for (int64_t first = 0; first < all; first += rows) {
      to.push_back({.name = fmt::format("{}.{}", names.experts, name),
                    .first = first,
                    .rows = rows,
                    .tensor_rows = all,
                    .num_layers = count});
    }
  };
  add(gate_up, "gate_up_proj", 2 * count * facts.expert_ffn, facts.expert_ffn);
  add(down, "down_proj", count * facts.hidden, facts.hidden);
  return with_router(facts, names, std::move(gate_up), std::move(down));
}

/// The same where gate and up take turns: gpt-oss.
std::array<LinearStack, 3> interleaved_mixture_stacks(const ModelFacts& facts, const MixtureNames& names,
                                                      TensorForm form) {
  const int64_t count = facts.num_experts;
  const int64_t width = facts.expert_ffn;
  const auto part = [&](const char* name, int64_t first, int64_t rows, int64_t of_expert, int64_t step) {
    return LinearRows{.name = fmt::format("{}.{}", names.experts, name),
                      .first = first,
                      .rows = rows,
                      .tensor_rows = count * of_expert,
                      .num_layers = count,
                      .step = step,
                      .form = form};
  };
  std::vector<LinearRows> gate_up;
  std::vector<LinearRows> down;
  for (int64_t expert = 0; expert < count; ++expert) {
    for (const int64_t is_up : {0, 1})
      gate_up.push_back(part("gate_up_proj", 2 * expert * width + is_up, width, 2 * width, 2));
    down.push_back(part("down_proj", expert * facts.hidden, facts.hidden, facts.hidden, 1));
  }
  return with_router(facts, names, std::move(gate_up), std::move(down));
}

/// As most families call them.
std::vector<std::string> default_norms(NormPlacement norms) {
  switch (norms) {
    case NormPlacement::kBefore:
    case NormPlacement::kCentred:
      return {"input_layernorm", "post_attention_layernorm"};
    case NormPlacement::kAround:
      return {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
              "post_feedforward_layernorm"};
    case NormPlacement::kAfter:
      return {"post_attention_layernorm", "post_feedforward_layernorm"};
    case NormPlacement::kParallel:
      return {"input_layernorm", "input_layernorm"};
  }
  return {};
}

}  // namespace

int64_t LinearStack::rows() const {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const LinearRows& part) { return sum + part.rows; });
}

std::string Checkpoint::in_layer(int layer, const std::string& name) const {
  return fmt::format("{}{}.{}", layers_prefix, layer, name);
}

std::string in_layer(int layer, const std::string& name) {
  return fmt::format("{}{}.{}", kLayersPrefix, layer, name);
}

Checkpoint make_checkpoint(const ModelFacts& facts, Projections projections, const MixtureNames& mixture,
                           const LayerNames& names) {
  const int64_t heads = int64_t{facts.num_heads} * facts.head_dim;
  const int64_t kv = int64_t{facts.num_kv_heads} * facts.head_dim;
  const bool is_fused = projections == Projections::kFused;
  const int64_t paired = names.pairs ? facts.head_dim : 0;
  const auto rotated = [&](const char* name, int64_t rows) {
    return LinearRows{.name = name,
                      .rows = rows,
                      .paired_rows = paired,
                      .paired_dims = paired > 0 ? rotated_dims(facts) : 0};
  };
  const Graph graph = build_graph(facts);
  Checkpoint checkpoint = {.embedding = names.prefix + names.tensors.embedding,
                           .stacks = {},
                           .other_stacks = {},
                           .norms = {},
                           .head_norms = names.head_norms,
                           .router_bias = mixture.router_bias,
                           .sinks = "self_attn.sinks"};
  const auto add = [&](LinearStack stack) { checkpoint.stacks.push_back(std::move(stack)); };
  const auto grow = [&] { checkpoint.other_stacks.resize(checkpoint.stacks.size()); };
  for (int kind = 0; kind < graph.once(); ++kind) {
    const auto first = std::find(graph.layers.begin(), graph.layers.end(), kind) - graph.layers.begin();
    const int64_t ffn = ffn_of_layer(facts, static_cast<int>(first));
    const LinearStack qkv = apart(facts.hidden, {rotated(names.tensors.q, heads),
                                                 rotated(names.tensors.k, kv),
                                                 {.name = names.tensors.v, .rows = kv}});
    add(is_fused ? fused(names.tensors.qkv, qkv) : qkv);
    add(apart(heads, {{.name = names.tensors.o, .rows = facts.hidden}}));
    if (ffn == kMixture && mixture.is_interleaved) {
      for (LinearStack& stack : interleaved_mixture_stacks(facts, mixture, TensorForm::kColumns))
        add(std::move(stack));
      grow();
      std::ranges::move(interleaved_mixture_stacks(facts, mixture, TensorForm::kMxfp4),
                        checkpoint.other_stacks.end() - 3);
    } else if (ffn == kMixture) {
      for (LinearStack& stack : mixture_stacks(facts, mixture)) add(std::move(stack));
      grow();
      std::ranges::move(fused_mixture_stacks(facts, mixture), checkpoint.other_stacks.end() - 3);
    } else {
      std::vector<LinearRows> parts;
      if (facts.ungated == 0) parts.push_back({.name = names.tensors.gate, .rows = ffn});
      parts.push_back({.name = names.tensors.up, .rows = ffn});
      const bool are_fused = projections != Projections::kApart && facts.ungated == 0;
      const LinearStack gate_up = apart(facts.hidden, std::move(parts));
      add(are_fused ? fused(names.tensors.gate_up, gate_up) : gate_up);
      add(apart(ffn, {{.name = names.tensors.down, .rows = facts.hidden}}));
    }
    checkpoint.norms.push_back(names.norms.empty() ? default_norms(norm_placement(facts)) : names.norms);
  }
  const std::string head = facts.tied_lm_head != 0 ? checkpoint.embedding : names.prefix + "lm_head";
  add(apart(facts.hidden, {{.name = head, .rows = facts.vocabulary}}));
  grow();
  checkpoint.norms.push_back({names.prefix + names.tensors.final_norm});
  checkpoint.layers_prefix = names.prefix + names.tensors.layers;
  return checkpoint;
}

}  // namespace soliton
