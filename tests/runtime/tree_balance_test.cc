// Plans of attention over trees: how evenly they deal the work, what time they predict,
// and how long they take to make.
#include <chrono>
#include <cstdio>

#include "runtime/tree_plan_fixture.h"

namespace soliton {
namespace {

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

/// Bytes of a token's key and value of one KV head.
double token_bytes(const TreeShape& shape) {
  return 2.0 * 2 * shape.kv_parts * shape.head_dim;
}

/// To move bytes at the share that one CTA has of a rate.
double transfer_us(double bytes, double bytes_per_s, const TreeShape& shape) {
  return 1e6 * bytes * shape.num_ctas / bytes_per_s;
}

/// Time of all work, uncut and spread evenly, in the middle of a plan: no plan takes less.
int64_t ideal_ps(const TreeSnapshot& tree, const TreeShape& shape, int num_steps) {
  const double read_us = transfer_us(token_bytes(shape), kLargeCosts.read_bytes_per_s, shape);
  const double row_us = transfer_us(4.0 * tree_partial_words(shape.heads_per_kv_head, shape.head_dim),
                                    kLargeCosts.exchange_bytes_per_s, shape);
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
      const double bytes = token_bytes(shape) * round_up(cached, kTailTokens);
      const int tiles = ceil_divide(rows * shape.heads_per_kv_head, 16);
      const double mma_us = (cached + fresh) * tiles * costs.mma_us;
      const double partial_bytes = 4.0 * rows * tree_partial_words(shape.heads_per_kv_head, shape.head_dim);
      const double cost_us = costs.item_us * (shape.item_costs + tiles * shape.tile_costs) +
                             std::max(transfer_us(bytes, costs.read_bytes_per_s, shape), mma_us) +
                             transfer_us(partial_bytes, costs.exchange_bytes_per_s, shape);
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
  TreeShape dear = kLargeShape;
  dear.item_costs = 6;
  dear.tile_costs = 1;
  const auto expect_predicted = [&](int steps) {
    for (const TreeShape& shape : {kLargeShape, dear}) {
      for (const SliceLimits& limits : {kBalanced, kFixed}) {
        TreePlanner planner(shape, kLargeCosts, limits);
        TreePlan plan;
        planner.plan(snapshot_of(tree), steps, plan);
        const Loads loads = loads_of(plan, shape, kLargeCosts, plan.num_steps / 2);
        const double bound_us = std::max(loads.mean_us, loads.longest_us);
        EXPECT_NEAR(static_cast<double>(plan.planned.makespan_ps), 1e6 * loads.busiest_us,
                    100 * loads.busiest_us);
        EXPECT_NEAR(static_cast<double>(plan.planned.bound_ps), 1e6 * bound_us, 100 * bound_us);
      }
    }
  };
  for (const int steps : {1, 17, 100}) expect_predicted(steps);
  tree.draft(tree.branches()[0], chain(256));
  expect_predicted(1);
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
        EXPECT_LE(static_cast<double>(makespan), 1.06 * static_cast<double>(bound));
        EXPECT_LE(static_cast<double>(makespan), 1.4 * static_cast<double>(ideal));
      } else {
        EXPECT_LE(static_cast<double>(by_time), 1.01 * static_cast<double>(makespan));
      }
    }
    std::printf("\n");
  }
}

/// 64 rows of 4 heads are 16 tiles of queries: two items of 8, not three of what 8 tiles hold wherever they begin.
TEST(TreePlan, ItemsEndWhereTilesOfQueriesDo) {
  KvTree tree = grown({{1, 4096}, {64, 100}});
  tree.reserve(1);
  TreeShape shape = kLargeShape;
  shape.max_item_rows = 29;
  for (const int tiles : {0, 8}) {
    shape.max_item_tiles = tiles;
    for (const SliceLimits& limits : {kBalanced, kFixed}) {
      TreePlanner planner(shape, kLargeCosts, limits);
      TreePlan plan;
      planner.plan(snapshot_of(tree), 1, plan);
      expect_dealt_once(plan, snapshot_of(tree), shape);
      std::set<std::pair<int, int>> blocks;
      for (const TreeItem& item : plan.items) {
        if (item.end_row - item.first_row > 1) blocks.insert({item.first_row, item.end_row});
      }
      using Blocks = std::set<std::pair<int, int>>;
      EXPECT_EQ(blocks, tiles == 0 ? Blocks({{0, 29}, {29, 58}, {58, 64}}) : Blocks({{0, 32}, {32, 64}}));
    }
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

/// Plans are made while a request waits: 50 us for 64 branches is the aim, and 4 times that fails, since
/// machines that run tests are slow and busy.
TEST_P(TreePlanRules, SixtyFourBranchesTakeMicroseconds) {
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "times of an optimised build only";
#endif
  constexpr int kRounds = 401;
  constexpr double kMostUs = 8 * 50;
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
    // Of the faster rounds: others of a busy machine do not count.
    const auto fast = [](std::vector<double>& times) {
      std::nth_element(times.begin(), times.begin() + kRounds / 10, times.end());
      return times[kRounds / 10];
    };
    const double us = fast(plan_us);
    std::printf("%-12s plan %6.1f us (%zu items, %zu merges), snapshot %4.1f us\n", name, us,
                plan.items.size(), plan.merges.size(), fast(snapshot_us));
    EXPECT_LT(us, kMostUs) << name;
  }
}

}  // namespace
}  // namespace soliton
