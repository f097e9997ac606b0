#include "runtime/engine/tree/kv_tree.h"

#include <algorithm>
#include <utility>

#include "layout/page.h"
#include "models/error.h"

namespace soliton {
namespace {

template <class... Args>
Error misuse(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ExitCode::kInternal,
               fmt::format("KV tree: {}", fmt::format(format, std::forward<Args>(args)...)));
}

/// Adds a move, or makes the last one longer.
void add_move(std::vector<TokenMove>& moves, const TokenMove& move) {
  if (!moves.empty()) {
    TokenMove& last = moves.back();
    if (last.from_page == move.from_page && last.to_page == move.to_page &&
        last.from_token + last.num_tokens == move.from_token &&
        last.to_token + last.num_tokens == move.to_token) {
      last.num_tokens += move.num_tokens;
      return;
    }
  }
  moves.push_back(move);
}

/// Is `parents` in depth-first preorder? Walks up from the token before until the next token's parent is met.
void expect_preorder(std::span<const int32_t> parents) {
  for (int32_t token = 0; token < std::ssize(parents); ++token) {
    const int32_t parent = parents[token];
    int32_t candidate = token - 1;
    while (candidate >= 0 && candidate != parent) candidate = parents[candidate];
    if (candidate != parent) {
      throw misuse("parent of draft token {}: expected {}, an ancestor of it, or -1, got {}", token,
                   token - 1, parent);
    }
  }
}

}  // namespace

KvTree::KvTree(int num_pages, const KvWindows& windows)
    : num_pages_(num_pages), windows_(windows), holders_(static_cast<size_t>(windows.num_pages)), nodes_(1) {
  const auto add = [](std::vector<int32_t>& free, int count) {
    free.reserve(count);
    for (int page = count - 1; page >= 0; --page) free.push_back(page);
  };
  add(free_pages_, num_pages);
  add(free_window_pages_, windows.num_pages);
}

// ---- Operations

Branch KvTree::open() {
  return add_branch(add_node(kRoot));
}

void KvTree::append(Branch branch, int num_tokens) {
  Node& node = node_of(branch);
  if (num_tokens < 0) throw misuse("tokens to append: expected at least 0, got {}", num_tokens);
  expect_room(branch, num_tokens);
  grow(node, num_tokens);
  node.num_tokens += num_tokens;
  give_up_written(node, node.num_tokens);
  plain_draft(branch);
}

void KvTree::reserve(int num_tokens) {
  int missing = 0;
  std::vector<std::pair<int32_t, int>> growing;
  for (const BranchState& state : branches_) {
    if (state.node == kNone || state.parents.empty()) continue;
    growing.emplace_back(state.node, std::max(num_tokens, static_cast<int>(state.parents.size())));
    missing += missing_pages(nodes_[state.node], growing.back().second);
  }
  expect_free(missing);
  expect_windows(growing);
  for (const auto& [node, further] : growing) grow(nodes_[node], further);
}

void KvTree::reserve(Branch branch, int num_tokens) {
  Node& node = node_of(branch);
  expect_room(branch, num_tokens);
  grow(node, num_tokens);
}

std::vector<Branch> KvTree::fork(Branch branch, int num_branches) {
  const int32_t node = index_of(branch);
  if (num_branches < 1) throw misuse("branches of a fork: expected at least 1, got {}", num_branches);
  plain_draft(branch);
  trim(nodes_[node]);
  settle(node, kNone);
  count_branches(node, -1);
  branches_[branch].node = kNone;
  free_branches_.push_back(branch);
  std::vector<Branch> forked;
  for (int i = 0; i < num_branches; ++i) forked.push_back(add_branch(add_node(node)));
  join(node);
  return forked;
}

Branch KvTree::branch_off(Branch branch, int num_tokens) {
  const TokenEnd end = find(branch, num_tokens);
  const auto [node, kept] = end;
  expect_usable(branch, num_tokens);
  // Behind a node that others share already; else beside it, or behind its full pages.
  const bool is_whole = nodes_[node].branch == kNone && kept == nodes_[node].num_tokens;
  const int tail = is_whole ? 0 : kept % kKvPageTokens;
  const int full = kept - tail;
  expect_free(tail > 0 ? 1 : 0);
  if (tail > 0) expect_window_page(end);
  const Place from = tail > 0 ? slot(nodes_[node], full) : Place{};
  if (!is_whole && full > 0) split(node, full);
  const int32_t own = add_node(is_whole || full > 0 ? node : nodes_[node].parent);
  const Branch added = add_branch(own);
  grow(nodes_[own], tail);
  nodes_[own].num_tokens = tail;
  if (tail > 0) move(from, slot(nodes_[own], 0), tail);
  return added;
}

