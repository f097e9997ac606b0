// Attention of the rows of a tree: which tokens a query tile is multiplied with, and which of them its queries see.
#pragma once

#include "rows/attention.cuh"

namespace soliton::rows {

/// The tiles of a unit. `slot`: the first of the page that it begins in.
template <const KernelPlan& kPlan>
SOLITON_DEVICE typename QueryState<kPlan>::Tokens Attention<kPlan>::tokens_of(const Queries& queries,
                                                                              int query_tile,
                                                                              const Role& role, int unit,
                                                                              int slot) const {
  constexpr int kTileBytes = kKv.tile_bytes();
  typename State::Tokens tokens;
  SOLITON_UNROLL
  for (int t = 0; t < State::kTogether; ++t) {
    const int tile = unit % kPageUnits * State::kTogether + t;  // of the page
    const int keys_slot = behind(slot, tile / kSlotTiles);
    tokens.keys[t] = page_at(keys_slot) + tile % kSlotTiles * kTileBytes;
    tokens.values[t] = page_at(behind(keys_slot, kSlots)) + tile % kSlotTiles * kTileBytes;
  }
  // Of all but the last page all tokens are there.
  const bool in_window =
      !Variant<kPlan>::kHidesKeys || unit * State::kTogether * kTailTokens >= queries.hidden;
  tokens.all_seen = unit < (role.pages - 1) * kPageUnits && in_window;
  tokens.seen = State::kAllSeen;
  if constexpr (State::kPlaced) {
    SOLITON_UNROLL
    for (int t = 0; t < State::kTogether; ++t)
      tokens.first_key[t] = queries.places.first_key + (unit * State::kTogether + t) * kTailTokens;
  }
  if (tokens.all_seen) return tokens;
  const int index = soliton::opaque(queries.item);
  TreeItem item = context_.item(index);
  context_.limit_to_seen(item, index, queries.variant);
  const ItemParts<kPlan> shape(item, context_.step);
  const int cached = cached_tokens(item, context_.step);
  tokens.all_seen = (unit + 1) * State::kTogether * kTailTokens <= cached && in_window;
  if (tokens.all_seen) return tokens;
  tokens.seen = 0;
  FirstSeen first_seen = {};
  if constexpr (Variant<kPlan>::kHidesKeys) first_seen = first_seen_of(queries.variant, item, query_tile);
  SOLITON_UNROLL
  for (int t = 0; t < State::kTogether; ++t) {
    const int tile = unit * State::kTogether + t;
    const int rest = cached - tile * kTailTokens;  // from the tile's first on
    const int fresh = tile - ceil_divide(cached, kTailTokens);
    if (rest > 0) {
      SOLITON_UNROLL
      for (int i = 0; i < 4; ++i)
        tokens.seen |= State::token(context_.lane, i) < rest ? 0x11u << (8 * t + i) : 0;
      if constexpr (Variant<kPlan>::kHidesKeys)
        tokens.seen &= ~(0xffu << 8 * t) | first_seen.seen_of(tile, context_.lane) << 8 * t;
    } else if (fresh < shape.tail.count) {
      tokens.keys[t] = role.place + shape.query_bytes() + fresh * kQkv<kPlan>.kv.tile_bytes();
      if constexpr (kKv.e4m3) tokens.fresh |= 1u << t;
      tokens.values[t] = tokens.keys[t] + shape.tail_bytes();
      if constexpr (State::kPlaced) tokens.first_key[t] = -1 - (shape.tail.first + fresh) * kTailTokens;
      tokens.seen |=
          seen_of_fresh(queries.variant, item, query_tile, (shape.tail.first + fresh) * kTailTokens) << 8 * t;
    } else {  // behind the last tile: nothing of it is seen
      tokens.keys[t] = tokens.keys[0];
      tokens.values[t] = tokens.values[0];
      if constexpr (kKv.e4m3) tokens.fresh |= (tokens.fresh & 1) << t;
    }
  }
  return tokens;
}

/// Of this lane's queries and the item, as the layer sees it.
template <const KernelPlan& kPlan>
SOLITON_DEVICE typename QueryState<kPlan>::Places Attention<kPlan>::places_of(const Variant<kPlan>& variant,
                                                                              int index,
                                                                              int query_tile) const {
  typename State::Places places = {};
  if constexpr (State::kPlaced) {
    constexpr int kGroup = kPlan.model.group();
    TreeItem item = context_.item(index);
    context_.limit_to_seen(item, index, variant);
    const int query = (query_tiles<kPlan>(item).first + query_tile) * kTileQueries<kPlan> + context_.lane / 4;
    places.first_key = item.first_position;
    SOLITON_UNROLL
    for (int h = 0; h < State::kQueries; ++h) {
      const int of_head = 8 % kGroup == 0 ? query : query + 8 * h;  // the same: a register
      places.head[h] = context_.head_of_model(item.kv_head * kGroup + of_head % kGroup);
      places.query[h] = context_.position(row_of(query + 8 * h)) - places.first_key;
    }
  }
  return places;
}

/// Of a token of a page of the item's new tokens.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int Attention<kPlan>::position_of_new(const Queries& queries, int page, int token) const {
  const TreeItem item = context_.item(opaque(queries.item));
  const int row = (item.first_new / kKvPageTokens + page) * kKvPageTokens + token;
  return position_of_row(row);
}

