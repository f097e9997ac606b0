#include "runtime/engine/tree/tree_shape.h"

#include <algorithm>

#include "layout/rows_policy.h"

namespace soliton {
namespace {

/// Rows of an item such that it never touches more than max_query_tiles, wherever its first row is.
int max_item_rows(const Descriptor& descriptor, int group) {
  const int queries = descriptor.plan->qkv_layout().tile_queries();
  if (descriptor.max_query_tiles * queries >= descriptor.rows * group) return descriptor.rows;
  return std::max(1, ((descriptor.max_query_tiles - 1) * queries + 1) / group);
}

/// Nothing where all layers see all keys.
std::vector<LayerReach> reaches(const ModelFacts& facts) {
  std::vector<LayerReach> found;
  if (!has_windows(facts) && !has_chunks(facts)) return found;
  for (int layer = 0; layer < facts.num_layers; ++layer) {
    const int window = window_of_layer(facts, layer);
    const int chunk = chunk_of_layer(facts, layer);
    const auto same = std::find_if(found.begin(), found.end(), [&](const LayerReach& reach) {
      return reach.window == window && reach.chunk == chunk;
    });
    if (same == found.end()) {
      found.push_back({.window = window, .chunk = chunk, .num_layers = 1});
    } else {
      ++same->num_layers;
    }
  }
  return found;
}

}  // namespace

TreeShape tree_shape(const KernelLibrary& library, int kernel, int card) {
  const Descriptor& descriptor = library.descriptor(kernel);
  const ModelFacts& facts = descriptor.model->facts;
  const KvShape kv = kv_shape(facts);
  const int group = facts.num_heads / facts.num_kv_heads;
  const int item_rows = max_item_rows(descriptor, group);
  const PlanPolicy policy(descriptor.plan->shape());
  const bool is_measured = library.measured_costs(kernel) != nullptr;
  return {.num_ctas = descriptor.num_ctas,
          .num_kv_heads = kv_heads_of_card(facts.num_kv_heads, library.num_cards(), card),
          .heads_per_kv_head = group,
          .head_dim = facts.head_dim,
          .kv_parts = kv.parts,
          .kv_e4m3 = kv.e4m3,
          .max_item_rows = item_rows,
          .tile_queries = descriptor.plan->qkv_layout().tile_queries(),
          .max_item_tiles = item_rows < descriptor.rows ? descriptor.max_query_tiles : 0,
          .resident_tokens = descriptor.resident_tokens,
          .streamed_query_tiles = descriptor.plan->streamed_query_tiles(),
          .item_costs = is_measured ? 1 : policy.item_weight,
          .tile_costs = is_measured ? 0 : policy.tile_weight,
          .ends_rows = descriptor.plan->ends_rows(),
          .reaches = reaches(facts)};
}

}  // namespace soliton
