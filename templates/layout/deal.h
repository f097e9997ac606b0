// The static work partition: which CTA does which tiles of a matrix, and which pages of the KV cache.
// Planner and kernel use the same formulas; the planner expands them into the plan, where they are verified.
#pragma once

#include "layout/page.h"

namespace soliton {

/// Tiles first, first + stride, ... (`count` of them) of one phase.
struct TileRun {
  int first = 0;
  int stride = 1;
  int count = 0;
};

/// Cards that one launch may span: each has a CTA more in turn. CTA i of card c is number i * num_cards + c of all, and
/// deals begin with one of card 0: so tile t lies on card t % num_cards, as the tile t / num_cards there.
constexpr int kMaxLaunchCards = 8;
SOLITON_HOST_DEVICE constexpr int tiles_of_card(int num_tiles, int num_cards) {
  return ceil_divide(num_tiles, num_cards);  // a card may have one less
}

/// Tiles are dealt one by one, beginning with CTA `first_cta`.
SOLITON_HOST_DEVICE constexpr TileRun deal_tiles(int num_tiles, int first_cta, int num_ctas, int cta) {
  const int first = cta >= first_cta ? cta - first_cta : cta - first_cta + num_ctas;
  return {first, num_ctas, first < num_tiles ? (num_tiles - first + num_ctas - 1) / num_ctas : 0};
}

/// Of `num` tiles, or whatever, those that follow one another of a CTA. CTAs `late`, the first of all behind the last, have `less` less
/// than the others.
SOLITON_HOST_DEVICE constexpr TileRun deal_neighbours(int num, int num_ctas, int cta, const TileRun& late,
                                                      int less) {
  const int end = late.first + late.count;
  const auto first_of = [&](int cta) {
    const int behind = cta < late.first ? 0 : cta < end ? cta - late.first : late.count;
    const int wrapped = end <= num_ctas ? 0 : cta < end - num_ctas ? cta : end - num_ctas;
    return (num + late.count * less) * cta / num_ctas - less * (behind + wrapped);
  };
  return {first_of(cta), 1, first_of(cta + 1) - first_of(cta)};
}

/// Where all CTAs have some of the first `first_half` of `num` things and then some of the others: what of its `own` neighbours, `per`
/// of each thing, a CTA has of one half. It has as many in both as without halves.
SOLITON_HOST_DEVICE constexpr TileRun deal_half(const TileRun& own, int num, int first_half, int per,
                                                bool second) {
  // Of neighbours before a CTA's as large a part is of the first half as of all; with one more of them it is one more or as many.
  const auto before = [&](int all) {
    return static_cast<int>(static_cast<uint32_t>(all) * static_cast<uint32_t>(first_half) /
                            static_cast<uint32_t>(num));
  };
  const int first = before(own.first);
  const int count = before(own.first + own.count) - first;
  if (!second) return {first, 1, count};
  return {first_half * per + own.first - first, 1, own.count - count};
}

/// Tiles times columns of a matrix that one CTA multiplies, where several share the columns: CTAs of the same number modulo
/// num_ctas / num_slices have the same tiles, each a slice of the columns. Between them they finish these tiles, as
/// deal_tiles() deals them to all: of a block the tiles first_own, first_own + num_slices, ...
constexpr int kMostColumnSlices = 8;
struct TileBlock {
  TileRun tiles = {};
  int slice = 0;
  int first_own = 0;
  int first_column = 0;
  int num_chunks = 0;  // of columns
  int first_chunk = 0;

