// Plans of attention over trees, read as the kernel reads them; trees to plan; and shapes and costs to plan for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/engine/tree/kv_tree.h"
#include "runtime/engine/tree/tree_plan.h"
#include "tree_drafts.h"

namespace soliton {

inline constexpr TreeShape kLargeShape{
    .num_ctas = 128, .num_kv_heads = 8, .heads_per_kv_head = 4, .head_dim = 128, .max_item_rows = 64};
inline constexpr TreeCosts kLargeCosts{
    .item_us = 0.5, .mma_us = 0.004, .read_bytes_per_s = 4.6e12, .exchange_bytes_per_s = 2.5e12};
inline constexpr TreeShape kSmallShape{
    .num_ctas = 5, .num_kv_heads = 2, .heads_per_kv_head = 3, .head_dim = 64, .max_item_rows = 7};
inline constexpr SliceLimits kBalanced{.rule = SliceRule::kBalanced};
inline constexpr SliceLimits kFixed{.rule = SliceRule::kFixed};

/// A key and value: a token of a physical page, or the new token of a row (page -1).
using Key = std::pair<int, int>;
inline constexpr int kNewToken = -1;

/// The keys of one item for one row at one step, as the kernel finds them.
inline std::vector<Key> item_keys(const TreePlan& plan, const TreeItem& item, int row, int step) {
  std::vector<Key> keys;
  for (int token = 0; token < cached_tokens(item, step); ++token) {
    keys.push_back({plan.pages.at(item.first_page + token / kKvPageTokens), token % kKvPageTokens});
  }
  if (takes_new_tokens(item, step)) {
    for (int other = item.first_new; other < item.end_new; ++other) {
      if (other <= row && row < plan.rows.at(other).seen_end) keys.push_back({kNewToken, other});
    }
  }
  return keys;
}

/// The items that end rows, by KV head and row: each must have one.
inline std::map<std::pair<int, int>, const TreeItem*> ends_of(const TreePlan& plan) {
  std::map<std::pair<int, int>, const TreeItem*> ends;
  for (const TreeItem& item : plan.items) {
    for (int row = item.first_row; item.first_partial < 0 && row < item.end_row; ++row)
      EXPECT_TRUE(ends.try_emplace({item.kv_head, row}, &item).second) << "two items end row " << row;
  }
  return ends;
}

/// Items by their places for partials; each place must have one writer.
inline std::map<int, std::pair<const TreeItem*, int>> writers_of(const TreePlan& plan, int num_kv_heads) {
  std::map<int, std::pair<const TreeItem*, int>> writers;
  bool ends = false;
  for (const TreeItem& item : plan.items) {
    ends = ends || item.first_partial < 0;
    for (int row = item.first_row; item.first_partial >= 0 && row < item.end_row; ++row) {
      const int partial = item.first_partial + row - item.first_row;
      EXPECT_TRUE(writers.try_emplace(partial, &item, row).second) << "two writers of partial " << partial;
      EXPECT_EQ(partial / plan.partials_per_head, item.kv_head);
    }
  }
  EXPECT_LE(std::ssize(writers), plan.partials_per_head * num_kv_heads);
  if (!ends) {
    EXPECT_EQ(std::ssize(writers), plan.partials_per_head * num_kv_heads);
  }
  return writers;
}

/// What row `row` of a tree must see: its path's cached tokens in order, then the new tokens above it.
inline std::vector<Key> expected_keys(const TreeSnapshot& tree, int row) {
  std::vector<int> path;
  for (int node = tree.rows[row].node; node >= 0; node = tree.nodes[node].parent) path.push_back(node);
  std::vector<Key> keys;
  for (size_t i = path.size(); i-- > 0;) {
    const SnapshotNode& node = tree.nodes[path[i]];
    for (int token = 0; token < node.num_tokens; ++token) {
      keys.push_back({tree.pages[node.first_page + token / kKvPageTokens], token % kKvPageTokens});
    }
  }
  for (int other = tree.nodes[tree.rows[row].node].first_row; other <= row; ++other) {
    if (row < tree.rows[other].seen_end) keys.push_back({kNewToken, other});
  }
  return keys;
}

/// Of what a query at `position` sees nothing is left out, nor more than a page's tokens that no query sees kept, but for
/// the last page.
inline void expect_window(const TreeItem& item, int position, int step, int window) {
  const TreeItem limited = without_unseen(item, step, first_seen(item.least_query + step, window));
  const int dropped = limited.first_position - item.first_position;
  EXPECT_EQ(dropped % kKvPageTokens, 0);
  EXPECT_EQ(limited.first_page - item.first_page, dropped / kKvPageTokens);
  EXPECT_EQ(cached_tokens(limited, step), cached_tokens(item, step) - dropped);
  EXPECT_EQ(takes_new_tokens(limited, step), takes_new_tokens(item, step));
  EXPECT_LE(item.least_query + step, position);
  EXPECT_LE(limited.first_position, std::max(item.first_position, first_seen(position, window)));
  if (cached_tokens(limited, step) > kKvPageTokens) {
    EXPECT_GT(limited.first_position + kKvPageTokens, first_seen(item.least_query + step, window));
  }
}

/// Reads the plan as the kernel does at `step` and compares with `tree`, the tree at that step.
/// With a `row_step` of every row_step-th row only.
inline void expect_complete(const TreePlan& plan, const TreeSnapshot& tree, int num_kv_heads, int step,
                            int row_step = 1) {
  const auto writers = writers_of(plan, num_kv_heads);
  const auto ends = ends_of(plan);
  ASSERT_EQ(plan.rows.size(), tree.rows.size());
  std::set<int> merged;
  for (int row = 0; row < std::ssize(plan.rows); row += row_step) {
    const TreeRow& at = plan.rows[row];
    EXPECT_EQ(at.position + step, tree.rows[row].position);
    EXPECT_EQ(at.seen_end, tree.rows[row].seen_end);
    EXPECT_EQ(at.branch, tree.rows[row].branch);
    EXPECT_EQ(at.draft, tree.rows[row].draft);
    const SnapshotNode& node = tree.nodes[tree.rows[row].node];
    const int slot = node.num_tokens + at.draft;
    EXPECT_EQ(plan.pages.at(at.first_page + (at.slot + step) / kKvPageTokens),
              tree.pages.at(node.first_page + slot / kKvPageTokens));
    EXPECT_EQ((at.slot + step) % kKvPageTokens, slot % kKvPageTokens);
    const std::vector<Key> expected = expected_keys(tree, row);
    for (int head = 0; head < num_kv_heads; ++head) {
      std::vector<Key> keys;
      const auto end = ends.find({head, row});
      EXPECT_EQ(end != ends.end(), at.first_merge == at.end_merge) << "row " << row;
      if (end != ends.end()) keys = item_keys(plan, *end->second, row, step);
      for (int m = at.first_merge; m < at.end_merge; ++m) {
        const TreeMerge& merge = plan.merges.at(m);
        const int partial = merge.partial + head * plan.partials_per_head;
        EXPECT_TRUE(merged.insert(partial).second);
        const auto& [item, writer_row] = writers.at(partial);
        EXPECT_EQ(writer_row, row);
        const bool idle = cached_tokens(*item, step) == 0 && !takes_new_tokens(*item, step);
        EXPECT_EQ(idle, step < merge.first_step);
        if (step < merge.first_step) continue;
        const std::vector<Key> found = item_keys(plan, *item, row, step);
        if (cached_tokens(*item, step) > 0) {
          EXPECT_EQ(item->first_position, std::ssize(keys));
        }
        for (const int window : {0, 1, 64, 100}) expect_window(*item, at.position + step, step, window);
        keys.insert(keys.end(), found.begin(), found.end());
      }
      ASSERT_EQ(keys, expected) << "row " << row << ", KV head " << head << ", step " << step;
    }
  }
  if (row_step == 1) {
    EXPECT_EQ(merged.size(), writers.size()) << "partials that nobody merges";
  }
}

/// Every (KV head, page, row) once, and nothing else; each CTA's growing items last.
inline void expect_dealt_once(const TreePlan& plan, const TreeSnapshot& tree, const TreeShape& shape) {
  ASSERT_EQ(std::ssize(plan.first_item), shape.num_ctas + 1);
  EXPECT_EQ(plan.first_item.front(), 0);
  EXPECT_EQ(plan.first_item.back(), std::ssize(plan.items));
  for (int cta = 0; cta < shape.num_ctas; ++cta) {
    const auto first = plan.items.begin() + plan.first_item[cta];
    const auto end = plan.items.begin() + plan.first_item[cta + 1];
    EXPECT_TRUE(std::is_partitioned(first, end, [](const TreeItem& item) { return !is_appended_to(item); }));
  }
  std::map<std::tuple<int, int, int>, int> seen;
  for (const TreeItem& item : plan.items) {
    EXPECT_LE(item.end_row - item.first_row,
              std::max(shape.max_item_rows, shape.max_item_tiles * shape.tile_queries / shape.heads_per_kv_head));
    EXPECT_LE(item.end_new, item.end_row) << "new tokens that no row of the item sees";
    for (int page = 0; page < num_pages(item, 0); ++page) {
      for (int row = item.first_row; row < item.end_row; ++row)
        ++seen[{item.kv_head, item.first_page + page, row}];
    }
  }
  std::map<std::tuple<int, int, int>, int> expected;
  for (const SnapshotNode& node : tree.nodes) {
    for (int page = 0; page < ceil_divide(node.num_tokens, kKvPageTokens); ++page) {
      for (int head = 0; head < shape.num_kv_heads; ++head) {
        for (int row = node.first_row; row < node.end_row; ++row)
          expected[{head, node.first_page + page, row}] = 1;
      }
    }
  }
  EXPECT_EQ(seen, expected);
}

inline TreeSnapshot snapshot_of(const KvTree& tree) {
  TreeSnapshot snapshot;
  tree.snapshot(snapshot);
  return snapshot;
}

/// Plans `tree`, then lets it grow, and checks the plan at every step.
inline void expect_sound(KvTree& tree, TreePlanner& planner, const TreeShape& shape, int num_steps) {
  TreePlan plan;
  const TreeSnapshot first = snapshot_of(tree);
  planner.plan(first, num_steps, plan);
  EXPECT_GE(plan.num_steps, 1);
  EXPECT_LE(plan.num_steps, num_steps);
  expect_dealt_once(plan, first, shape);
  for (int step = 0; step < plan.num_steps; ++step) {
    expect_complete(plan, snapshot_of(tree), shape.num_kv_heads, step);
    ASSERT_FALSE(testing::Test::HasFailure());
    if (plan.num_steps == 1) break;
    for (const SnapshotRow& row : first.rows) tree.append(row.branch, 1);
  }
}

/// A tree after random operations, with steps reserved; every n-th of its branches or so has a draft, and as many are paused.
inline KvTree random_tree(std::mt19937& random, int n) {
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  KvTree tree(100000);
  std::vector<Branch> branches = {tree.open(), tree.open()};
  for (int i = 0; i < 2 + pick(15); ++i) {
    const size_t at = random() % branches.size();
    const std::vector<Branch> forked = tree.fork(branches[at], 1 + pick(4));
    branches[at] = branches.back();
    branches.pop_back();
    for (const Branch branch : forked) {
      tree.append(branch, pick(4) == 0 ? pick(600) : pick(70));
      branches.push_back(branch);
    }
  }
  for (int i = 0; i < pick(4) && branches.size() > 1; ++i) {  // leaves nodes joined and split
    const Branch branch = branches[random() % branches.size()];
    tree.truncate(branch, pick(tree.num_tokens(branch) + 1));
    tree.prune(branches.back());
    branches.pop_back();
  }
  for (const Branch branch : branches) {
    const int kind = pick(n);
    if (kind == 0) tree.draft(branch, {});
    if (kind == 1) tree.draft(branch, random_draft(random, pick(40)));
  }
  tree.reserve(1 + pick(30));
  return tree;
}

/// Numbers of children and tokens of each level; every leaf is a branch.
struct Level {
  int num_children;
  int num_tokens;
};

inline KvTree grown(const std::vector<Level>& levels) {
  KvTree tree(100000);
  std::vector<Branch> branches = {tree.open()};
  for (const Level& level : levels) {
    std::vector<Branch> next;
    for (const Branch branch : branches) {
      for (const Branch child : tree.fork(branch, level.num_children)) {
        tree.append(child, level.num_tokens);
        next.push_back(child);
      }
    }
    branches = next;
  }
  return tree;
}

class TreePlanRules : public testing::TestWithParam<SliceRule> {
 protected:
  TreePlanner planner(const TreeShape& shape, int min_tokens, int max_slices = 32) const {
    return TreePlanner(shape, kLargeCosts,
                       {.rule = GetParam(), .min_tokens = min_tokens, .max_slices = max_slices});
  }
};

}  // namespace soliton
