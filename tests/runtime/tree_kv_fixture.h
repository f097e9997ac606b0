// A tree of KV pages beside a model that keeps every branch's tokens apart, over pools whose pages are arrays on
// the host: what a branch reads through its pages must be its tokens, copies and freed pages included. Of layers with a window
// that is what each query's window reaches, at every step.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "layout/page.h"
#include "models/error.h"
#include "refusals.h"
#include "runtime/engine/tree/check_windows.h"
#include "runtime/engine/tree/kv_tree.h"
#include "tree_drafts.h"

namespace soliton {

using Tokens = std::vector<int>;
inline constexpr int kGarbage = -1;

/// All that a caller can see of a tree.
struct State {
  std::vector<Branch> branches;
  std::vector<std::pair<int, int>> path_pages;
  std::vector<int> references;
  int num_free_pages = 0;
  std::vector<int> snapshot;

  bool operator==(const State&) const = default;
};

inline State state_of(const KvTree& tree) {
  State state;
  state.branches = tree.branches();
  state.references = tree.references();
  state.num_free_pages = tree.num_free_pages();
  for (const Branch branch : state.branches) {
    for (const PageTokens& part : tree.path(branch)) state.path_pages.push_back({part.page, part.num_tokens});
  }
  TreeSnapshot snapshot;
  tree.snapshot(snapshot);
  for (const SnapshotNode& node : snapshot.nodes) {
    state.snapshot.insert(state.snapshot.end(), {node.parent, node.num_tokens, node.num_new, node.num_pages,
                                                 node.first_row, node.end_row});
  }
  for (const SnapshotRow& row : snapshot.rows) {
    state.snapshot.insert(state.snapshot.end(),
                          {row.branch, row.node, row.draft, row.position, row.seen_end});
  }
  state.snapshot.insert(state.snapshot.end(), snapshot.pages.begin(), snapshot.pages.end());
  return state;
}

/// Rebuilds the pages of all branches and counts who needs each.
inline void expect_exact_pages(const KvTree& tree) {
  const std::vector<int> references = tree.references();
  std::vector<int> readers(references.size());
  for (const Branch branch : tree.branches()) {
    for (const PageTokens& part : tree.path(branch)) ++readers[part.page];
  }
  int used = 0;
  for (size_t page = 0; page < references.size(); ++page) {
    used += references[page] > 0 ? 1 : 0;
    // A page that nobody reads may be one branch's for later tokens.
    EXPECT_TRUE(references[page] == readers[page] || (readers[page] == 0 && references[page] == 1))
        << "page " << page << ": " << references[page] << " references, " << readers[page] << " readers";
  }
  EXPECT_EQ(used + tree.num_free_pages(), tree.num_pages());
  TreeSnapshot snapshot;
  tree.snapshot(snapshot);
  std::vector<int32_t> pages = snapshot.pages;
  std::sort(pages.begin(), pages.end());
  EXPECT_EQ(std::adjacent_find(pages.begin(), pages.end()), pages.end()) << "a page with two owners";
  EXPECT_EQ(std::ssize(pages), used);
}

/// No node and its only child could be one without shifting pages.
inline void expect_dense(const KvTree& tree) {
  TreeSnapshot snapshot;
  tree.snapshot(snapshot);
  std::vector<std::vector<int>> children(snapshot.nodes.size());
  for (int i = 0; i < std::ssize(snapshot.nodes); ++i) {
    if (snapshot.nodes[i].parent >= 0) children[snapshot.nodes[i].parent].push_back(i);
  }
  for (size_t i = 0; i < children.size(); ++i) {
    if (children[i].size() != 1) continue;
    const int tail = snapshot.nodes[i].num_tokens % kKvPageTokens;
    EXPECT_GT(tail, 0);
    EXPECT_GT(tail + snapshot.nodes[children[i][0]].num_tokens, kKvPageTokens);
  }
}

/// A tree, the pages' content, and the tokens that each branch should have.
class Simulation {
 public:
  using Page = std::array<int, kKvPageTokens>;