  /// The `i`th chunk. CTAs begin at different ones: read in step, pieces of tiles at distances of powers of two come more
  /// slowly.
  SOLITON_HOST_DEVICE constexpr int chunk(int i) const {
    const int at = first_chunk + i;
    return at < num_chunks ? at : at - num_chunks;
  }
};
/// n / num_slices, which is a power of two: divisions need registers that the producer has not.
SOLITON_HOST_DEVICE constexpr int of_slices(int n, int num_slices) {
  static_assert(kMostColumnSlices == 8);
  return n >> ((num_slices > 1) + (num_slices > 2) + (num_slices > 4));
}
SOLITON_HOST_DEVICE constexpr TileBlock deal_block(int num_tiles, int first_cta, int num_ctas, int num_slices,
                                                   int cta) {
  const int team = of_slices(num_ctas, num_slices);
  TileBlock block;
  block.tiles = deal_tiles(num_tiles, first_cta % team, team, cta % team);
  block.slice = cta / team;
  const int own = cta >= first_cta ? cta - first_cta : cta - first_cta + num_ctas;
  block.first_own = own / team;
  return block;
}
/// Slices are whole chunks of columns.
SOLITON_HOST_DEVICE constexpr int slice_begin(int padded, int chunk, int num_slices, int slice) {
  const int column = of_slices(ceil_divide(padded, chunk) * slice, num_slices) * chunk;
  return column < padded ? column : padded;
}
SOLITON_HOST_DEVICE constexpr int slice_chunks(int padded, int chunk, int num_slices, int slice) {
  return (slice_begin(padded, chunk, num_slices, slice + 1) - slice_begin(padded, chunk, num_slices, slice)) /
         chunk;
}

/// Query heads that one attention unit handles: they are four columns of one mma, the other four being the
/// low-order parts of the same values.
constexpr int kHeadsPerBlock = 4;

/// CTAs that share a head block at most: each lane of a warp looks after one of them when they merge.
constexpr int kMaxSplits = 32;

/// Attention work of one CTA at one position: `count` head blocks first_block, first_block + num_ctas, ...,
/// of each the pages [first_page, end_page); split `split` of `num_splits`.
struct AttentionShare {
  int first_block = 0;
  int count = 0;
  int split = 0;
  int num_splits = 1;
  int num_mergers = 1;  // CTAs that merge a split block: its splits and those that would be with more pages
  int first_page = 0;
  int end_page = 0;
};

/// Splits the cached pages of every head block evenly over num_ctas / num_blocks CTAs, but over no more than
/// leave `min_pages` to each, as merging more parts would cost more than it saves, and no more than `max_splits`.
SOLITON_HOST_DEVICE constexpr AttentionShare share_attention(int num_blocks, int num_pages, int min_pages,
                                                             int num_ctas, int cta,
                                                             int max_splits = kMaxSplits) {
  AttentionShare share;
  const int most = num_ctas / num_blocks;
  const int slots = most < max_splits ? most : max_splits;
  if (slots <= 1) {
    share.first_block = cta;
    share.count = cta < num_blocks ? (num_blocks - cta + num_ctas - 1) / num_ctas : 0;
    share.end_page = num_pages;
    return share;
  }
  const int wanted = num_pages / min_pages;
  share.num_splits = wanted < 1 ? 1 : wanted < slots ? wanted : slots;
  share.num_mergers = slots;
  share.first_block = cta / slots;
  share.split = cta % slots;
  share.count = share.first_block < num_blocks && share.split < share.num_splits ? 1 : 0;
  share.first_page = num_pages * share.split / share.num_splits;
  share.end_page = num_pages * (share.split + 1) / share.num_splits;
  return share;
}

/// KV head h is card h % num_cards's, as the head h / num_cards there.
SOLITON_HOST_DEVICE constexpr int kv_heads_of_card(int num_kv_heads, int num_cards, int card) {
  return (num_kv_heads - card + num_cards - 1) / num_cards;
}

/// A share of attention without the blocks from `num_blocks` on, which a card with a KV head less does not have.
SOLITON_HOST_DEVICE constexpr AttentionShare limit_share(AttentionShare share, int num_blocks, int num_ctas) {
  const int left = num_blocks - share.first_block;
  const int count = left > 0 ? (left + num_ctas - 1) / num_ctas : 0;
  if (share.count > count) share.count = count;
  return share;
}

}  // namespace soliton