void KvTree::prune(Branch branch) {
  const int32_t left = detach(index_of(branch));
  branches_[branch].node = kNone;
  free_branches_.push_back(branch);
  join(left);
}

void KvTree::truncate(Branch branch, int num_tokens) {
  const int32_t leaf = index_of(branch);
  const auto [node, kept] = find(branch, num_tokens);
  expect_usable(branch, num_tokens);
  if (nodes_[node].num_branches > 1) {
    leave_shared(branch, node, kept);
    return;
  }
  plain_draft(branch);
  // Nobody else reads what lies below: the branch now ends here.
  if (node != leaf) {
    for (int32_t below = leaf; below != node;) {
      const int32_t parent = nodes_[below].parent;
      unlink(below);
      free_node(below);
      below = parent;
    }
    settle(node, branch);
  }
  nodes_[node].num_tokens = kept;
  trim(nodes_[node]);
  join(nodes_[node].parent);
}

void KvTree::draft(Branch branch, std::span<const int32_t> parents) {
  Node& node = node_of(branch);
  expect_preorder(parents);
  const int num_new = static_cast<int>(parents.size());
  expect_room(branch, num_new);
  grow(node, num_new);
  if (num_new > 1) give_up_written(node, node.num_tokens + num_new);
  branches_[branch].parents.assign(parents.begin(), parents.end());
}

void KvTree::accept(Branch branch, std::span<const int32_t> path) {
  Node& node = node_of(branch);
  const std::vector<int32_t>& parents = branches_[branch].parents;
  int32_t last = -1;
  for (const int32_t token : path) {
    if (token < 0 || token >= std::ssize(parents) || parents[token] != last) {
      throw misuse("accepted path: expected a child of draft token {}, got {}", last, token);
    }
    last = token;
  }
  expect_room(branch, static_cast<int>(path.size()));
  grow(node, static_cast<int>(path.size()));
  for (int i = 0; i < std::ssize(path); ++i) {
    if (path[i] != i) move(place(branch, path[i]), place(branch, i), 1);
  }
  node.num_tokens += static_cast<int>(path.size());
  give_up_written(node, node.num_tokens);
  plain_draft(branch);
  trim(node);
}

std::vector<TokenMove> KvTree::take_moves() {
  return std::exchange(moves_, {});
}
std::vector<TokenMove> KvTree::take_window_moves() {
  return std::exchange(window_moves_, {});
}

// ---- Views

KvTree::Place KvTree::place(Branch branch, int offset) const {
  const Node& node = node_of(branch);
  const int slot = node.num_tokens + offset;
  const int end = static_cast<int>(node.pages.size()) * kKvPageTokens;
  if (offset < 0 || slot >= end) {
    throw misuse("slot behind branch {}: expected 0 to {}, got {}", branch, end - node.num_tokens - 1,
                 offset);
  }
  return this->slot(node, slot);
}

/// Of a node, by its number there.
KvTree::Place KvTree::slot(const Node& node, int index) const {
  const auto page = static_cast<size_t>(index / kKvPageTokens);
  return {.page = node.pages[page],
          .token = index % kKvPageTokens,
          .window_page = page < node.window_pages.size() ? node.window_pages[page] : kNone};
}

std::vector<PageTokens> KvTree::path(Branch branch) const {
  std::vector<int32_t> nodes;
  for (int32_t node = index_of(branch); node != kRoot; node = nodes_[node].parent) nodes.push_back(node);
  std::vector<PageTokens> path;
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& node = nodes_[nodes[i]];
    for (int first = 0; first < node.num_tokens; first += kKvPageTokens) {
      const Place place = slot(node, first);
      path.push_back({.page = place.page,
                      .num_tokens = std::min(kKvPageTokens, node.num_tokens - first),
                      .window_page = place.window_page});
    }
  }
  return path;
}

bool KvTree::has_page_table(Branch branch) const {
  for (int32_t node = node_of(branch).parent; node != kRoot; node = nodes_[node].parent) {
    if (nodes_[node].num_tokens % kKvPageTokens != 0) return false;
  }
  return true;
}

std::vector<int32_t> KvTree::page_table(Branch branch) const {
  return table_of(branch, [](const Node& node, std::vector<int32_t>& table) {
    table.insert(table.end(), node.pages.begin(), node.pages.end());
  });
}

std::vector<int32_t> KvTree::window_page_table(Branch branch) const {
  return table_of(branch,
                  [this](const Node& node, std::vector<int32_t>& table) { add_windows(node, table); });
}