  explicit Simulation(int num_pages, const KvWindows& windows = {})
      : tree_(num_pages, windows), pool_(num_pages), windows_(static_cast<size_t>(windows.num_pages) + 1) {
    for (auto& page : pool_) page.fill(kGarbage);
    for (auto& page : windows_) page.fill(kGarbage);
  }

  KvTree& tree() { return tree_; }
  const std::map<Branch, Tokens>& model() const { return model_; }

  Branch open() {
    const Branch branch = tree_.open();
    expect_new(branch);
    return branch;
  }

  /// Tokens that are placed once the tree has them.
  void append(Branch branch, int num_tokens) {
    tree_.append(branch, num_tokens);
    Tokens& tokens = model_.at(branch);
    for (int i = 0; i < num_tokens; ++i) tokens.push_back(next_token_++);
    copy();
    int left = num_tokens;
    const std::vector<PageTokens> path = tree_.path(branch);
    for (size_t part = path.size(); left > 0; --part) {
      const PageTokens& at = path.at(part - 1);
      for (int token = at.num_tokens - 1; token >= 0 && left > 0; --token, --left) {
        pool_[at.page][token] = tokens[tokens.size() - static_cast<size_t>(num_tokens - left) - 1];
        if (at.window_page >= 0) windows_[at.window_page][token] = pool_[at.page][token];
      }
    }
  }

  /// `num_steps` steps of all branches, reserved beforehand, as the kernel does them.
  void step(int num_steps) {
    tree_.reserve(num_steps);
    copy();
    check_launch(num_steps);
    std::map<Branch, Slots> slots;
    for (const auto& [branch, tokens] : model_) slots[branch] = window_slots(branch);
    for (int i = 0; i < num_steps; ++i) {
      for (const auto& [branch, tokens] : model_) expect_window(branch, slots[branch]);
      for (auto& [branch, tokens] : model_) {
        tokens.push_back(next_token_);
        write(tree_.place(branch, i), slots[branch]);
      }
    }
    for (const auto& [branch, tokens] : model_) tree_.append(branch, num_steps);
  }

  /// Drafts a tree and accepts a path of it.
  void speculate(Branch branch, const std::vector<int32_t>& parents, const std::vector<int32_t>& path) {
    tree_.draft(branch, parents);
    copy();
    check_launch(1, branch);
    const int first = next_token_;
    Slots slots = window_slots(branch);
    expect_window(branch, slots);
    for (int i = 0; i < std::ssize(parents); ++i) write(tree_.place(branch, i), slots);
    tree_.accept(branch, path);
    for (const int32_t token : path) model_.at(branch).push_back(first + token);
  }

  std::vector<Branch> fork(Branch branch, int num_branches) {
    const std::vector<Branch> branches = tree_.fork(branch, num_branches);
    const Tokens tokens = model_.at(branch);
    model_.erase(branch);
    for (const Branch forked : branches) {
      expect_new(forked);
      model_[forked] = tokens;
    }
    return branches;
  }

  Branch branch_off(Branch branch, int num_tokens) {
    const Branch added = tree_.branch_off(branch, num_tokens);
    expect_new(added);
    const Tokens& tokens = model_.at(branch);
    model_[added] = Tokens(tokens.begin(), tokens.begin() + num_tokens);
    return added;
  }

  void prune(Branch branch) {
    tree_.prune(branch);
    model_.erase(branch);
  }

  void truncate(Branch branch, int num_tokens) {
    tree_.truncate(branch, num_tokens);
    model_.at(branch).resize(static_cast<size_t>(num_tokens));
  }

  /// Does the copies that the tree asks for, then spoils all free pages. Returns tokens copied.
  int copy() {
    int copied = 0;
    for (const TokenMove& move : tree_.take_moves()) {
      copied += move.num_tokens;
      for (int i = 0; i < move.num_tokens; ++i) {
        pool_.at(move.to_page).at(move.to_token + i) = pool_.at(move.from_page).at(move.from_token + i);
      }
    }
    for (const TokenMove& move : tree_.take_window_moves()) {
      for (int i = 0; i < move.num_tokens; ++i) {
        windows_.at(move.to_page).at(move.to_token + i) = windows_.at(move.from_page).at(move.from_token + i);
      }
    }
    spoil_free_windows();
    const std::vector<int> references = tree_.references();
    for (size_t page = 0; page < pool_.size(); ++page) {
      if (references[page] == 0) pool_[page].fill(kGarbage);
    }
    return copied;
  }

