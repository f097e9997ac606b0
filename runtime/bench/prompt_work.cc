#include "runtime/bench/prompt_work.h"

#include <algorithm>

namespace soliton {
namespace {

/// Products of a token with the matrices of a layer's feed-forward network.
double ffn_products(const ModelFacts& facts, int layer) {
  const double kMatrices = facts.ungated != 0 ? 2 : 3;  // gate, up, down
  const double hidden = facts.hidden;
  const int32_t width = ffn_of_layer(facts, layer);
  if (width != kMixture) return kMatrices * hidden * width;
  return hidden * router_rows(facts) + used_experts(facts) * kMatrices * hidden * facts.expert_ffn;
}

/// Tokens that all of a prompt's tokens see together in a layer: each itself and those before it that it sees.
double seen_tokens(const ModelFacts& facts, int layer, int num_tokens) {
  double seen = 0;
  for (int token = 0; token < num_tokens; ++token)
    seen += token - first_seen_in_layer(facts, layer, token) + 1;
  return seen;
}

}  // namespace

double prompt_flops(const ModelFacts& facts, int num_tokens) {
  constexpr double kPerProduct = 2;
  const double hidden = facts.hidden;
  const double query = static_cast<double>(facts.num_heads) * facts.head_dim;
  const double key = static_cast<double>(facts.num_kv_heads) * facts.head_dim;
  double products = hidden * facts.vocabulary;
  for (int layer = 0; layer < facts.num_layers; ++layer) {
    const double of_token = hidden * (2 * query + 2 * key) + ffn_products(facts, layer);  // q, o; k, v
    products += of_token * num_tokens;
    products += 2 * query * seen_tokens(facts, layer, num_tokens);  // scores, values
  }
  return kPerProduct * products;
}

}  // namespace soliton