/// What add(node, table) adds of the nodes on the path of a branch.
template <class Add>
std::vector<int32_t> KvTree::table_of(Branch branch, const Add& add) const {
  if (!has_page_table(branch)) {
    throw misuse("page table: expected a branch that shares whole pages, got {}", branch);
  }
  std::vector<int32_t> nodes;
  for (int32_t node = index_of(branch); node != kRoot; node = nodes_[node].parent) nodes.push_back(node);
  std::vector<int32_t> table;
  for (size_t i = nodes.size(); i-- > 0;) add(nodes_[nodes[i]], table);
  return table;
}

/// Adds the window pages of a node, one for each of its pages.
void KvTree::add_windows(const Node& node, std::vector<int32_t>& table) const {
  for (size_t i = 0; i < node.pages.size(); ++i) {
    const bool is_there = i < node.window_pages.size() && node.window_pages[i] != kNone;
    table.push_back(is_there ? node.window_pages[i] : gone_page());
  }
}

int KvTree::num_tokens(Branch branch) const {
  const int32_t node = index_of(branch);
  return first_position(node) + nodes_[node].num_tokens;
}

void KvTree::snapshot(TreeSnapshot& snapshot, std::optional<Branch> only) const {
  snapshot.nodes.clear();
  snapshot.pages.clear();
  snapshot.window_pages.clear();
  snapshot.rows.clear();
  int32_t above = -1;  // index in the snapshot
  int position = 0;    // where the node ends
  for (int32_t at = nodes_[kRoot].first_child; at != kNone;) {
    position += nodes_[at].num_tokens;
    enter(nodes_[at], above, snapshot);
    const Branch branch = nodes_[at].branch;
    if (branch != kNone && branch == only.value_or(branch)) enter_rows(nodes_[at], position, snapshot);
    above = static_cast<int32_t>(snapshot.nodes.size()) - 1;
    if (nodes_[at].first_child != kNone) {
      at = nodes_[at].first_child;
      continue;
    }
    while (at != kRoot) {
      snapshot.nodes[above].end_row = static_cast<int32_t>(snapshot.rows.size());
      above = snapshot.nodes[above].parent;
      position -= nodes_[at].num_tokens;
      if (nodes_[at].next != kNone) break;
      at = nodes_[at].parent;
    }
    at = nodes_[at].next;  // none behind the root
  }
}

/// Adds a node to a snapshot, without rows.
void KvTree::enter(const Node& node, int32_t parent, TreeSnapshot& snapshot) const {
  const auto first_row = static_cast<int32_t>(snapshot.rows.size());
  snapshot.nodes.push_back({.parent = parent,
                            .num_tokens = node.num_tokens,
                            .num_new = 0,
                            .first_page = static_cast<int32_t>(snapshot.pages.size()),
                            .num_pages = static_cast<int32_t>(node.pages.size()),
                            .first_row = first_row,
                            .end_row = first_row});
  snapshot.pages.insert(snapshot.pages.end(), node.pages.begin(), node.pages.end());
  if (windows_.window > 0) add_windows(node, snapshot.window_pages);
}

/// Adds the rows of the last node of a snapshot, which ends at `position`.
void KvTree::enter_rows(const Node& node, int position, TreeSnapshot& snapshot) const {
  const auto index = static_cast<int32_t>(snapshot.nodes.size()) - 1;
  const auto first_row = static_cast<int32_t>(snapshot.rows.size());
  const std::vector<int32_t>& parents = branches_[node.branch].parents;
  const auto num_new = static_cast<int32_t>(parents.size());
  snapshot.nodes.back().num_new = num_new;
  for (int32_t i = 0; i < num_new; ++i) {
    snapshot.rows.push_back(
        {.branch = node.branch,
         .node = index,
         .draft = i,
         .position = parents[i] < 0 ? position : snapshot.rows[first_row + parents[i]].position + 1,
         .seen_end = first_row + i + 1});
  }
  for (int32_t i = num_new - 1; i >= 0; --i) {
    if (parents[i] < 0) continue;
    int32_t& end = snapshot.rows[first_row + parents[i]].seen_end;
    end = std::max(end, snapshot.rows[first_row + i].seen_end);
  }
}

std::vector<Branch> KvTree::branches() const {
  std::vector<Branch> found;
  std::vector<int32_t> open = {kRoot};
  while (!open.empty()) {
    const Node& node = nodes_[open.back()];
    open.pop_back();
    if (node.branch != kNone) found.push_back(node.branch);
    const size_t first = open.size();
    for (int32_t child = node.first_child; child != kNone; child = nodes_[child].next) open.push_back(child);
    std::reverse(open.begin() + static_cast<ptrdiff_t>(first), open.end());
  }
  return found;
}

