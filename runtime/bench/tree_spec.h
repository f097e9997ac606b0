// The workloads of `soliton-bench --tree`: trees of cached tokens and the rows that the step to be measured
// decodes over them. A spec is data, apart from pages and plans, so that workloads of papers, of scoreboards
// and of users' files are all built and counted alike.
//
// A node is a run of tokens with one set of readers, as in layout/tree.h. So no node has an only child: the
// two are one node. Who makes a spec joins them (join_only_children()).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/tree/kv_tree.h"

namespace soliton {

/// Most rows, tokens (unique ones) and nodes of a workload.
constexpr int kMaxTreeRows = 4096;
constexpr int kMaxTreeTokens = 1 << 24;
constexpr int kMaxTreeNodes = 1 << 16;

struct TreeSpec {
  struct Node {
    int parent = -1;  // index in `nodes`; -1: a root
    int num_tokens = 0;
    std::vector<int32_t> draft = {};  // nodes without children: the rows of the branch that ends here, as
                                      // KvTree::draft() takes them, {-1} for plain decoding; others: none

    bool operator==(const Node&) const = default;
  };

  std::string name = {};
  std::vector<Node> nodes = {};    // in depth-first preorder
  int wanted_rows = kMaxTreeRows;  // whose choices are wanted, the first: those behind them are of a prompt

  bool operator==(const TreeSpec&) const = default;
};

/// The workloads of a comma-separated list (see tree_spec_grammar()), in its order; `all` stands for those of
/// the table in the papers. Throws Error (kUsage) for what is no workload or has numbers out of range; for
/// PATH.json, {"parents": [...], "tokens": [...]} in depth-first preorder, Error (kNotFound) or (kBadFile).
std::vector<TreeSpec> parse_tree_spec(std::string_view list);

/// What an item of the list can be, for the help text and for errors: one line.
std::string tree_spec_grammar();

/// Cached tokens, each counted once.
int64_t unique_tokens(const TreeSpec& spec);
/// Cached tokens on the paths of all rows: what a step reads if no row shares with another.
int64_t path_tokens(const TreeSpec& spec);
/// Rows of a step.
int num_rows(const TreeSpec& spec);
/// Most nodes above a node; 0: only roots.
int max_depth(const TreeSpec& spec);
/// Most tokens that a row sees, its own and those of its draft included: the context that a step needs.
int longest_path(const TreeSpec& spec);

/// Pages of kKvPageTokens tokens that a KvTree needs for the tree and `num_steps` steps (1 for drafts).
int num_pages_needed(const TreeSpec& spec, int num_steps);

/// Makes the tree, with pages reserved for `num_steps` steps, in a KvTree without branches, so that its
/// snapshot has the nodes of the spec in their order. Returns the branches, in this order too. Throws Error
/// (kOutOfMemory) if the KvTree has fewer than num_pages_needed() pages; its state is then unspecified.
std::vector<Branch> build_tree(KvTree& tree, const TreeSpec& spec, int num_steps);

/// Makes one of each node and its only child, as often as there is one.
void join_only_children(TreeSpec& spec);

}  // namespace soliton
