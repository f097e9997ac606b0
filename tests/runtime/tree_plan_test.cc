// Plans of attention over trees: read as the kernel reads them, at every step for which they hold, they must
// give each row exactly the tokens on its path, in order, and deal the work evenly.
#include "runtime/tree/tree_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "runtime/error.h"
#include "runtime/tree/kv_tree.h"

namespace soliton {
namespace {

// Llama-3.1-8B on 128 CTAs of an H200, which read 4.6 TB/s together; the other costs are guesses.
constexpr TreeShape kLargeShape{
    .num_ctas = 128, .num_kv_heads = 8, .heads_per_kv_head = 4, .head_dim = 128, .max_item_rows = 64};
constexpr TreeCosts kLargeCosts{.item_us = 0.5,
                                .cta_bytes_per_us = 36000,
                                .mma_us = 0.004,
                                .exchange_bytes_per_us = 20000,
                                .copy_tokens = 16};
constexpr TreeShape kSmallShape{
    .num_ctas = 5, .num_kv_heads = 2, .heads_per_kv_head = 3, .head_dim = 64, .max_item_rows = 7};
constexpr SliceLimits kBalanced{.rule = SliceRule::kBalanced};
constexpr SliceLimits kFixed{.rule = SliceRule::kFixed};

/// A key and value: a token of a physical page, or the new token of a row (page -1).
using Key = std::pair<int, int>;
constexpr int kNewToken = -1;

/// The keys of one item for one row at one step, as the kernel finds them.
std::vector<Key> item_keys(const TreePlan& plan, const TreeItem& item, int row, int step) {
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

/// Items by their places for partials; each place must have one writer.
std::map<int, std::pair<const TreeItem*, int>> writers_of(const TreePlan& plan, int num_kv_heads) {
  std::map<int, std::pair<const TreeItem*, int>> writers;
  for (const TreeItem& item : plan.items) {
    for (int row = item.first_row; row < item.end_row; ++row) {
      const int partial = item.first_partial + row - item.first_row;
      EXPECT_TRUE(writers.try_emplace(partial, &item, row).second) << "two writers of partial " << partial;
      EXPECT_EQ(partial / plan.partials_per_head, item.kv_head);
    }
  }
  EXPECT_EQ(std::ssize(writers), plan.partials_per_head * num_kv_heads);
  return writers;
}

/// What row `row` of a tree must see: its path's cached tokens in order, then the new tokens above it.
std::vector<Key> expected_keys(const TreeSnapshot& tree, int row) {
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

/// Reads the plan as the kernel does at `step` and compares with `tree`, the tree at that step.
void expect_complete(const TreePlan& plan, const TreeSnapshot& tree, int num_kv_heads, int step) {
  const auto writers = writers_of(plan, num_kv_heads);
  ASSERT_EQ(plan.rows.size(), tree.rows.size());
  std::set<int> merged;
  for (int row = 0; row < std::ssize(plan.rows); ++row) {
    const TreeRow& at = plan.rows[row];
    EXPECT_EQ(at.position + step, tree.rows[row].position);
    EXPECT_EQ(at.seen_end, tree.rows[row].seen_end);
    EXPECT_EQ(at.branch, tree.rows[row].branch);
    EXPECT_EQ(at.draft, tree.rows[row].draft);
    const SnapshotNode& node = tree.nodes[tree.rows[row].node];
    const int slot = node.num_tokens + at.draft;
    EXPECT_EQ(plan.pages.at(append_page(at, step)), tree.pages.at(node.first_page + slot / kKvPageTokens));
    EXPECT_EQ(append_token(at, step), slot % kKvPageTokens);
    const std::vector<Key> expected = expected_keys(tree, row);
    for (int head = 0; head < num_kv_heads; ++head) {
      std::vector<Key> keys;
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
        keys.insert(keys.end(), found.begin(), found.end());
      }
      ASSERT_EQ(keys, expected) << "row " << row << ", KV head " << head << ", step " << step;
    }
  }
  EXPECT_EQ(merged.size(), writers.size()) << "partials that nobody merges";
}

/// Every (KV head, page, row) once, and nothing else; each CTA's growing items last.
void expect_dealt_once(const TreePlan& plan, const TreeSnapshot& tree, const TreeShape& shape) {
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
    EXPECT_LE(item.end_row - item.first_row, shape.max_item_rows);
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

TreeSnapshot snapshot_of(const KvTree& tree) {
  TreeSnapshot snapshot;
  tree.snapshot(snapshot);
  return snapshot;
}

/// Plans `tree`, then lets it grow, and checks the plan at every step.
void expect_sound(KvTree& tree, TreePlanner& planner, const TreeShape& shape, int num_steps) {
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

/// Numbers of children and tokens of each level; every leaf is a branch.
struct Level {
  int num_children;
  int num_tokens;
};

KvTree grown(const std::vector<Level>& levels) {
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

std::vector<int32_t> chain(int num_tokens) {
  std::vector<int32_t> parents;
  for (int i = 0; i < num_tokens; ++i) parents.push_back(i - 1);
  return parents;
}

std::vector<int32_t> random_draft(std::mt19937& random, int num_tokens) {
  std::vector<int32_t> parents;
  for (int i = 0; i < num_tokens; ++i) {
    int32_t parent = i - 1;
    while (parent >= 0 && random() % 3 == 0) parent = parents[parent];
    parents.push_back(parent);
  }
  return parents;
}

class TreePlanRules : public testing::TestWithParam<SliceRule> {
 protected:
  TreePlanner planner(const TreeShape& shape, int min_tokens, int max_slices = 32) const {
    return TreePlanner(shape, kLargeCosts,
                       {.rule = GetParam(), .min_tokens = min_tokens, .max_slices = max_slices});
  }
};

INSTANTIATE_TEST_SUITE_P(, TreePlanRules, testing::Values(SliceRule::kBalanced, SliceRule::kFixed),
                         [](const auto& rule) {
                           return rule.param == SliceRule::kFixed ? "Fixed" : "Balanced";
                         });

TEST_P(TreePlanRules, EdgeShapesAreComplete) {
  TreePlanner small = planner(kSmallShape, 64);
  for (const int num_tokens : {0, 1, 63, 64, 65, 300}) {
    for (const int own : {0, 1, 63, 64, 65}) {
      KvTree tree = grown({{1, num_tokens}, {3, own}});
      tree.reserve(70);
      SCOPED_TRACE(fmt::format("{} shared, {} own tokens", num_tokens, own));
      expect_sound(tree, small, kSmallShape, 70);
    }
  }
}

TEST_P(TreePlanRules, DeepTreesAreComplete) {
  KvTree tree(1000);
  Branch branch = tree.open();
  for (int depth = 0; depth < 16; ++depth) {
    tree.append(branch, 1 + depth * 9);
    branch = tree.fork(branch, 2)[depth % 2];
  }
  tree.reserve(4);
  ASSERT_EQ(snapshot_of(tree).nodes.size(), 33u);
  TreePlanner small = planner(kSmallShape, 64);
  expect_sound(tree, small, kSmallShape, 4);
}

TEST_P(TreePlanRules, ManyBranchesAreComplete) {
  KvTree tree = grown({{1, 1000}, {64, 100}});
  tree.reserve(100);
  TreePlanner large = planner(kLargeShape, 128);
  TreePlan plan;
  large.plan(snapshot_of(tree), 100, plan);
  expect_dealt_once(plan, snapshot_of(tree), kLargeShape);
  expect_complete(plan, snapshot_of(tree), kLargeShape.num_kv_heads, 0);
}

TEST_P(TreePlanRules, DraftsAreComplete) {
  std::mt19937 random(3);
  TreePlanner small = planner(kSmallShape, 64);
  for (const int num_tokens : {0, 1, 63, 64, 65, 200}) {
    for (const int num_new : {2, 63, 64, 65, 256}) {
      SCOPED_TRACE(fmt::format("{} cached, {} new tokens", num_tokens, num_new));
      KvTree tree = grown({{1, num_tokens}, {2, 20}});
      tree.draft(tree.branches()[0], random_draft(random, num_new));
      tree.draft(tree.branches()[1], chain(num_new));
      expect_sound(tree, small, kSmallShape, 10);
    }
  }
}

TEST_P(TreePlanRules, RandomTreesAreComplete) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    const TreeShape shape{.num_ctas = 1 + pick(40),
                          .num_kv_heads = 1 + pick(4),
                          .heads_per_kv_head = 1 + pick(8),
                          .head_dim = 64,
                          .max_item_rows = 1 + pick(20)};
    TreePlanner some = planner(shape, 64 * (1 + pick(3)), 1 + pick(8));
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
      const int kind = pick(seed % 2 == 0 ? 8 : 100);
      if (kind == 0) tree.draft(branch, {});
      if (kind == 1) tree.draft(branch, random_draft(random, pick(40)));
    }
    tree.reserve(1 + pick(30));
    expect_sound(tree, some, shape, 1 + pick(30));
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(TreePlanRules, SameTreeSamePlan) {
  TreePlanner once = planner(kLargeShape, 128);
  TreePlanner often = planner(kLargeShape, 128);
  KvTree tree = grown({{1, 5000}, {3, 700}, {4, 33}});
  KvTree other = grown({{2, 777}, {5, 1}});
  tree.reserve(50);
  other.reserve(50);
  TreePlan first, second;
  once.plan(snapshot_of(tree), 50, first);
  for (int i = 0; i < 3; ++i) {
    often.plan(snapshot_of(other), 20, second);
    often.plan(snapshot_of(tree), 50, second);
  }
  const auto same = [](const auto& a, const auto& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
  };
  EXPECT_TRUE(same(first.items, second.items));
  EXPECT_TRUE(same(first.first_item, second.first_item));
  EXPECT_TRUE(same(first.merges, second.merges));
  EXPECT_TRUE(same(first.rows, second.rows));
  EXPECT_EQ(first.pages, second.pages);
}

/// The slices of a branch's row, by node on its path and first token: cached and new tokens.
std::vector<std::array<int, 4>> slices_of(const TreePlan& plan, const TreeSnapshot& tree, Branch branch,
                                          int step) {
  const auto writers = writers_of(plan, kLargeShape.num_kv_heads);
  const auto at = std::find_if(plan.rows.begin(), plan.rows.end(),
                               [&](const TreeRow& row) { return row.branch == branch; });
  std::vector<int> path;
  for (int node = tree.rows[at - plan.rows.begin()].node; node >= 0; node = tree.nodes[node].parent) {
    path.insert(path.begin(), node);
  }
  std::vector<std::array<int, 4>> slices;
  for (int m = at->first_merge; m < at->end_merge; ++m) {
    if (step < plan.merges[m].first_step) continue;
    const TreeItem& item = *writers.at(plan.merges[m].partial).first;
    int depth = static_cast<int>(path.size()) - 1;
    while (tree.nodes[path[depth]].first_page > item.first_page) --depth;
    slices.push_back({depth, item.first_page - tree.nodes[path[depth]].first_page, cached_tokens(item, step),
                      takes_new_tokens(item, step) ? item.end_new - item.first_new : 0});
  }
  return slices;
}

TEST(TreePlan, FixedSlicesDependOnTheBranchAlone) {
  constexpr int kSteps = 300;  // past 32 slices of 128 tokens, and past several boundaries
  KvTree tree = grown({{1, 3000}, {4, 500}, {8, 3950}});
  const std::vector<Branch> branches = tree.branches();
  const Branch branch = branches[9];
  KvTree alone = tree;
  for (const Branch other : branches) {
    if (other != branch) alone.draft(other, {});
  }
  TreePlanner planner(kLargeShape, kLargeCosts, kFixed);
  TreePlan among_plan, alone_plan;
  TreeSnapshot among_tree, alone_tree;
  int among_step = 0, alone_step = 0;
  std::set<int> lengths;
  for (int step = 0; step < kSteps; ++step, ++among_step, ++alone_step) {
    if (step == 0 || among_step == std::min(17, among_plan.num_steps)) {  // planned again and again
      tree.reserve(50);
      among_tree = snapshot_of(tree);
      planner.plan(among_tree, 50, among_plan);
      among_step = 0;
    }
    if (step == 0 || alone_step == alone_plan.num_steps) {  // planned as rarely as possible
      alone.reserve(200);
      alone_tree = snapshot_of(alone);
      planner.plan(alone_tree, 200, alone_plan);
      alone_step = 0;
    }
    const auto slices = slices_of(alone_plan, alone_tree, branch, alone_step);
    ASSERT_EQ(slices_of(among_plan, among_tree, branch, among_step), slices) << "step " << step;
    int own = 0;
    for (const auto& [depth, page, cached, fresh] : slices) {
      if (depth < 2) continue;
      own += cached + fresh;
      EXPECT_EQ(page * kKvPageTokens % planner.fixed_slice_tokens(3950 + step + 1), 0);
    }
    EXPECT_EQ(own, 3950 + step + 1);
    lengths.insert(planner.fixed_slice_tokens(own));
    for (const Branch each : branches) tree.append(each, 1);
    alone.append(branch, 1);
  }
  EXPECT_EQ(lengths, (std::set<int>{128, 256}));
}

struct Workload {
  const char* name;
  std::vector<Level> levels;
};

const Workload kWorkloads[] = {
    {"one branch of 6144", {{1, 6144}}},
    {"one branch of 120000", {{1, 120000}}},
    {"few-shot 20", {{1, 4000}, {20, 400}}},
    {"few-shot 50, first step", {{1, 4000}, {50, 0}}},
    {"few-shot 50", {{1, 4000}, {50, 400}}},
    {"binary 6", {{1, 500}, {2, 500}, {2, 500}, {2, 500}, {2, 500}, {2, 500}, {2, 500}}},
    {"document QA 32", {{1, 120000}, {32, 1200}}},
    {"fasttree A", {{1, 4000}, {10, 400}}},
    {"fasttree B", {{1, 8}, {2, 256}, {32, 32}}},
    {"fasttree C", {{1, 1024}, {16, 256}, {4, 32}}},
    {"parallel 32", {{1, 32768}, {32, 100}}},
};

/// Time of all work, uncut and spread evenly, in the middle of a plan: no plan takes less.
int64_t ideal_ps(const TreeSnapshot& tree, const TreeShape& shape, int num_steps) {
  const double read_us = 2.0 * kv_half_bytes(shape.head_dim) / kKvPageTokens / kLargeCosts.cta_bytes_per_us;
  const double row_us =
      4.0 * tree_partial_words(shape.heads_per_kv_head, shape.head_dim) / kLargeCosts.exchange_bytes_per_us;
  double total_us = 0;
  for (const SnapshotNode& node : tree.nodes) {
    const int cached = node.num_tokens + (node.num_new > 0 ? num_steps / 2 : 0);
    const int rows = node.end_row - node.first_row;
    const double mma_us = ceil_divide(rows * shape.heads_per_kv_head, 16) * kLargeCosts.mma_us;
    total_us += kLargeCosts.item_us + rows * row_us + cached * std::max(read_us, mma_us);
  }
  return static_cast<int64_t>(1e6 * total_us * shape.num_kv_heads / shape.num_ctas);
}

/// Busiest CTA, mean of the CTAs and longest item at one step, from the items' definition.
struct Loads {
  double busiest_us = 0;
  double mean_us = 0;
  double longest_us = 0;
};

Loads loads_of(const TreePlan& plan, const TreeShape& shape, const TreeCosts& costs, int step) {
  Loads loads;
  for (int cta = 0; cta < shape.num_ctas; ++cta) {
    double load_us = 0;
    for (int i = plan.first_item[cta]; i < plan.first_item[cta + 1]; ++i) {
      const TreeItem& item = plan.items[i];
      const int cached = cached_tokens(item, step);
      const int fresh = takes_new_tokens(item, step) ? item.end_new - item.first_new : 0;
      if (cached + fresh == 0) continue;
      const int rows = item.end_row - item.first_row;
      const double bytes =
          2.0 * kv_half_bytes(shape.head_dim) / kKvPageTokens * round_up(cached, costs.copy_tokens);
      const double mma_us = (cached + fresh) * ceil_divide(rows * shape.heads_per_kv_head, 16) * costs.mma_us;
      const double partial_bytes = 4.0 * rows * tree_partial_words(shape.heads_per_kv_head, shape.head_dim);
      const double cost_us = costs.item_us + std::max(bytes / costs.cta_bytes_per_us, mma_us) +
                             partial_bytes / costs.exchange_bytes_per_us;
      load_us += cost_us;
      loads.longest_us = std::max(loads.longest_us, cost_us);
    }
    loads.busiest_us = std::max(loads.busiest_us, load_us);
    loads.mean_us += load_us / shape.num_ctas;
  }
  return loads;
}

TEST(TreePlan, PredictsTheTimeOfItsItems) {
  KvTree tree = grown({{1, 2000}, {30, 150}, {2, 1}});
  tree.draft(tree.branches()[3], {});
  tree.reserve(100);
  TreePlanner planner(kLargeShape, kLargeCosts, kBalanced);
  TreePlan plan;
  planner.plan(snapshot_of(tree), 100, plan);
  const auto expect_predicted = [&](int step) {
    const Loads loads = loads_of(plan, kLargeShape, kLargeCosts, step);
    const TreeTime time = planner.time_at(plan, step);
    EXPECT_NEAR(static_cast<double>(time.makespan_ps), 1e6 * loads.busiest_us, 1e-4 * 1e6 * loads.busiest_us);
    const double bound_us = std::max(loads.mean_us, loads.longest_us);
    EXPECT_NEAR(static_cast<double>(time.bound_ps), 1e6 * bound_us, 1e-4 * 1e6 * bound_us);
  };
  for (const int step : {0, 1, 17, 50, 99}) expect_predicted(step);
  tree.draft(tree.branches()[0], chain(256));
  planner.plan(snapshot_of(tree), 1, plan);
  expect_predicted(0);
}

TEST(TreePlan, WorkloadsAreBalanced) {
  constexpr int kSteps = 64;
  std::printf("us at 128 CTAs: busiest CTA, bound of its items, uncut work; by time, then by length\n");
  for (const Workload& workload : kWorkloads) {
    SCOPED_TRACE(workload.name);
    KvTree tree = grown(workload.levels);
    tree.reserve(kSteps);
    const TreeSnapshot snapshot = snapshot_of(tree);
    const int64_t ideal = ideal_ps(snapshot, kLargeShape, kSteps);
    std::printf("%-24s", workload.name);
    int64_t by_time = 0;
    for (const SliceLimits& limits : {kBalanced, kFixed}) {
      TreePlanner planner(kLargeShape, kLargeCosts, limits);
      TreePlan plan;
      planner.plan(snapshot, kSteps, plan);
      ASSERT_EQ(plan.num_steps, kSteps);
      const auto [makespan, bound] = plan.planned;
      std::printf("  %7.2f %7.2f %7.2f", 1e-6 * static_cast<double>(makespan),
                  1e-6 * static_cast<double>(bound), 1e-6 * static_cast<double>(ideal));
      EXPECT_GE(makespan, bound);
      EXPECT_GE(bound * 1.001, static_cast<double>(ideal));
      if (limits.rule == SliceRule::kBalanced) {
        by_time = makespan;
        EXPECT_LE(static_cast<double>(makespan), 1.15 * static_cast<double>(bound));
        EXPECT_LE(static_cast<double>(makespan), 1.4 * static_cast<double>(ideal));
      } else {
        EXPECT_LE(static_cast<double>(by_time), 1.01 * static_cast<double>(makespan));
      }
    }
    std::printf("\n");
  }
}

TEST_P(TreePlanRules, NoCtaHasMoreThanTheMeanAndAnItem) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    KvTree tree = grown({{1 + pick(3), pick(3000)}, {1 + pick(6), pick(1000)}, {1 + pick(4), pick(200)}});
    TreeShape shape = kLargeShape;
    shape.num_ctas = 1 + pick(200);
    tree.reserve(1);
    TreePlan plan;
    planner(shape, 64 * (1 + pick(4)), 1 + pick(40)).plan(snapshot_of(tree), 1, plan);
    const Loads loads = loads_of(plan, shape, kLargeCosts, 0);
    EXPECT_LE(loads.busiest_us, 1.001 * (loads.mean_us + loads.longest_us * (1 - 1.0 / shape.num_ctas)));
  }
}

TEST(TreePlan, ReplansWhenLengthsHaveGrownApart) {
  TreePlanner planner(kLargeShape, kLargeCosts, kBalanced);
  TreePlan plan;
  // Evenly dealt, all branches growing alike: not before the plan's end.
  KvTree even = grown({{1, 4096}, {64, 256}});
  even.reserve(256);
  planner.plan(snapshot_of(even), 32, plan);
  EXPECT_EQ(plan.num_steps, 32);
  for (int step = 0; step < 32; ++step) EXPECT_FALSE(planner.replan_due(plan, step)) << step;
  EXPECT_TRUE(planner.replan_due(plan, 32));
  // Few branches that grow to many times their length, beside a long static prompt: before its end.
  KvTree uneven = grown({{1, 8192}, {3, 1}});
  uneven.reserve(4000);
  planner.plan(snapshot_of(uneven), 4000, plan);
  int due = 0;
  while (!planner.replan_due(plan, due)) ++due;
  const TreeTime time = planner.time_at(plan, due);
  const double planned =
      static_cast<double>(plan.planned.makespan_ps) / static_cast<double>(plan.planned.bound_ps);
  EXPECT_LT(due, plan.num_steps);
  EXPECT_GT(static_cast<double>(time.makespan_ps) / static_cast<double>(time.bound_ps), 1.1 * planned);
}

TEST(TreePlan, HoldsOnlyWhileTokensAreReserved) {
  TreePlanner planner(kSmallShape, kLargeCosts, kBalanced);
  TreePlan plan;
  KvTree tree = grown({{1, 100}, {2, 60}});
  planner.plan(snapshot_of(tree), 50, plan);
  EXPECT_EQ(plan.num_steps, 4);
  tree.append(tree.branches()[0], 4);
  try {
    planner.plan(snapshot_of(tree), 1, plan);
    ADD_FAILURE() << "a full page and none reserved";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kInternal);
    EXPECT_STREQ(error.what(),
                 "tree plan: tokens reserved at a branch: expected one for each new token, got 0");
  }
}

TEST_P(TreePlanRules, TreesWithoutRowsHaveNoWork) {
  TreePlanner small = planner(kSmallShape, 64);
  TreePlan plan;
  KvTree tree = grown({{1, 100}});
  const Branch branch = tree.branches()[0];
  small.plan(snapshot_of(tree), 5, plan);
  EXPECT_FALSE(plan.items.empty());
  const auto expect_empty = [&] {
    small.plan(snapshot_of(tree), 5, plan);
    EXPECT_TRUE(plan.items.empty());
    EXPECT_TRUE(plan.rows.empty());
    EXPECT_EQ(plan.first_item, std::vector<int32_t>(kSmallShape.num_ctas + 1));
    EXPECT_FALSE(small.replan_due(plan, 0));
  };
  tree.draft(branch, {});  // paused
  expect_empty();
  tree.append(branch, 0);
  small.plan(snapshot_of(tree), 5, plan);
  EXPECT_FALSE(plan.items.empty());
  tree.prune(branch);
  expect_empty();
}

TEST(TreePlan, RefusesNumbersThatCannotBe) {
  const auto refused = [](TreeShape shape, TreeCosts costs, SliceLimits limits) {
    try {
      TreePlanner planner(shape, costs, limits);
    } catch (const Error& error) {
      return error.code() == ExitCode::kInternal;
    }
    return false;
  };
  EXPECT_FALSE(refused(kLargeShape, kLargeCosts, kFixed));
  TreeShape many = kLargeShape;
  many.num_ctas = 5000;
  EXPECT_TRUE(refused(many, kLargeCosts, kFixed));
  EXPECT_TRUE(refused(kLargeShape, {}, kFixed));
  EXPECT_TRUE(refused(kLargeShape, kLargeCosts, {.rule = SliceRule::kFixed, .min_tokens = 100}));
  TreeCosts odd = kLargeCosts;
  odd.copy_tokens = 48;
  EXPECT_TRUE(refused(kLargeShape, odd, kFixed));
}

/// Plans are made while a request waits: 50 us for 64 branches is the aim, and 4 times that fails, since
/// machines that run tests are slow and busy.
TEST_P(TreePlanRules, SixtyFourBranchesTakeMicroseconds) {
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "times of an optimised build only";
#endif
  constexpr int kRounds = 401;
  constexpr double kMostUs = 4 * 50;
  std::pair<const char*, KvTree> trees[] = {
      {"64 under one", grown({{1, 4000}, {64, 400}})},
      {"fasttree C", grown({{1, 1024}, {16, 256}, {4, 32}})},
      {"binary 6", grown({{1, 500}, {2, 500}, {2, 500}, {2, 500}, {2, 500}, {2, 500}, {2, 500}})},
      {"256 drafted", grown({{1, 4000}})},
  };
  for (auto& [name, tree] : trees) {
    tree.reserve(64);
    if (tree.branches().size() == 1) {
      std::mt19937 random(1);
      tree.draft(tree.branches()[0], random_draft(random, 256));
    }
    TreePlanner once = planner(kLargeShape, 128);
    TreePlan plan;
    TreeSnapshot snapshot;
    std::vector<double> snapshot_us, plan_us;
    for (int round = 0; round < kRounds; ++round) {
      const auto start = std::chrono::steady_clock::now();
      tree.snapshot(snapshot);
      const auto middle = std::chrono::steady_clock::now();
      once.plan(snapshot, 64, plan);
      const auto end = std::chrono::steady_clock::now();
      snapshot_us.push_back(std::chrono::duration<double, std::micro>(middle - start).count());
      plan_us.push_back(std::chrono::duration<double, std::micro>(end - middle).count());
    }
    const auto median = [](std::vector<double>& times) {
      std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
      return times[kRounds / 2];
    };
    const double us = median(plan_us);
    std::printf("%-12s plan %6.1f us (%zu items, %zu merges), snapshot %4.1f us\n", name, us,
                plan.items.size(), plan.merges.size(), median(snapshot_us));
    EXPECT_LT(us, kMostUs) << name;
  }
}

}  // namespace
}  // namespace soliton
