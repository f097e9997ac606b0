// Plans of attention over trees where layers have windows or chunks: read as the kernel reads them in a layer, each row must be
// given the keys that it sees, once and in order; what no row sees is in no item; and CTAs have as much to do in each layer.
#include <fmt/format.h>

#include <numeric>

#include "long_tests.h"
#include "runtime/tree_plan_fixture.h"

namespace soliton {
namespace {

TreeItem limited_to(const LayerReach& reach, const TreeItem& item, int step) {
  return without_unseen(item, step, first_seen(item.least_query + step, reach.window, reach.chunk));
}

/// Of keys, whose cached ones come first and are at `first_position` and behind, those that a query at `position` sees.
std::vector<Key> seen_of(const std::vector<Key>& keys, const TreeSnapshot& tree, int first_position,
                         int position, const LayerReach& reach) {
  std::vector<Key> seen;
  const int first = first_seen(position, reach.window, reach.chunk);
  for (size_t i = 0; i < keys.size(); ++i) {
    const int at = keys[i].first == kNewToken ? tree.rows[keys[i].second].position
                                              : first_position + static_cast<int>(i);
    if (at >= first) seen.push_back(keys[i]);
  }
  return seen;
}

/// Reads the plan as the kernel does at `step` in a layer, and compares with `tree`, the tree at that step.
void expect_seen(const TreePlan& plan, const TreeSnapshot& tree, int num_kv_heads, int step,
                 const LayerReach& reach) {
  const auto writers = writers_of(plan, num_kv_heads);
  const auto ends = ends_of(plan);
  for (int row = 0; row < std::ssize(plan.rows); ++row) {
    const int position = tree.rows[row].position;
    const std::vector<Key> expected = seen_of(expected_keys(tree, row), tree, 0, position, reach);
    for (int head = 0; head < num_kv_heads; ++head) {
      std::vector<Key> keys;
      const auto add = [&](const TreeItem& item) {
        EXPECT_LE(item.least_query + step, position);
        const TreeItem limited = limited_to(reach, item, step);
        const std::vector<Key> found =
            seen_of(item_keys(plan, limited, row, step), tree, limited.first_position, position, reach);
        keys.insert(keys.end(), found.begin(), found.end());
      };
      const TreeRow& at = plan.rows[row];
      if (const auto end = ends.find({head, row}); end != ends.end()) add(*end->second);
      for (int m = at.first_merge; m < at.end_merge; ++m) {
        if (step < plan.merges[m].first_step) continue;
        const auto& [item, writer_row] = writers.at(plan.merges[m].partial + head * plan.partials_per_head);
        EXPECT_EQ(writer_row, row);
        EXPECT_TRUE(cached_tokens(*item, step) > 0 || takes_new_tokens(*item, step));
        add(*item);
      }
      ASSERT_EQ(keys, expected) << "row " << row << ", KV head " << head << ", step " << step << ", window "
                                << reach.window << ", chunk " << reach.chunk;
    }
  }
}

/// A row of each item sees a token of its first page in some layer, or under kFixed of one of its pages.
void expect_nothing_unseen(const TreePlan& plan, const std::vector<LayerReach>& reaches, SliceRule rule) {
  for (const TreeItem& item : plan.items) {
    int first = std::numeric_limits<int>::max();
    for (const LayerReach& reach : reaches)
      first = std::min(first, first_seen(item.least_query, reach.window, reach.chunk));
    const int cached = cached_tokens(item, 0);
    const int looked_at = rule == SliceRule::kFixed ? cached : std::min(cached, kKvPageTokens);
    if (looked_at == cached && takes_new_tokens(item, 0)) continue;  // which may be all that is seen
    EXPECT_GT(item.first_position + looked_at, first);
  }
}

TEST_P(TreePlanRules, RowsSeeTheirWindows) {
  for (unsigned seed = 0; seed < (long_tests() ? 200 : 50); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    constexpr int kReaches[] = {1, 2, 40, 63, 64, 65, 100, 128, 200, 500};
    std::vector<LayerReach> reaches;
    for (int i = 0; i < 1 + pick(3); ++i) {
      const int keys = kReaches[pick(std::ssize(kReaches))];
      reaches.push_back({.window = pick(4) == 0 ? 0 : keys,
                         .chunk = pick(3) == 0 ? kReaches[pick(std::ssize(kReaches))] : 0,
                         .num_layers = 1 + pick(5)});
    }
    TreeShape shape{.num_ctas = 1 + pick(40),
                    .num_kv_heads = 1 + pick(2),
                    .heads_per_kv_head = 1 + pick(8),
                    .head_dim = 64,
                    .max_item_rows = 1 + pick(20),
                    .ends_rows = pick(2) == 0,
                    .reaches = reaches};
    KvTree tree = random_tree(random, seed % 2 == 0 ? 8 : 100);
    TreePlan plan;
    const TreeSnapshot first = snapshot_of(tree);
    planner(shape, 64 * (1 + pick(3)), 1 + pick(8)).plan(first, 1 + pick(30), plan);
    expect_nothing_unseen(plan, reaches, GetParam());
    for (int step = 0; step < plan.num_steps; ++step) {
      const TreeSnapshot now = snapshot_of(tree);
      for (const LayerReach& reach : reaches) expect_seen(plan, now, shape.num_kv_heads, step, reach);
      ASSERT_FALSE(HasFailure());
      if (plan.num_steps == 1) break;
      for (const SnapshotRow& row : first.rows) tree.append(row.branch, 1);
    }
  }
}

// Blocks of rows of a chunk each begin with their own window.
TEST_P(TreePlanRules, RowsOfAChunkSeeTheirWindows) {
  TreeShape shape = kLargeShape;
  shape.max_item_rows = 32;
  shape.num_kv_heads = 1;
  for (const bool ends_rows : {false, true}) {
    shape.ends_rows = ends_rows;
    for (const int window : {1, 100, 300}) {
      shape.reaches = {{.window = window}};
      KvTree tree = grown({{1, 700}});
      tree.draft(tree.branches()[0], chain(256));
      TreePlan plan;
      planner(shape, 64).plan(snapshot_of(tree), 1, plan);
      expect_seen(plan, snapshot_of(tree), 1, 0, shape.reaches[0]);
      if (GetParam() == SliceRule::kFixed) continue;
      for (const TreeItem& item : plan.items) {
        EXPECT_EQ(item.least_query, 700 + item.first_row / 32 * 32);
      }
    }
  }
}

struct WindowLoad {
  int most_pages = 0;  // of a CTA
  double mean_pages = 0;
};

WindowLoad load_of(const TreePlan& plan, const LayerReach& reach, int step) {
  WindowLoad load;
  const int num_ctas = static_cast<int>(plan.first_item.size()) - 1;
  for (int cta = 0; cta < num_ctas; ++cta) {
    int pages = 0;
    for (int i = plan.first_item[cta]; i < plan.first_item[cta + 1]; ++i)
      pages += num_pages(limited_to(reach, plan.items[i], step), step);
    load.most_pages = std::max(load.most_pages, pages);
    load.mean_pages += static_cast<double>(pages) / num_ctas;
  }
  return load;
}

/// With `reaches` as the planner knows them.
TreePlan planned(const KvTree& tree, const std::vector<LayerReach>& reaches, const SliceLimits& limits) {
  TreeShape shape = kLargeShape;
  shape.reaches = reaches;
  TreePlan plan;
  TreePlanner(shape, kLargeCosts, limits).plan(snapshot_of(tree), 16, plan);
  return plan;
}

/// A layer, a mean over all layers.
double mean_ps(const TreePlan& plan, const std::vector<LayerReach>& reaches) {
  const ItemCosts costs(kLargeShape, kLargeCosts);
  double sum = 0;
  int num_layers = 0;
  for (const LayerReach& reach : reaches) {
    sum += static_cast<double>(reach.num_layers *
                               attention_ps(plan, costs, plan.num_steps / 2, reach.window, reach.chunk));
    num_layers += reach.num_layers;
  }
  return sum / num_layers;
}

struct WindowWorkload {
  const char* name;
  std::vector<Level> levels;
};
const WindowWorkload kWindowWorkloads[] = {
    {"parallel 8", {{1, 32768}, {8, 10}}},
    {"parallel 64", {{1, 16384}, {64, 10}}},
    {"8 apart", {{8, 32768}}},
    {"document QA 32", {{1, 120000}, {32, 1200}}},
    {"one branch", {{1, 32768}}},
};

// What is seen of a long prefix was some CTAs' alone.
TEST(TreePlan, WindowsAreBalanced) {
  const std::vector<LayerReach> reaches = {{.window = 4096, .num_layers = 8}};
  for (const WindowWorkload& workload : kWindowWorkloads) {
    SCOPED_TRACE(workload.name);
    KvTree tree = grown(workload.levels);
    tree.reserve(16);
    const TreePlan plan = planned(tree, reaches, kBalanced);
    const WindowLoad load = load_of(plan, reaches[0], plan.num_steps / 2);
    EXPECT_LE(load.most_pages, 1.3 * load.mean_pages + 2);
    EXPECT_LE(static_cast<double>(plan.planned.makespan_ps),
              1.06 * static_cast<double>(plan.planned.bound_ps));
    EXPECT_LT(mean_ps(plan, reaches), 0.6 * mean_ps(planned(tree, {}, kBalanced), reaches));
  }
}

// As Gemma 3 has them, and gpt-oss.
TEST(TreePlan, LayersWithWindowsAndWithoutAreBothBalanced) {
  const std::vector<LayerReach> kinds[] = {{{.window = 1024, .num_layers = 5}, {.num_layers = 1}},
                                           {{.window = 128, .num_layers = 1}, {.num_layers = 1}}};
  for (const WindowWorkload& workload : kWindowWorkloads) {
    for (const std::vector<LayerReach>& reaches : kinds) {
      SCOPED_TRACE(fmt::format("{}, window {}", workload.name, reaches[0].window));
      KvTree tree = grown(workload.levels);
      tree.reserve(16);
      const double before = mean_ps(planned(tree, {}, kBalanced), reaches);
      const TreePlan plan = planned(tree, reaches, kBalanced);
      EXPECT_LE(mean_ps(plan, reaches), before);
      if (reaches[0].num_layers > 1 && workload.levels.size() > 1) {
        EXPECT_LE(mean_ps(plan, reaches), 0.75 * before);
      }
    }
  }
}

TEST_P(TreePlanRules, PredictTheMeanOfLayers) {
  const std::vector<LayerReach> kinds[] = {{{.window = 300}},
                                           {{.window = 300, .num_layers = 3}, {.num_layers = 2}},
                                           {{.window = 200}, {.window = 900}, {.chunk = 2048}}};
  KvTree tree = grown({{1, 2000}, {30, 150}, {2, 1}});
  tree.reserve(100);
  for (const std::vector<LayerReach>& reaches : kinds) {
    TreeShape shape = kLargeShape;
    shape.reaches = reaches;
    TreePlan plan;
    planner(shape, 128).plan(snapshot_of(tree), 100, plan);
    EXPECT_NEAR(static_cast<double>(plan.planned.makespan_ps), mean_ps(plan, reaches), 1);
    EXPECT_GE(plan.planned.makespan_ps, plan.planned.bound_ps);
  }
}

}  // namespace
}  // namespace soliton
