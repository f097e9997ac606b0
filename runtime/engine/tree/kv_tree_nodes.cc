// The links of the tree: nodes come, go, are joined and split. Every function leaves each page with one owner
// and each node's num_branches the number of live branches at or below it.
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
    if (tail > 0 && child.num_tokens > 0) {  // the child's page is then one more in reserve
      move({child.pages[0], 0}, {node.pages.back(), tail}, child.num_tokens);
    }
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

/// Cuts a node's tokens in two at a page boundary; the second part is a new node below. Returns that.
int32_t KvTree::split(int32_t index, int num_tokens) {
  const int32_t below = add_node(index);
  unlink(below);
  Node& upper = nodes_[index];
  Node& lower = nodes_[below];
  const auto first = upper.pages.begin() + num_tokens / kKvPageTokens;
  lower.pages.assign(first, upper.pages.end());
  upper.pages.erase(first, upper.pages.end());
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
  for (int32_t at = leaf; nodes_[at].num_branches == 1; at = nodes_[at].parent) {
    released += static_cast<int>(nodes_[at].pages.size());
  }
  expect_free(tail > 0 ? 1 : 0, released);
  plain_draft(branch);
  const int32_t page = tail > 0 ? nodes_[node].pages[full / kKvPageTokens] : kNone;
  const int32_t left = detach(leaf);  // the node or one below
  const int32_t lower = !whole && full > 0 ? split(node, full) : node;
  const int32_t own = add_node(whole || full > 0 ? node : nodes_[node].parent);
  settle(own, branch);
  count_branches(own, 1);
  join(left == node ? lower : left);
  grow(nodes_[own], tail);
  nodes_[own].num_tokens = tail;
  if (tail > 0) move({page, 0}, {nodes_[own].pages[0], 0}, tail);
}

}  // namespace soliton