  Tokens read(Branch branch) const {
    Tokens tokens;
    for (const PageTokens& part : tree_.path(branch)) {
      tokens.insert(tokens.end(), pool_[part.page].begin(), pool_[part.page].begin() + part.num_tokens);
    }
    return tokens;
  }

  void check() {
    copy();
    EXPECT_EQ(tree_.branches().size(), model_.size());
    for (const auto& [branch, tokens] : model_) {
      ASSERT_EQ(read(branch), tokens) << "branch " << branch;
      ASSERT_EQ(tree_.num_tokens(branch), std::ssize(tokens));
      expect_window(branch, window_slots(branch));
      ASSERT_EQ(tree_.usable_tokens(branch, tree_.num_tokens(branch)), std::ssize(tokens));
    }
    expect_exact_pages(tree_);
    if (tree_.windows().window == 0)
      expect_dense(tree_);  // else tokens may not move behind some that are gone
  }

 private:
  using Slots = std::vector<std::pair<int, int>>;  // window page and token of each token of a branch

  Slots window_slots(Branch branch) const {
    Slots slots;
    for (const PageTokens& part : tree_.path(branch)) {
      for (int token = 0; token < part.num_tokens; ++token) slots.emplace_back(part.window_page, token);
    }
    return slots;
  }
  /// The query of the next token of a branch sees its tokens in layers with a window.
  void expect_window(Branch branch, const Slots& slots) const {
    const int window = tree_.windows().window;
    if (window == 0) return;
    const Tokens& tokens = model_.at(branch);
    const int first = std::max(0, static_cast<int>(tokens.size()) - window + 1);
    for (auto i = static_cast<size_t>(first); i < tokens.size(); ++i) {
      const auto [page, token] = slots.at(i);
      ASSERT_GE(page, 0) << "branch " << branch << ", token " << i << " of " << tokens.size();
      ASSERT_EQ(windows_[page][token], tokens[i]) << "branch " << branch << ", token " << i;
    }
  }
  void write(const KvTree::Place& place, Slots& slots) {
    slots.emplace_back(place.window_page, place.token);
    pool_[place.page][place.token] = next_token_;
    if (place.window_page >= 0) windows_[place.window_page][place.token] = next_token_;
    ++next_token_;
  }
  void check_launch(int num_steps, std::optional<Branch> only = {}) const {
    if (tree_.windows().window == 0) return;
    TreeSnapshot snapshot;
    tree_.snapshot(snapshot, only);
    check_windows(snapshot, tree_.windows().window, tree_.gone_page(), num_steps);
  }
  /// And sees that none is lost.
  void spoil_free_windows() {
    if (tree_.windows().window == 0) return;
    TreeSnapshot snapshot;
    tree_.snapshot(snapshot);
    std::vector<bool> is_used(windows_.size());
    for (const int32_t page : snapshot.window_pages) is_used[page] = true;
    is_used[tree_.gone_page()] = false;
    for (size_t page = 0; page < windows_.size(); ++page) {
      if (!is_used[page]) windows_[page].fill(kGarbage);
    }
    EXPECT_EQ(std::count(is_used.begin(), is_used.end(), true) + tree_.num_free_window_pages(),
              tree_.windows().num_pages);
  }
  void expect_new(Branch branch) { ASSERT_TRUE(model_.try_emplace(branch).second) << "branch " << branch; }

  KvTree tree_;
  std::vector<Page> pool_;
  std::vector<Page> windows_;  // of layers with a window; the last one stands for those that are gone
  std::map<Branch, Tokens> model_;
  int next_token_ = 0;
};

}  // namespace soliton
