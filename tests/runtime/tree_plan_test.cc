// Plans of attention over trees: read as the kernel reads them, at every step for which they hold, they must
// give each row exactly the tokens on its path, in order, and deal the work evenly.
#include "runtime/engine/tree/tree_plan.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "long_tests.h"
#include "models/error.h"
#include "runtime/tree_plan_fixture.h"

namespace soliton {
namespace {

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

// Of a long chunk of a prompt rows are left whole: nothing is merged, and CTAs have as much to do.
TEST(TreePlan, LeavesRowsOfALongChunkWhole) {
  SOLITON_LONG_RUNS_ONLY("ItemsEndWhereTilesOfQueriesDo plans chunks too");
  TreeShape shape = kLargeShape;
  shape.max_item_rows = 32;
  shape.ends_rows = true;
  for (const int num_tokens : {0, 100, 3072}) {
    TreePlanner planner(shape, kLargeCosts, kBalanced);
    KvTree tree = grown({{1, num_tokens}});
    tree.draft(tree.branches()[0], chain(1024));
    TreePlan plan;
    planner.plan(snapshot_of(tree), 1, plan);
    EXPECT_EQ(plan.partials_per_head, 0) << num_tokens;
    EXPECT_TRUE(plan.merges.empty()) << num_tokens;
    expect_dealt_once(plan, snapshot_of(tree), shape);
    expect_complete(plan, snapshot_of(tree), shape.num_kv_heads, 0, 1);
    EXPECT_LE(static_cast<double>(plan.planned.makespan_ps),
              1.05 * static_cast<double>(plan.planned.bound_ps));
  }
}

// A chunk of few rows is cut as before: some CTAs would have nothing to do.
TEST(TreePlan, CutsRowsOfAShortChunk) {
  TreeShape shape = kLargeShape;
  shape.max_item_rows = 32;
  shape.ends_rows = true;
  TreePlanner planner(shape, kLargeCosts, kBalanced);
  KvTree tree = grown({{1, 8000}});
  tree.draft(tree.branches()[0], chain(64));
  TreePlan plan;
  planner.plan(snapshot_of(tree), 1, plan);
  EXPECT_GT(plan.partials_per_head, 0);
  expect_complete(plan, snapshot_of(tree), shape.num_kv_heads, 0);
}

// Where items end rows, those with tokens in several slices are merged all the same.
TEST(TreePlan, EndsRowsThatOneItemHas) {
  TreeShape shape = kSmallShape;
  shape.ends_rows = true;
  TreePlanner small(shape, kLargeCosts, {.rule = SliceRule::kBalanced, .min_tokens = 64});
  for (const int num_tokens : {0, 1, 64, 300}) {
    for (const int own : {1, 65}) {
      KvTree tree = grown({{1, num_tokens}, {3, own}});
      tree.draft(tree.branches()[0], chain(100));
      expect_sound(tree, small, shape, 1);
    }
  }
}

// Three pages in items of two at most leave a piece of one page, shorter than pieces should be.
TEST_P(TreePlanRules, ItemsOfTwoPagesAreComplete) {
  TreeShape shape = kSmallShape;
  shape.resident_tokens = 2 * kKvPageTokens;
  shape.streamed_query_tiles = 0;
  TreePlanner small = planner(shape, 2 * kKvPageTokens);
  KvTree tree = grown({{10, 3 * kKvPageTokens - 12}});
  tree.reserve(4);
  expect_sound(tree, small, shape, 4);
}

TEST_P(TreePlanRules, RandomTreesAreComplete) {
  for (unsigned seed = 0; seed < (long_tests() ? 200 : 50); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    const TreeShape shape{.num_ctas = 1 + pick(40),
                          .num_kv_heads = 1 + pick(4),
                          .heads_per_kv_head = 1 + pick(8),
                          .head_dim = 64,
                          .max_item_rows = 1 + pick(20)};
    TreePlanner some = planner(shape, 64 * (1 + pick(3)), 1 + pick(8));
    KvTree tree = random_tree(random, seed % 2 == 0 ? 8 : 100);
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

using Writers = std::map<int, std::pair<const TreeItem*, int>>;

/// The slices of a branch's row of which it sees a token, by node on its path and first page in that: cached and new tokens, and
/// the place in the row's merge list. With a window, without the pages before it.
std::vector<std::array<int, 5>> slices_of(const TreePlan& plan, const Writers& writers,
                                          const TreeSnapshot& tree, Branch branch, int step, int window) {
  const auto at = std::find_if(plan.rows.begin(), plan.rows.end(),
                               [&](const TreeRow& row) { return row.branch == branch; });
  std::vector<int> path;
  for (int node = tree.rows[at - plan.rows.begin()].node; node >= 0; node = tree.nodes[node].parent) {
    path.insert(path.begin(), node);
  }
  std::vector<std::array<int, 5>> slices;
  for (int m = at->first_merge; m < at->end_merge; ++m) {
    if (step < plan.merges[m].first_step) continue;
    TreeItem item = *writers.at(plan.merges[m].partial).first;
    item = without_unseen(item, step, first_seen(item.least_query + step, window));
    const bool is_seen =
        item.first_position + cached_tokens(item, step) > first_seen(at->position + step, window);
    if (!is_seen && !takes_new_tokens(item, step)) continue;
    int depth = static_cast<int>(path.size()) - 1;
    while (tree.nodes[path[depth]].first_page > item.first_page) --depth;
    slices.push_back({depth, item.first_page - tree.nodes[path[depth]].first_page, cached_tokens(item, step),
                      takes_new_tokens(item, step) ? item.end_new - item.first_new : 0, m - at->first_merge});
  }
  return slices;
}

/// With a window of so many keys; 0: none.
void expect_fixed(int window) {
  constexpr int kSteps = 300;  // past 32 slices of 128 tokens, and past several boundaries
  KvTree tree = grown({{1, 3000}, {4, 500}, {8, 3950}});
  const std::vector<Branch> branches = tree.branches();
  const Branch branch = branches[9];
  tree.append(branches[10], 300);  // its window begins elsewhere
  KvTree alone = tree;
  for (const Branch other : branches) {
    if (other != branch) alone.draft(other, {});
  }
  TreeShape shape = kLargeShape;
  if (window > 0) shape.reaches = {{.window = window}};
  TreePlanner planner(shape, kLargeCosts, kFixed);
  TreePlan among_plan, alone_plan;
  TreeSnapshot among_tree, alone_tree;
  Writers among_writers, alone_writers;
  int among_step = 0, alone_step = 0;
  std::set<int> lengths;
  for (int step = 0; step < kSteps; ++step, ++among_step, ++alone_step) {
    if (step == 0 || among_step == std::min(17, among_plan.num_steps)) {  // planned again and again
      tree.reserve(50);
      among_tree = snapshot_of(tree);
      planner.plan(among_tree, 50, among_plan);
      among_writers = writers_of(among_plan, kLargeShape.num_kv_heads);
      among_step = 0;
    }
    if (step == 0 || alone_step == alone_plan.num_steps) {  // planned as rarely as possible
      alone.reserve(200);
      alone_tree = snapshot_of(alone);
      planner.plan(alone_tree, 200, alone_plan);
      alone_writers = writers_of(alone_plan, kLargeShape.num_kv_heads);
      alone_step = 0;
    }
    const auto slices = slices_of(alone_plan, alone_writers, alone_tree, branch, alone_step, window);
    ASSERT_EQ(slices_of(among_plan, among_writers, among_tree, branch, among_step, window), slices)
        << "step " << step;
    int own = 0;
    for (const auto& [depth, page, cached, fresh, place] : slices) {
      if (depth < 2) continue;
      own += cached + fresh;
      if (window == 0) {
        EXPECT_EQ(page * kKvPageTokens % planner.fixed_slice_tokens(3950 + step + 1), 0);
      }
    }
    const int first = std::max(0, 3950 + step - window + 1) / kKvPageTokens * kKvPageTokens;
    EXPECT_EQ(own, 3950 + step + 1 - (window == 0 ? 0 : first));
    lengths.insert(planner.fixed_slice_tokens(3950 + step + 1));
    for (const Branch each : branches) tree.append(each, 1);
    alone.append(branch, 1);
  }
  EXPECT_EQ(lengths, (std::set<int>{128, 256}));
}

TEST(TreePlan, FixedSlicesDependOnTheBranchAlone) {
  expect_fixed(0);
}

// Those before a window are left out as steps go on; what is merged next to what stays the same.
TEST(TreePlan, FixedSlicesOfAWindowDependOnTheBranchAlone) {
  expect_fixed(1000);
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
  odd.exchange_bytes_per_s = 0;
  EXPECT_TRUE(refused(kLargeShape, odd, kFixed));
}

}  // namespace
}  // namespace soliton
