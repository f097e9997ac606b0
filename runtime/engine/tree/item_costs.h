// What an item of the attention over a tree takes, by which plans are cut and dealt, and steps predicted.
//
// Of R query rows (rows x query heads of a KV head) and n tokens, n cached ones counted by 16:
//   C(R, n) = item + tiles x tile + max(n x token bytes / read, n x tiles x mma) + R x partial bytes / exchange
// with tiles = ceil(R / 16) and the numbers of TreeCosts, whose rates are shared evenly by the CTAs; a tile is TreeShape's.
// Picoseconds: whole numbers, so that sums and ties are exact.
#pragma once

#include <cstdint>
#include <vector>

#include "layout/activations.h"
#include "layout/tree.h"

namespace soliton {

/// How far back some of a model's layers see, and how many do; see first_seen().
struct LayerReach {
  int window = 0;
  int chunk = 0;
  int num_layers = 1;
};

/// What the kernel is built for.
struct TreeShape {
  int num_ctas = 0;
  int num_kv_heads = 0;       // of a card; one of several may have none
  int heads_per_kv_head = 0;  // query heads
  int head_dim = 0;
  int kv_parts = 1;       // f16 that a key or value is the sum of,
  bool kv_e4m3 = false;   // or a byte each
  int max_item_rows = 0;  // rows (not query rows) that one item takes at most, wherever it begins
  int tile_queries = kQueryRows;
  int max_item_tiles = 0;  // tiles of queries that it touches at most, if they are fewer than all; else 0
  /// Tokens of an item that touches more than streamed_query_tiles tiles, at most; 0: any.
  int resident_tokens = 0;
  int streamed_query_tiles = kWorkers;
  double item_costs = 1;   // times TreeCosts::item_us that an item takes,
  double tile_costs = 0;   // and each of its tiles of queries beside their tokens
  bool ends_rows = false;  // KernelPlan::ends_rows()
  /// Of all layers, each pair of window and chunk once; empty: they see all keys.
  std::vector<LayerReach> reaches = {};
};

class ItemCosts {
 public:
  /// Throws Error (kInternal) for numbers that cannot be.
  ItemCosts(const TreeShape& shape, const TreeCosts& costs);

  /// C(R, n) at a step of a plan. New tokens come out of L2: they cost no more than their arithmetic. Items that end rows
  /// exchange nothing.
  int64_t of(const TreeItem& item, int step) const;
  /// Of an item of `rows` rows, whatever its tokens,
  int64_t without_tokens(int rows) const { return item(rows) + rows * row_ps_; }
  /// and one token in it.
  int64_t token(int rows) const;
  /// To begin and end an item,
  int64_t item(int rows) const { return item_ps_ + tiles(rows) * tile_ps_; }
  /// and to exchange the partials of a row.
  int64_t row() const { return row_ps_; }

 private:
  int tiles(int rows) const;
  /// A token by all tiles of queries.
  int64_t products(int rows) const;

  int heads_per_kv_head_;
  int tile_queries_;
  int64_t item_ps_;
  int64_t tile_ps_;
  int64_t byte_token_ps_;  // to read a token
  int64_t mma_ps_;
  int64_t row_ps_;
};

}  // namespace soliton
