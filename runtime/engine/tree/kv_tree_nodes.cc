// The links of the tree: nodes come, go, are joined and split. Every function leaves each page with one owner
// and each node's num_branches the number of live branches at or below it.
#include <algorithm>
#include <utility>

#include "layout/page.h"
#include "runtime/engine/tree/kv_tree.h"

namespace soliton {

int32_t KvTree::add_node(int32_t parent) {
  int32_t node = static_cast<int32_t>(nodes_.size());
  if (free_nodes_.empty()) {
    nodes_.emplace_back();
  } else {
    node = free_nodes_.back();
    free_nodes_.pop_back();
  }
  link(node, parent);
  return node;
}

Branch KvTree::add_branch(int32_t node) {
  Branch branch = static_cast<Branch>(branches_.size());
  if (free_branches_.empty()) {
    branches_.emplace_back();
  } else {
    branch = free_branches_.back();
    free_branches_.pop_back();
  }
  plain_draft(branch);
  settle(node, branch);
  count_branches(node, 1);
  return branch;
}

/// Puts a branch (or none) at a node; does not count it.
void KvTree::settle(int32_t node, Branch branch) {
  nodes_[node].branch = branch;
  if (branch != kNone) branches_[branch].node = node;
}

/// Gives back a node, unlinked before, and its pages.
void KvTree::free_node(int32_t node) {
  trim_windows(nodes_[node], 0);
  std::vector<int32_t> pages = std::move(nodes_[node].pages);
  free_pages_.insert(free_pages_.end(), pages.rbegin(), pages.rend());
  pages.clear();
  nodes_[node] = Node{};
  nodes_[node].pages = std::move(pages);  // keeps the memory
  free_nodes_.push_back(node);
}

/// Makes a node the last child of another.
void KvTree::link(int32_t node, int32_t parent) {
  const int32_t before = nodes_[parent].last_child;
  (before == kNone ? nodes_[parent].first_child : nodes_[before].next) = node;
  nodes_[parent].last_child = node;
  nodes_[node].parent = parent;
  nodes_[node].next = kNone;
}

void KvTree::unlink(int32_t node) {
  Node& parent = nodes_[nodes_[node].parent];
  int32_t before = kNone;
  for (int32_t child = parent.first_child; child != node; child = nodes_[child].next) before = child;
  (before == kNone ? parent.first_child : nodes_[before].next) = nodes_[node].next;
  if (parent.last_child == node) parent.last_child = before;
  nodes_[node].parent = kNone;
  nodes_[node].next = kNone;
}

/// Tells the children of a node, taken over from another, who their parent is.
void KvTree::adopt_children(int32_t node) {
  for (int32_t at = nodes_[node].first_child; at != kNone; at = nodes_[at].next) nodes_[at].parent = node;
}

void KvTree::count_branches(int32_t node, int change) {
  for (; node != kNone; node = nodes_[node].parent) nodes_[node].num_branches += change;
}

/// Frees a leaf and the nodes above that only it kept; returns the first one that stays.
int32_t KvTree::detach(int32_t leaf) {
  count_branches(leaf, -1);
  int32_t node = leaf;
  while (node != kRoot && nodes_[node].num_branches == 0) {
    const int32_t parent = nodes_[node].parent;
    unlink(node);
    free_node(node);
    node = parent;
  }
  return node;
}

/// While a node has a single child: makes the two one, if no page has to be shifted for it but at most some
/// tokens moved into what is left of the node's last page.
void KvTree::join(int32_t index) {
  for (;;) {
    Node& node = nodes_[index];
    const int32_t only = node.first_child;
    if (index == kRoot || only == kNone || nodes_[only].next != kNone) return;
    Node& child = nodes_[only];
    const int tail = node.num_tokens % kKvPageTokens;
    if (tail > 0 && child.num_tokens > kKvPageTokens - tail) return;
    if (!can_join_windows(node, child)) return;
    if (tail > 0 && child.num_tokens > 0) {  // the child's page is then one more in reserve
      move(slot(child, 0), slot(node, node.num_tokens), child.num_tokens);
    }
    join_windows(node, child);
    node.pages.insert(node.pages.end(), child.pages.begin(), child.pages.end());
    child.pages.clear();
    node.num_tokens += child.num_tokens;
    settle(index, child.branch);
    node.first_child = child.first_child;
    node.last_child = child.last_child;
    adopt_children(index);
    free_node(only);
    trim(node);
  }
}

/// Could a child's window pages become its parent's? Not if its tokens would come behind some that are gone.
bool KvTree::can_join_windows(const Node& node, const Node& child) {
  const bool moves = node.num_tokens % kKvPageTokens > 0 && child.num_tokens > 0;
  return !moves || node.window_pages.empty() ||
         (node.window_pages.back() != kNone) == (child.window_pages.front() != kNone);
}

/// Before a child's other pages become its parent's. Its tokens have been moved if the parent's last page has room.
void KvTree::join_windows(Node& node, Node& child) {
  const bool moves = node.num_tokens % kKvPageTokens > 0;
  trim_windows(child, moves ? 0 : child.num_tokens);
  node.window_pages.insert(node.window_pages.end(), child.window_pages.begin(), child.window_pages.end());
  child.window_pages.clear();
}

/// Cuts a node's tokens in two at a page boundary; the second part is a new node below. Returns that.
int32_t KvTree::split(int32_t index, int num_tokens) {
  const int32_t below = add_node(index);
  unlink(below);
  trim_windows(nodes_[index], nodes_[index].num_tokens);  // what is reserved is so within one node
  Node& upper = nodes_[index];
  Node& lower = nodes_[below];
  const auto first = upper.pages.begin() + num_tokens / kKvPageTokens;
  lower.pages.assign(first, upper.pages.end());
  upper.pages.erase(first, upper.pages.end());
  if (windows_.window > 0) {
    const auto first_window = upper.window_pages.begin() + num_tokens / kKvPageTokens;
    lower.window_pages.assign(first_window, upper.window_pages.end());
    upper.window_pages.erase(first_window, upper.window_pages.end());
  }
  lower.num_tokens = upper.num_tokens - num_tokens;
  upper.num_tokens = num_tokens;
  lower.num_branches = upper.num_branches;
  lower.first_child = upper.first_child;
  lower.last_child = upper.last_child;
  adopt_children(below);
  settle(below, upper.branch);
  upper.branch = kNone;
  upper.first_child = upper.last_child = kNone;
  link(below, index);
  return below;
}

/// Cuts a branch back to `num_tokens` tokens of `node`, which others read too. The branch gets a node of its
/// own: behind the node if it keeps all of that; else behind its full pages, with a copy of the partly filled
/// page. Where there is no full page, that is beside the node.
void KvTree::leave_shared(Branch branch, int32_t node, int num_tokens) {
  const int32_t leaf = branches_[branch].node;
  const bool whole = num_tokens == nodes_[node].num_tokens;
  const int tail = whole ? 0 : num_tokens % kKvPageTokens;
  const int full = num_tokens - tail;
  int released = 0;
  bool releases_window = false;
  for (int32_t at = leaf; nodes_[at].num_branches == 1; at = nodes_[at].parent) {
    released += static_cast<int>(nodes_[at].pages.size());
    releases_window =
        releases_window || std::any_of(nodes_[at].window_pages.begin(), nodes_[at].window_pages.end(),
                                       [](int32_t page) { return page != kNone; });
  }
  expect_free(tail > 0 ? 1 : 0, released);
  if (tail > 0 && !releases_window) expect_window_page({node, num_tokens});
  plain_draft(branch);
  const Place from = tail > 0 ? slot(nodes_[node], full) : Place{};
  const int32_t left = detach(leaf);  // the node or one below
  const int32_t lower = !whole && full > 0 ? split(node, full) : node;
  const int32_t own = add_node(whole || full > 0 ? node : nodes_[node].parent);
  settle(own, branch);
  count_branches(own, 1);
  join(left == node ? lower : left);
  grow(nodes_[own], tail);
  nodes_[own].num_tokens = tail;
  if (tail > 0) move(from, slot(nodes_[own], 0), tail);
}

}  // namespace soliton
