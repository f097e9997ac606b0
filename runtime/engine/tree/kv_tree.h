// The KV pages of one request whose branches share their prefixes: a tree of token nodes.
//
// Every page belongs to one node. A node begins in a page of its own, and only its last page may be partly
// filled, so a fork copies nothing: the shared tail is read once for all children instead of once for each
// copy of it. What this costs is part of a page a node. Tokens are copied in three cases only, and reported
// as TokenMoves:
// - a fork shrinks back to a chain (prune): the child's tokens move to its parent's last page if they fit; so
//   branches that fork at every step, as beams do, stay dense at the price of the few tokens since the fork;
// - a branch is cut back into tokens that others share (truncate), or begins with some of another's (branch_off): the
//   partly filled page is copied, the usual copy on write, since the branch goes on writing behind it;
// - a speculative tree is accepted: see draft().
//
// A page holds K and V of all layers: megabytes. So the tokens of a speculative tree are rows but not nodes
// with pages of their own; they lie in preorder in the slots behind the branch's tokens. The path that always
// takes the first child (put the likeliest first) is in place already when it is accepted; others move down.
//
// Layers with a window of keys have pages of their own (layout/page.h): beside each page of a node stands one of these. A branch
// needs those that its next token's window reaches, and those behind; the others stay until their room is wanted, so that a
// branch may be cut back into them or begin there, see usable_tokens(). Wanted first are those that are furthest before the end
// of their node; those before a place where branches part, last. Of the pages that are reserved for a branch, one may be that
// of an earlier one, which no query sees any more when it is begun (KvWindows::reach): so a single launch, however long,
// needs no more than a window and what it writes in a step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "layout/tree.h"
#include "runtime/engine/tree/tree_snapshot.h"

namespace soliton {

/// Tokens 0 to num_tokens - 1 of a page.
struct PageTokens {
  int32_t page = 0;
  int32_t num_tokens = 0;
  int32_t window_page = -1;  // -1: gone, or there are none
};

/// The pages of layers with a window.
struct KvWindows {
  int window = 0;     // keys that a query sees at most; 0: there are no such layers
  int num_pages = 0;  // of their pool. As many as of the other one: none is ever given up for a later one
  int reach = 0;      // pages from one of a branch to the first that may take its place, see window_reach()
};

/// Pages that something takes: of layers without a window, and of those with one.
struct PageNeed {
  int pages = 0;
  int window_pages = 0;

  PageNeed& operator+=(const PageNeed& other) {
    pages += other.pages;
    window_pages += other.window_pages;
    return *this;
  }
};

/// Operations that need pages throw Error (kOutOfMemory) if the pool has too few; those given something that
/// is no live branch, or a number or path that cannot be, throw Error (kInternal). Whatever throws has
/// changed nothing. Pages are reserved for later tokens by reserve() and draft(); fork(), prune(), truncate()
/// and accept() give back what is reserved at the nodes that they change, so reserve after them.
class KvTree {
 public:
  /// A tree without branches over a pool of `num_pages` pages of kKvPageTokens tokens.
  explicit KvTree(int num_pages, const KvWindows& windows = {});

  /// A live branch without tokens that shares nothing.
  Branch open();

  /// Counts `num_tokens` further tokens, in the slots from place(branch, 0) on, as cached: they have been
  /// written, or will be before the next step. Reserves what is missing. The branch then has one new token a
  /// step.
  void append(Branch branch, int num_tokens);

  /// Makes sure that every live branch has pages for `num_tokens` further tokens, but for paused ones.
  void reserve(int num_tokens);
  /// The same for one branch, paused or not.
  void reserve(Branch branch, int num_tokens);

  /// Pages that the latter would take.
  int missing_pages(Branch branch, int num_tokens) const {
    return missing_pages(node_of(branch), num_tokens);
  }
  /// The same of both kinds.
  PageNeed missing(Branch branch, int num_tokens) const;
  /// Are so many pages free, or can be?
  bool has_room(const PageNeed& need) const;

  /// Replaces a live branch by num_branches (1 or more) that share its tokens; each has one new token a step.
  std::vector<Branch> fork(Branch branch, int num_branches);

  /// A further live branch that begins with the first `num_tokens` tokens of another, which stays what it is. Both
  /// share the full pages of these; the tokens of a partly filled one are copied. So, other than behind fork(), no
  /// node above a branch ends inside a page.
  Branch branch_off(Branch branch, int num_tokens);

  /// Could it do so?
  bool can_branch_off(Branch branch, int num_tokens) const;
  /// The most of a branch's first `num_tokens` tokens that it can be cut back to, or another one can begin with: what windows
  /// of the next token reach is still there.
  int usable_tokens(Branch branch, int num_tokens) const;

  /// Ends a branch and frees what no other branch shares.
  void prune(Branch branch);

  /// Cuts a branch back to its first `num_tokens` tokens, usable ones, counted from the start of its path.
  void truncate(Branch branch, int num_tokens);

  /// The new tokens of the branch in the next step: token i follows token parents[i], or the branch's last
  /// cached token if that is -1. In depth-first preorder, so that parents[i] is i - 1, or an ancestor of it,
  /// or -1. A chain is a chunk of a prompt. No token at all pauses the branch: it has no row.
  void draft(Branch branch, std::span<const int32_t> parents);

  /// Of the draft, keeps the tokens of `path`, which leads down from a token without parent; frees the rest.
  void accept(Branch branch, std::span<const int32_t> path);

  /// Says that so many slots behind the branch's tokens have been written, though nothing is kept of them.
  void note_written(Branch branch, int num_tokens);

  /// Copies to be done in this order before the next step, and forgets them.
  std::vector<TokenMove> take_moves();
  /// The same in layers with a window.
  std::vector<TokenMove> take_window_moves();

