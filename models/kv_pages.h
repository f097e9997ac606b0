// How many pages the KV cache has, and what they take: counted in one place for the engine that allocates them and for those who
// say beforehand how much that will be. Layers with a window have a pool of their own (layout/page.h), which need not be as long
// as the context.
#pragma once

#include <cstdint>

#include "layout/model_facts.h"
#include "layout/page.h"

namespace soliton {

/// Tokens by which the pages of layers with a window reach further than the window: as many come in one step, or can be taken
/// back without anything being computed anew. No kernel has more rows.
constexpr int kWindowSlack = 1024;

struct PoolPages {
  int64_t all = 0;      // of layers without a window, and what tokens are counted by where there is none
  int64_t windows = 0;  // of layers with one; 0: no layer has one
};

int64_t pages_of_tokens(int64_t num_tokens);

/// Pages of a sequence before the one that may take the place of its first, so that of layers with a window it needs no more:
/// from the first key that any query of a step of `slack` tokens sees to the last token of the step. 0: no layer has a window.
int window_reach(const ModelFacts& facts, int slack = kWindowSlack);
/// Of one sequence of so many tokens.
PoolPages pages_of_sequence(const ModelFacts& facts, int64_t num_tokens, int slack = kWindowSlack);
/// Of many sequences that have so many tokens together: windows have a quarter as many pages, and twice one sequence's reach. Sequences
/// that are short need as many of either kind; where there are too few, they wait, or what is kept for others goes.
PoolPages pages_of_many(const ModelFacts& facts, int64_t num_tokens);

/// Device memory, in bytes; `kv`: of all layers, with the KV heads of one card or of all. One page more than `pages` says stands
/// for those of windows that are gone.
int64_t pool_bytes(const ModelFacts& facts, const KvShape& kv, const PoolPages& pages);
/// The same with the rotations of as many tokens as `pages.all` has: what context takes.
int64_t context_bytes(const ModelFacts& facts, const PoolPages& pages);
/// Of layers with a window, of a sequence that is longer than that.
int64_t window_bytes(const ModelFacts& facts);
/// Bytes of a sequence's keys and values that the token at `position` reads in all layers.
int64_t cached_bytes_read(const ModelFacts& facts, const KvShape& kv, int64_t position);

}  // namespace soliton
