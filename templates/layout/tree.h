// The plan of attention over a tree of branches that share their prefixes: what the host uploads after a
// change of the tree, and what the kernel then reads step after step without the host.
//
//   node      a run of tokens with one set of readers; its pages are its own: it begins at the start of a
//             page, and only its last page may be partly filled
//   row       a query: one new token of this step. Rows are numbered in depth-first preorder of the tree, so
//             that the rows below any node are one interval [first, end)
//   slice     a run of tokens of a node, from a page boundary on; its last tokens may be new ones of this
//             step
//   item      one slice, one KV head, one block of rows: done by one CTA, one partial result a row
//
// A plan holds for num_steps steps: `step` below counts them from 0. Meanwhile a branch that decodes plainly
// (one new token a step) grows by one cached token a step, and all that follows from it is arithmetic on
// `step`. A plan with more than one new token at a branch (a speculative tree, a prompt chunk) holds for one
// step.
#pragma once

#include <cstdint>

#include "layout/attention_variant.h"
#include "layout/page.h"
#include "layout/target.h"

namespace soliton {

/// Work of one CTA, read by its producer (pages) and consumers. The attention of rows [first_row, end_row) of
/// one KV head over cached tokens (see cached_tokens()), and over new tokens (see takes_new_tokens()). All
/// these rows see all cached tokens; row q sees the new token of row k if k <= q < TreeRow::seen_end of k.
/// For a row that sees none of the item's tokens the partial is the identity of the merge: (-inf, 0, 0).
struct alignas(16) TreeItem {
  int32_t kv_head = 0;
  int32_t first_page = 0;  // of the slice, in TreeView::pages
  int32_t tokens = 0;      // cached at step 0; negative: the slice begins to fill in -tokens steps
  int32_t capacity = 0;    // tokens that it may come to hold; equal to `tokens` if no token is ever added
  int32_t first_row = 0;
  int32_t end_row = 0;
  int32_t first_new = 0;  // rows whose new tokens are in the slice: read from the rows, not from pages
  int32_t end_new = 0;
  int32_t first_partial =
      0;  // place of the result of first_row; the next row's is one further. -1: there is nothing to
          // merge, the rows see no tokens but the item's; see KernelPlan::ends_rows()
  int32_t undivided =
      0;  // 1: a tile of queries is one worker's, so that bits do not depend on how many others
          // the item has
  int32_t first_position = 0;  // of the slice's first token
  int32_t least_query = 0;     // at step 0, + step: no row of the item is at an earlier position
};
static_assert(sizeof(TreeItem) == 48, "three 16-byte loads");

/// One entry of a row's merge list; it counts from step `first_step` of the plan on.
struct TreeMerge {
  int32_t partial = 0;  // place for KV head 0; KV head h: + h * TreeView::partials_per_head
  int32_t first_step = 0;
};

/// One row, read by whoever embeds, rotates, appends or merges it.
struct alignas(16) TreeRow {
  int32_t position = 0;     // for the rotary embedding, at step 0; + step
  int32_t slot = 0;         // place of its key and value in its node, in tokens, at step 0; + step
  int32_t first_page = 0;   // of its node, in TreeView::pages
  int32_t seen_end = 0;     // rows [own, seen_end) see its new token
  int32_t first_merge = 0;  // its partials, in TreeView::merges, in order of (depth of the node, slice)
  int32_t end_merge = 0;
  int32_t branch = 0;  // for the host: what the row is the next token of,
  int32_t draft = 0;   // and which of its new tokens
};
static_assert(sizeof(TreeRow) == 32, "two 16-byte loads");

/// All of a plan, in the memory of whoever reads it.
struct TreeView {
  const int32_t* first_item =
      nullptr;  // [num_ctas + 1]: CTA c does items [first_item[c], first_item[c + 1]);
                // those whose pages are still written to come last
  const TreeItem* items = nullptr;
  const int32_t* pages = nullptr;  // physical pages, node after node, with those reserved for num_steps steps
  const TreeRow* rows = nullptr;
  const TreeMerge* merges = nullptr;
  int32_t num_rows = 0;
  int32_t num_steps = 0;          // steps for which the plan holds
  int32_t partials_per_head = 0;  // places for partials: num_kv_heads times as many
};

/// What attention costs on a card while all its CTAs are at it, as the card's spec says. How a plan cuts and
/// deals its items depends on these numbers, the result of an item does not.
struct TreeCosts {
  double item_us = 0;               // to begin and end an item
  double mma_us = 0;                // one token by a tile of 16 query rows: its scores and values
  double read_bytes_per_s = 0;      // of device memory, all CTAs together
  double exchange_bytes_per_s = 0;  // of partials that one CTA writes and another one reads, all together

  constexpr bool operator==(const TreeCosts&) const = default;
};

/// Tokens to copy in all layers and KV heads, K and V: from_token + i of page from_page to to_token + i of
/// to_page, i from 0 to num_tokens - 1 in this order (source and destination may overlap).
struct TokenMove {
  int32_t from_page = 0;
  int32_t from_token = 0;
  int32_t to_page = 0;
  int32_t to_token = 0;
  int32_t num_tokens = 0;

