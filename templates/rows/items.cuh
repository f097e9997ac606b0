// What an item of attention (layout/tree.h) brings to shared memory, and where it lies there. Input loader and workers find
// the same places, each for itself.
//
//   region input:  | item 0                                          | item 1 ... | lent_bytes() |
//                  | query tiles | keys of new tokens | their values |
//                  |   16 rows   |     16 tokens a tile              |
//
// New tokens may come through the ring instead (KernelPlan::streams_new_tokens()): 64 of the step's rows are a page, which
// follows on the item's pages of the cache.
//
// Each item lies behind the one before; one that does not fit before the end lies at the start again.
#pragma once

#include "rows/context.cuh"

namespace soliton::rows {

/// Queries of a tile.
template <const KernelPlan& kPlan>
constexpr int kTileQueries = kQkv<kPlan>.tile_queries();

/// Query tiles of an item: those that hold a query of its rows.
struct QueryTiles {
  int first;
  int count;
};
template <const KernelPlan& kPlan>
SOLITON_DEVICE QueryTiles query_tiles(const TreeItem& item) {
  const int first = item.first_row * kPlan.model.group() / kTileQueries<kPlan>;
  return {first, ceil_divide(item.end_row * kPlan.model.group(), kTileQueries<kPlan>) - first};
}

/// Tiles of new tokens that an item takes, or pages of them.
struct NewTokens {
  int first;
  int count;
};
template <int kTokens>
SOLITON_DEVICE NewTokens new_tokens(const TreeItem& item, int step) {
  if (!takes_new_tokens(item, step)) return {0, 0};
  const int first = item.first_new / kTokens;
  return {first, ceil_divide(item.end_new, kTokens) - first};
}

/// What an item brings to shared memory during attention: tiles of queries, and keys and values of its new tokens.
template <const KernelPlan& kPlan>
struct ItemParts {
  static constexpr NewTokens kNone = {0, 0};

  QueryTiles queries;
  NewTokens tail;
  NewTokens new_pages;

  SOLITON_DEVICE ItemParts(const TreeItem& item, int step)
      : queries(query_tiles<kPlan>(item)),
        tail(kPlan.streams_new_tokens() ? kNone : new_tokens<kTailTokens>(item, step)),
        new_pages(kPlan.streams_new_tokens() ? new_tokens<kKvPageTokens>(item, step) : kNone) {}

  SOLITON_DEVICE int query_bytes() const { return queries.count * kQkv<kPlan>.query_tile_bytes(); }
  SOLITON_DEVICE int tail_bytes() const { return tail.count * kQkv<kPlan>.kv.tile_bytes(); }
  SOLITON_DEVICE int bytes() const { return query_bytes() + 2 * tail_bytes(); }
};

/// Where the items of a phase lie, in turn: where activations were, each behind the one before or at the start again.
template <const KernelPlan& kPlan>
struct ItemPlaces {
  static constexpr Region kInput = kPlan.regions[static_cast<int>(RegionId::kInput)];
  static constexpr int kEnd = kInput.offset + kInput.bytes - kPlan.lent_bytes();
  static_assert(kPlan.lent_bytes() == 0 ||
                    kPlan.regions[static_cast<int>(RegionId::kTiles)].offset == kInput.offset + kInput.bytes,
                "what is lent lies right before the tiles");

  int end = kInput.offset;  // of the last one, in shared memory

  /// The place of the next.
  SOLITON_DEVICE int take(int bytes) {
    const int place = end + bytes > kEnd ? kInput.offset : end;
    end = place + bytes;
    return place;
  }
};

}  // namespace soliton::rows