  /// Page and token of the slot of the token that comes `offset` tokens after the cached ones; must be
  /// reserved.
  struct Place {
    int32_t page = 0;
    int32_t token = 0;
    int32_t window_page = -1;
  };
  Place place(Branch branch, int offset) const;

  /// The cached tokens of a branch from its first on, page by page.
  std::vector<PageTokens> path(Branch branch) const;
  /// Cached tokens of a branch.
  int num_tokens(Branch branch) const;
  /// Whether the tokens that the branch shares with others fill whole pages, or are none.
  bool has_page_table(Branch branch) const;
  /// All pages of such a branch, with those reserved: page i holds tokens 64 i to 64 i + 63.
  std::vector<int32_t> page_table(Branch branch) const;
  /// The same of layers with a window; gone_page() for one that is gone.
  std::vector<int32_t> window_page_table(Branch branch) const;

  /// What the planner needs; reuses the memory of `snapshot`. With `only`, all branches but this one are
  /// seen as if they were paused.
  void snapshot(TreeSnapshot& snapshot, std::optional<Branch> only = {}) const;

  /// Live branches in depth-first order.
  std::vector<Branch> branches() const;
  /// Branches that read or are going to write each page; 0: the page is free.
  std::vector<int> references() const;
  /// Pages of these branches together, with those reserved.
  int num_pages_of(std::span<const Branch> branches) const;
  int num_pages() const { return num_pages_; }
  int num_free_pages() const { return static_cast<int>(free_pages_.size()); }
  int num_free_window_pages() const { return static_cast<int>(free_window_pages_.size()); }
  const KvWindows& windows() const { return windows_; }
  /// Stands for window pages that are gone: a page of their pool behind all others.
  int32_t gone_page() const { return windows_.num_pages; }

 private:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kRoot = 0;  // has no tokens and never goes; its children share nothing

  struct Node {
    int32_t parent = kNone;
    int32_t first_child = kNone;
    int32_t last_child = kNone;
    int32_t next = kNone;      // sibling
    int32_t num_branches = 0;  // live ones below: the reference count of its pages
    int32_t num_tokens = 0;
    Branch branch = kNone;  // nodes with children have none
    std::vector<int32_t> pages;
    std::vector<int32_t> window_pages;  // of the first of these; kNone: gone
  };

  struct BranchState {
    int32_t node = kNone;          // kNone: not live
    std::vector<int32_t> parents;  // the draft
  };

  /// The first `num_tokens` tokens of a node.
  struct TokenEnd {
    int32_t node = kNone;
    int num_tokens = 0;
  };

  Node& node_of(Branch branch);
  const Node& node_of(Branch branch) const;
  int32_t index_of(Branch branch) const;
  int first_position(int32_t node) const;
  TokenEnd find(Branch branch, int num_tokens) const;
  int missing_pages(const Node& node, int num_tokens) const;
  void expect_free(int num_pages, int num_released = 0) const;
  void grow(Node& node, int num_tokens);
  void expect_room(Branch branch, int num_tokens);
  void expect_usable(Branch branch, int num_tokens) const;
  void trim(Node& node);
  void plain_draft(Branch branch);

  void enter(const Node& node, int32_t parent, TreeSnapshot& snapshot) const;
  void enter_rows(const Node& node, int position, TreeSnapshot& snapshot) const;

  int32_t add_node(int32_t parent);
  Branch add_branch(int32_t node);
  void settle(int32_t node, Branch branch);
  void free_node(int32_t node);
  void link(int32_t node, int32_t parent);
  void unlink(int32_t node);
  void adopt_children(int32_t node);
  void count_branches(int32_t node, int change);
  int32_t detach(int32_t leaf);
  void join(int32_t node);
  static bool can_join_windows(const Node& node, const Node& child);
  void join_windows(Node& node, Node& child);
  int32_t split(int32_t node, int num_tokens);
  void leave_shared(Branch branch, int32_t node, int num_tokens);
  void move(Place from, Place to, int num_tokens);
  Place slot(const Node& node, int index) const;
  void add_windows(const Node& node, std::vector<int32_t>& table) const;
  template <class Add>
  std::vector<int32_t> table_of(Branch branch, const Add& add) const;

  // kv_tree_windows.cc
  /// A window page that no branch needs.
  struct Unneeded {
    bool before_fork = false;  // within the window before a place where branches part,
    int32_t num_branches = 0;  // of so many; 0 else
    int distance = 0;          // tokens from its end to that of its node
    int32_t node = kNone;
    int32_t index = 0;
  };
  bool gives_up() const { return windows_.num_pages < num_pages_; }
  std::vector<int32_t> predecessors(const Node& node, size_t num_pages) const;
  std::vector<Unneeded> unneeded(std::optional<TokenEnd> also = {}) const;
  void expect_windows(std::span<const std::pair<int32_t, int>> growing, std::optional<TokenEnd> also = {});
  void expect_window_page(const TokenEnd& end);
  void give_up_unneeded(int count, std::vector<Unneeded> found);
  void grow_windows(Node& node);
  void trim_windows(Node& node, int num_tokens);
  void give_up_written(Node& node, int num_tokens);
  void release_window_page(int32_t page);

  int num_pages_;
  KvWindows windows_;
  std::vector<int32_t> free_pages_;         // the next one last
  std::vector<int32_t> free_window_pages_;  // the same
  std::vector<int32_t> holders_;            // [window page]: pages of nodes that it stands for
  std::vector<Node> nodes_;
  std::vector<int32_t> free_nodes_;
  std::vector<BranchState> branches_;
  std::vector<Branch> free_branches_;
  std::vector<TokenMove> moves_;
  std::vector<TokenMove> window_moves_;
};

}  // namespace soliton
