// Deals the attention of a tree out to the CTAs: cuts nodes into slices, slices and rows into items, and
// gives the longest items first to the least loaded CTA. Made anew when the tree changes (fork, prune,
// finish), not for every token; the same snapshot, in the same order, gives the same plan.
//
// What an item takes: see item_costs.h.
//
// How long slices are is a choice between two goods:
// - SliceRule::kBalanced, by time. The CTAs of a KV head take its nodes one behind the other, each as much as fits into T,
//   the least time in which all of it fits: so they end together. Where that leaves much to be desired, slices of one length
//   a node are tried as well, in items of at most T that are dealt as said. Results of a branch differ in the last bits with
//   its neighbours and with the step at which a plan was made.
// - SliceRule::kFixed, by the node's length alone: the same branch has the same slices alone or among others,
//   whenever it was planned, so where node boundaries are equal, its bits are too.
// Slices begin at pages. Of a long chunk of a prompt rows are left whole, if CTAs can share them as evenly: then nothing is to be
// merged.
//
// Where no layer sees all keys (windows, chunks), slices begin at the first page that a row of theirs sees in some layer: what
// no row sees is nobody's. Under kFixed whole slices are left out, whose places in the merge lists stay, so that what is
// merged next to what is the same as in a plan that has them.
//
// Where layers differ in how far they see, one plan serves all. It is judged by the mean over the layers of what the busiest CTA
// takes, and the pages that few layers see may be dealt out apart from those that more of them see: then CTAs have as much to
// do in either kind of layer, for an item more each.
//
// Nodes under a page get items of their own too: a tile that spans nodes would need a row interval a token.
#pragma once

#include <cstdint>
#include <vector>

#include "layout/tree.h"
#include "runtime/engine/tree/item_costs.h"
#include "runtime/engine/tree/tree_snapshot.h"

namespace soliton {

enum class SliceRule {
  kBalanced,
  kFixed,
};
constexpr int kSliceRules = 2;

struct SliceLimits {
  SliceRule rule = SliceRule::kBalanced;
  int min_tokens = 2 * kKvPageTokens;  // of the slices of a node that has several; a multiple of the page
  int max_slices = 32;  // of a node under kFixed: if longer, its slices are 2, 4, 8, ... min_tokens
};

/// What a plan costs halfway through its steps, a mean over the layers. Picoseconds: whole numbers, so that sums and ties are
/// exact.
struct TreeTime {
  int64_t makespan_ps = 0;  // busiest CTA of each layer
  int64_t bound_ps = 0;     // no deal of these items takes less: mean of the CTAs, or the longest item
};

/// Host copies of what TreeView points to.
struct TreePlan {
  std::vector<int32_t> first_item;
  std::vector<TreeItem> items;
  std::vector<int32_t> pages;
  std::vector<TreeRow> rows;
  std::vector<TreeMerge> merges;
  int num_steps = 0;
  int partials_per_head = 0;
  TreeTime planned;  // at step num_steps / 2, for which the items are dealt

  TreeView view() const;
};

/// What the busiest CTA takes by these costs for the attention of one layer, with a window or chunks (0: none), at a step of the
/// plan.
int64_t attention_ps(const TreePlan& plan, const ItemCosts& costs, int step, int window, int chunk);

/// Keeps its memory from plan to plan: in the long run plan() allocates nothing.
class TreePlanner {
 public:
  /// Throws Error (kInternal) for numbers that cannot be.
  TreePlanner(const TreeShape& shape, const TreeCosts& costs, const SliceLimits& limits);

  /// Plans at most `num_steps` steps: 1 if a branch has more than one new token; fewer than asked for if
  /// fewer are reserved, or if under kFixed a node comes to the length from which its slices are longer.
  /// Overwrites `plan`. Throws Error (kInternal) if not even one step is reserved.
  void plan(const TreeSnapshot& tree, int num_steps, TreePlan& plan);

  /// Tokens of a slice under kFixed, for a node of `num_tokens` tokens, new ones included.
  int fixed_slice_tokens(int num_tokens) const;

 private:
  static constexpr int64_t kSearchSteps = 64;  // limits of time are found to 1 / kSearchSteps