std::vector<int> KvTree::references() const {
  std::vector<int> references(num_pages_);
  for (const Node& node : nodes_) {
    for (const int32_t page : node.pages) references[page] += node.num_branches;
  }
  return references;
}

int KvTree::num_pages_of(std::span<const Branch> branches) const {
  std::vector<bool> counted(nodes_.size());
  int num_pages = 0;
  for (const Branch branch : branches) {
    for (int32_t node = index_of(branch); node != kRoot && !counted[node]; node = nodes_[node].parent) {
      counted[node] = true;
      num_pages += static_cast<int>(nodes_[node].pages.size());
    }
  }
  return num_pages;
}

// ---- Pages

KvTree::Node& KvTree::node_of(Branch branch) {
  return nodes_[index_of(branch)];
}

const KvTree::Node& KvTree::node_of(Branch branch) const {
  return nodes_[index_of(branch)];
}

int32_t KvTree::index_of(Branch branch) const {
  if (branch < 0 || branch >= std::ssize(branches_) || branches_[branch].node == kNone) {
    throw misuse("branch: expected a live one, got {}", branch);
  }
  return branches_[branch].node;
}

int KvTree::first_position(int32_t node) const {
  int position = 0;
  for (int32_t at = nodes_[node].parent; at != kNone; at = nodes_[at].parent)
    position += nodes_[at].num_tokens;
  return position;
}

/// Where the first `num_tokens` tokens of a branch end.
KvTree::TokenEnd KvTree::find(Branch branch, int num_tokens) const {
  if (num_tokens < 0 || num_tokens > this->num_tokens(branch)) {
    throw misuse("tokens to keep: expected 0 to {}, got {}", this->num_tokens(branch), num_tokens);
  }
  int32_t node = index_of(branch);
  int first = first_position(node);
  while (num_tokens < first) {
    node = nodes_[node].parent;
    first -= nodes_[node].num_tokens;
  }
  return {node, num_tokens - first};
}

int KvTree::missing_pages(const Node& node, int num_tokens) const {
  return std::max(
      0, ceil_divide(node.num_tokens + num_tokens, kKvPageTokens) - static_cast<int>(node.pages.size()));
}

void KvTree::expect_free(int num_pages, int num_released) const {
  if (num_pages > num_free_pages() + num_released) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("KV pool of {} pages: expected at most {} further ones, got {}", num_pages_,
                            num_free_pages() + num_released, num_pages));
  }
}

/// The same of a leaf and of both kinds.
void KvTree::expect_room(Branch branch, int num_tokens) {
  const std::pair<int32_t, int> growing{index_of(branch), num_tokens};
  expect_free(missing_pages(nodes_[growing.first], num_tokens));
  expect_windows({&growing, 1});
}

/// A window page for a copy of the last tokens before `end`, which stay.
void KvTree::expect_window_page(const TokenEnd& end) {
  if (windows_.window == 0 || !free_window_pages_.empty()) return;
  give_up_unneeded(1, unneeded(end));
}

void KvTree::expect_usable(Branch branch, int num_tokens) const {
  const int usable = usable_tokens(branch, num_tokens);
  if (usable < num_tokens) {
    throw misuse("tokens to keep: expected at most {}, as windows are still there, got {}", usable,
                 num_tokens);
  }
}

void KvTree::grow(Node& node, int num_tokens) {
  for (int missing = missing_pages(node, num_tokens); missing > 0; --missing) {
    node.pages.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
  grow_windows(node);
}

/// Gives back pages beyond those of the node's tokens and of a draft that is not the plain one.
void KvTree::trim(Node& node) {
  const size_t num_new = node.branch == kNone ? 0 : branches_[node.branch].parents.size();
  const int kept = node.num_tokens + (num_new > 1 ? static_cast<int>(num_new) : 0);
  while (std::ssize(node.pages) > ceil_divide(kept, kKvPageTokens)) {
    free_pages_.push_back(node.pages.back());
    node.pages.pop_back();
  }
  trim_windows(node, kept);
}

void KvTree::plain_draft(Branch branch) {
  branches_[branch].parents.assign(1, -1);
}

void KvTree::move(Place from, Place to, int num_tokens) {
  add_move(moves_, {from.page, from.token, to.page, to.token, num_tokens});
  if (from.window_page != kNone && to.window_page != kNone)
    add_move(window_moves_, {from.window_page, from.token, to.window_page, to.token, num_tokens});
}

}  // namespace soliton
