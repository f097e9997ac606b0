#include "runtime/engine/tree/item_costs.h"

#include <algorithm>
#include <cmath>

#include "models/error.h"

namespace soliton {
namespace {

constexpr double kPicosecondsPerUs = 1e6;
constexpr double kSecondsPerUs = 1e-6;

int64_t picoseconds(double us) {
  return static_cast<int64_t>(std::llround(us * kPicosecondsPerUs));
}

void expect_cost(bool holds, std::string_view what, std::string_view expected, double found) {
  if (holds) return;
  throw Error(ExitCode::kInternal,
              fmt::format("costs of a tree: {}: expected {}, got {}", what, expected, found));
}

}  // namespace

ItemCosts::ItemCosts(const TreeShape& shape, const TreeCosts& costs)
    : heads_per_kv_head_(shape.heads_per_kv_head), tile_queries_(shape.tile_queries) {
  expect_cost(shape.num_ctas >= 1, "CTAs", "at least 1", shape.num_ctas);
  expect_cost(shape.heads_per_kv_head >= 1, "heads of a KV head", "at least 1", shape.heads_per_kv_head);
  expect_cost(shape.head_dim >= 1, "head_dim", "at least 1", shape.head_dim);
  expect_cost(shape.item_costs >= 0, "costs of an item", "at least 0", shape.item_costs);
  expect_cost(shape.tile_costs >= 0, "costs of a tile", "at least 0", shape.tile_costs);
  expect_cost(costs.item_us >= 0, "time of an item", "at least 0", costs.item_us);
  expect_cost(costs.mma_us >= 0, "time of an mma", "at least 0", costs.mma_us);
  expect_cost(costs.read_bytes_per_s > 0, "rate of reading", "more than 0", costs.read_bytes_per_s);
  expect_cost(costs.exchange_bytes_per_s > 0, "rate of the exchange", "more than 0",
              costs.exchange_bytes_per_s);
  const auto transfer_ps = [&](double bytes, double bytes_per_s) {
    return picoseconds(bytes / (bytes_per_s / shape.num_ctas * kSecondsPerUs));
  };
  const KvShape one_head{.num_layers = 1,
                         .num_kv_heads = 1,
                         .head_dim = shape.head_dim,
                         .parts = shape.kv_parts,
                         .e4m3 = shape.kv_e4m3};
  const auto token_bytes = static_cast<double>(one_head.token_bytes());
  const double partial_bytes = tree_partial_words(shape.heads_per_kv_head, shape.head_dim) * sizeof(float);
  item_ps_ = picoseconds(costs.item_us * shape.item_costs);
  tile_ps_ = picoseconds(costs.item_us * shape.tile_costs);
  byte_token_ps_ = std::max<int64_t>(1, transfer_ps(token_bytes, costs.read_bytes_per_s));
  mma_ps_ = picoseconds(costs.mma_us * shape.kv_parts * shape.tile_queries / kQueryRows);
  row_ps_ = transfer_ps(partial_bytes, costs.exchange_bytes_per_s);
}

int ItemCosts::tiles(int rows) const {
  return ceil_divide(rows * heads_per_kv_head_, tile_queries_);
}

int64_t ItemCosts::products(int rows) const {
  return tiles(rows) * mma_ps_;
}

int64_t ItemCosts::token(int rows) const {
  return std::max(byte_token_ps_, products(rows));
}

int64_t ItemCosts::of(const TreeItem& item, int step) const {
  const int rows = item.end_row - item.first_row;
  const int cached = cached_tokens(item, step);
  const int fresh = takes_new_tokens(item, step) ? item.end_new - item.first_new : 0;
  const int64_t begin = item.first_partial < 0 ? this->item(rows) : without_tokens(rows);
  return begin + std::max(round_up(cached, kTailTokens) * byte_token_ps_, (cached + fresh) * products(rows));
}

}  // namespace soliton