  /// The items of one slice and one block of rows, alike for all KV heads but for kv_head and first_partial.
  struct Work {
    TreeItem item;
    int64_t cost_ps = 0;
  };
  /// What the search for slice lengths needs of a node.
  struct NodeCost {
    int num_tokens = 0;           // at the end of the plan, new ones included
    int64_t slice_ps = 0;         // of a slice, whatever its length: all its items
    int64_t token_ps = 0;         // of a token: all items that it is in
    int64_t widest_slice_ps = 0;  // the same of the item with the most rows
    int64_t widest_token_ps = 0;
    int max_slice_tokens = 0;  // see TreeShape::resident_tokens
    int slice_tokens = 0;      // chosen
    int first_position = 0;    // of the node's first token
    int first_seen = 0;        // of its tokens, of a page on which some row sees one in some layer
    int num_seen = 0;          // from there on
  };
  /// Rows that an item has together.
  struct Block {
    int first_row = 0;
    int end_row = 0;
    int least_query = 0;  // at step 0, + step: none of them is at an earlier position
  };
  /// Tokens of a node for a block of its rows.
  struct Slice {
    int32_t first_row = 0;
    int32_t end_row = 0;
    int32_t first_partial = 0;  // of first_row
    int32_t first_step = 0;     // that of no plan: no row sees it, it has no item
  };
  struct NodeSlices {
    int32_t first = 0;  // in slices_
    int32_t end = 0;
  };
  /// Pages of a node for a block of its rows, which CTAs take one behind the other.
  struct Strip {
    int32_t node = 0;
    Block block = {};
    int line = 0;        // see find_strips()
    int first_page = 0;  // of the node's
    int num_tokens = 0;  // halfway through the plan
    int end = 0;         // of the node's tokens, at the end of the plan
    int max_pages = 0;   // of an item
    int64_t item_ps = 0;
    int64_t token_ps = 0;

    int num_pages() const { return ceil_divide(num_tokens, kKvPageTokens); }
  };
  /// What a CTA takes of a strip.
  struct Piece {
    int32_t strip = 0;
    int first_page = 0;  // of the strip's
    int num_pages = 0;
    int cta = 0;  // of those of a KV head
  };

  int settle_steps(const TreeSnapshot& tree, int num_steps) const;
  void measure(const TreeSnapshot& tree);
  Block block_of(const TreeSnapshot& tree, int node, int row) const;
  int first_page(const TreeSnapshot& tree, int node, const Block& block, const LayerReach& reach) const;
  int first_page(const TreeSnapshot& tree, int node, const Block& block) const;
  int64_t cost_ps(const TreeItem& item) const;
  int64_t mean_makespan();
  int slice_tokens(const NodeCost& node, int64_t limit_ps) const;
  int64_t total_ps(int64_t limit_ps) const;
  int64_t least_limit() const;
  void slice_by_time(const TreeSnapshot& tree);
  bool slice_whole(const TreeSnapshot& tree);
  void end_rows(const TreeSnapshot& tree);
  bool choose_slices(int64_t limit_ps);
  void slice_by_length(const TreeSnapshot& tree);
  void slice_evenly(const TreeSnapshot& tree);
  void find_strips(const TreeSnapshot& tree, int num_lines);
  template <class Take>
  int take_strips(int line, int64_t limit_ps, const Take& take) const;
  void take_line(int line, int group);
  int64_t slice_in_line(const TreeSnapshot& tree, int num_lines);
  void cut(const TreeSnapshot& tree);
  void cut_node(const TreeSnapshot& tree, int node);
  int item_end(int row, int end_row) const;
  int max_item_tokens(int row, int end) const;
  void add_slice(const SnapshotNode& node, int first_position, int first, int end, const Block& block);
  void deal();
  void write_items(TreePlan& plan);
  void write_rows(const TreeSnapshot& tree, TreePlan& plan);

  TreeShape shape_;
  SliceLimits limits_;
  ItemCosts item_costs_;

  // Of the plan at work.
  int num_steps_ = 0;
  int partials_per_head_ = 0;
  TreeTime planned_;
  std::vector<NodeCost> costs_;
  std::vector<Work> works_;
  std::vector<Slice> slices_;
  std::vector<NodeSlices> node_slices_;
  std::vector<Strip> strips_;
  std::vector<Piece> pieces_;
  std::vector<int> first_pages_;     // of what the layers of each reach see
  std::vector<int32_t> order_;       // works, as they were dealt
  std::vector<int32_t> dealt_;       // [place in order_][kv_head]: CTA
  std::vector<uint64_t> loads_;      // heap of load and CTA
  std::vector<int64_t> line_loads_;  // of the CTAs of a KV head
  std::vector<int64_t> cta_loads_;   // of all
  std::vector<int32_t> cursors_;     // [2 * num_ctas]: next place in the plan's items
  std::vector<int32_t> path_;        // nodes above a row
  std::vector<int32_t> num_slices_;  // of each row
};

}  // namespace soliton