  bool operator==(const TokenMove&) const = default;
};

/// The same of bytes, with their powers of two: these are the first dim's.
SOLITON_HOST_DEVICE inline void move_bytes(unsigned char* pool, const KvShape& shape, const TokenMove& move,
                                           int layer, int kv_head, int dim) {
  unsigned char* from = pool + shape.page_offset(move.from_page, layer, kv_head);
  unsigned char* to = pool + shape.page_offset(move.to_page, layer, kv_head);
  for (int i = 0; i < move.num_tokens; ++i) {
    const int source = move.from_token + i;
    const int place = move.to_token + i;
    to[shape.key_offset(place, dim)] = from[shape.key_offset(source, dim)];
    to[shape.half_bytes() + shape.value_offset(place, dim)] =
        from[shape.half_bytes() + shape.value_offset(source, dim)];
    for (int half = 0; dim == 0 && half < 2; ++half) {
      to[half * shape.half_bytes() + shape.exponent_offset(place)] =
          from[half * shape.half_bytes() + shape.exponent_offset(source)];
    }
  }
}

/// Does the moves, in order, for one dim of one KV head of one layer: dims do not meet.
SOLITON_HOST_DEVICE inline void move_tokens(unsigned char* pool, const KvShape& shape, const TokenMove* moves,
                                            int num_moves, int layer, int kv_head, int dim) {
  const auto half_word = [&](int page, int token, bool is_value, int part) {
    unsigned char* keys = pool + shape.page_offset(page, layer, kv_head);
    return reinterpret_cast<uint16_t*>(is_value
                                           ? keys + shape.half_bytes() + shape.value_offset(token, dim, part)
                                           : keys + shape.key_offset(token, dim, part));
  };
  for (int m = 0; m < num_moves; ++m) {
    const TokenMove& move = moves[m];
    if (shape.e4m3) {
      move_bytes(pool, shape, move, layer, kv_head, dim);
      continue;
    }
    for (int i = 0; i < move.num_tokens; ++i) {
      for (int half = 0; half < 2 * shape.parts; ++half) {
        *half_word(move.to_page, move.to_token + i, half % 2 == 1, half / 2) =
            *half_word(move.from_page, move.from_token + i, half % 2 == 1, half / 2);
      }
    }
  }
}

/// Warps that merge the partials of a query head at most, see RowsPolicy::merge_shares.
constexpr int kMaxMergeShares = 4;

/// One partial: for each of these warps of each query head of the KV head the maximum, of each the sum; and from here on
/// the heads' outputs, not divided by the sums unless they are packed.
SOLITON_HOST_DEVICE constexpr int tree_partial_outputs(int heads_per_kv_head) {
  return round_up(2 * kMaxMergeShares * heads_per_kv_head, 4);
}
/// Floats of one partial.
SOLITON_HOST_DEVICE constexpr int tree_partial_words(int heads_per_kv_head, int head_dim) {
  return tree_partial_outputs(heads_per_kv_head) + heads_per_kv_head * head_dim;
}

/// Cached tokens of an item at a step; none: there is no page to read.
SOLITON_HOST_DEVICE constexpr int cached_tokens(const TreeItem& item, int step) {
  const int tokens = item.tokens + step;
  return tokens < 0 ? 0 : tokens < item.capacity ? tokens : item.capacity;
}

/// Do new tokens [first_new, end_new) belong to the item at this step? An item with neither cached nor new
/// tokens is passed over; its partials are in no merge yet.
SOLITON_HOST_DEVICE constexpr bool takes_new_tokens(const TreeItem& item, int step) {
  const int tokens = item.tokens + step;
  return tokens >= 0 && tokens < item.capacity;
}

/// The item without the pages before `first_key`, the first position that the earliest of its rows sees. The last page stays:
/// whoever merges waits for a result of every item that has tokens.
SOLITON_HOST_DEVICE constexpr TreeItem without_unseen(TreeItem item, int step, int first_key) {
  const int unseen = first_key - item.first_position;
  const int last_page = (cached_tokens(item, step) - 1) / kKvPageTokens;
  const int before = unseen < 0 ? 0 : unseen / kKvPageTokens;
  const int pages = before < last_page ? before : last_page;
  item.first_page += pages;
  item.first_position += pages * kKvPageTokens;
  item.tokens -= pages * kKvPageTokens;
  item.capacity -= pages * kKvPageTokens;
  return item;
}

/// Are tokens appended to the item's pages while the plan holds? Then what a step reads of its last page is
/// written by the step before; the pages of other items do not change and can be read ahead at will.
SOLITON_HOST_DEVICE constexpr bool is_appended_to(const TreeItem& item) {
  return item.tokens < item.capacity;
}

/// Pages that an item reads at a step.
SOLITON_HOST_DEVICE constexpr int num_pages(const TreeItem& item, int step) {
  return ceil_divide(cached_tokens(item, step), kKvPageTokens);
}

}  // namespace soliton