/// Of the item's cached tokens: those up to the last that any of this warp's queries does not see. A warp keeps one number of
/// them, and the few units and pages that have such tokens work out which: registers.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int Attention<kPlan>::hidden_tokens(const Variant<kPlan>& variant, int index,
                                                   int query_tile) const {
  if constexpr (!Variant<kPlan>::kHidesKeys) return 0;
  TreeItem item = context_.item(index);
  context_.limit_to_seen(item, index, variant);
  const int hidden = first_seen_of(variant, item, query_tile).larger();
  return static_cast<int>(warp_max(hidden < 0 ? 0u : static_cast<uint32_t>(hidden)));
}

/// Of the cached tokens of the item, as the layer sees it.
template <const KernelPlan& kPlan>
SOLITON_DEVICE typename QueryState<kPlan>::FirstSeen Attention<kPlan>::first_seen_of(
    const Variant<kPlan>& variant, const TreeItem& item, int query_tile) const {
  const int query = (query_tiles<kPlan>(item).first + query_tile) * kTileQueries<kPlan> + context_.lane / 4;
  const auto first_of = [&](int query) {
    return variant.first_key(context_.position(row_of(query))) - item.first_position;
  };
  FirstSeen first;
  SOLITON_UNROLL
  for (int h = 0; h < State::kQueries; ++h) first.of_query[h] = first_of(query + 8 * h);
  return first;
}

/// Of a page of the item's new tokens, of each tile eight bits.
template <const KernelPlan& kPlan>
SOLITON_DEVICE uint32_t Attention<kPlan>::seen_of_new(const Queries& queries, int page) const {
  const TreeItem item = context_.item(opaque(queries.item));
  const int base = (item.first_new / kKvPageTokens + page) * kKvPageTokens;
  uint32_t seen = 0;
  SOLITON_NO_UNROLL
  for (int tile = 0; tile < State::kPageTiles; ++tile)
    seen |= seen_of_fresh(queries.variant, item, queries.tile, base + tile * kTailTokens) << 8 * tile;
  return seen;
}

/// The same of a page of the cache: the last, which need not be full, or one with tokens that not all queries see.
template <const KernelPlan& kPlan>
SOLITON_DEVICE uint32_t Attention<kPlan>::seen_of_cached(const Queries& queries, int page) const {
  TreeItem item = context_.item(opaque(queries.item));
  FirstSeen first_seen = {};
  int rest;  // from the page's first on
  if constexpr (Variant<kPlan>::kHidesKeys) {
    context_.limit_to_seen(item, queries.item, queries.variant);
    first_seen = first_seen_of(queries.variant, item, queries.tile).behind(page * kKvPageTokens);
    rest = cached_tokens(item, context_.step) - page * kKvPageTokens;
  } else {
    const int tokens = cached_tokens(item, context_.step);
    rest = tokens - (tokens - 1) / kKvPageTokens * kKvPageTokens;
  }
  uint32_t seen = 0;
  SOLITON_NO_UNROLL
  for (int tile = 0; tile < State::kPageTiles; ++tile) {
    uint32_t of_tile = Variant<kPlan>::kHidesKeys ? first_seen.seen_of(tile, context_.lane) : 0xffu;
    SOLITON_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (tile * kTailTokens + State::token(context_.lane, i) >= rest) of_tile &= ~(0x11u << i);
    }
    seen |= of_tile << 8 * tile;
  }
  return seen;
}

/// Of a tile of the item's new tokens, of rows from `base` on: a row sees those of its path.
template <const KernelPlan& kPlan>
SOLITON_DEVICE uint32_t Attention<kPlan>::seen_of_fresh(const Variant<kPlan>& variant, const TreeItem& item,
                                                        int query_tile, int base) const {
  const int query = (query_tiles<kPlan>(item).first + query_tile) * kTileQueries<kPlan> + context_.lane / 4;
  uint32_t seen = 0;
  SOLITON_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int row = base + State::token(context_.lane, i);
    const int end = row >= item.first_new && row < item.end_new ? context_.seen_end(row) : 0;
    SOLITON_UNROLL
    for (int h = 0; h < State::kQueries; ++h) {
      const int of_query = row_of(query + 8 * h);
      const bool in_window =
          !Variant<kPlan>::kHidesKeys ||
          (end > 0 && variant.first_key(context_.position(of_query)) <= context_.position(row));
      if (row <= of_query && of_query < end && in_window) seen |= 1u << (4 * h + i);
    }
  }
  return seen;
}

}  // namespace soliton::rows
