// One branch of a tree by itself: what is reserved for it, what it shares, and what the planner sees of a tree of
// which it alone takes part in a step.
#include "models/error.h"
#include "runtime/tree_plan_fixture.h"

namespace soliton {
namespace {

/// A root of 70 tokens and three branches behind it, of 5 tokens each.
struct SmallTree {
  SmallTree() {
    const Branch root = tree.open();
    tree.append(root, 70);
    branches = tree.fork(root, 3);
    for (const Branch branch : branches) tree.append(branch, 5);
  }
  KvTree tree{10};
  std::vector<Branch> branches;
};

TEST(TreeOnly, TheOtherBranchesHaveNoRows) {
  SmallTree small;
  const std::vector<int32_t> parents = {-1, 0, 0};
  small.tree.draft(small.branches[0], parents);
  TreeSnapshot all;
  small.tree.snapshot(all);
  EXPECT_EQ(all.rows.size(), 5u);
  TreeSnapshot only;
  small.tree.snapshot(only, small.branches[1]);
  ASSERT_EQ(only.rows.size(), 1u);
  EXPECT_EQ(only.rows[0].branch, small.branches[1]);
  EXPECT_EQ(only.rows[0].position, 75);
  EXPECT_EQ(only.nodes.size(), all.nodes.size());
  EXPECT_EQ(only.pages, all.pages);
  small.tree.snapshot(all);
  EXPECT_EQ(all.rows.size(), 5u) << "drafts are kept";
}

TEST(TreeOnly, IsSeenAsIfTheOthersWerePaused) {
  SmallTree small;
  small.tree.draft(small.branches[1], chain(4));
  TreeSnapshot only;
  small.tree.snapshot(only, small.branches[1]);
  TreePlanner planner(kSmallShape, kLargeCosts, kBalanced);
  TreePlan plan;
  planner.plan(only, 1, plan);
  for (const Branch other : {small.branches[0], small.branches[2]}) small.tree.draft(other, {});
  const TreeSnapshot paused = snapshot_of(small.tree);
  expect_dealt_once(plan, paused, kSmallShape);
  expect_complete(plan, paused, kSmallShape.num_kv_heads, 0);
}

TEST(TreeOnly, ReservesForOneBranch) {
  SmallTree small;
  const int free_pages = small.tree.num_free_pages();
  small.tree.draft(small.branches[2], {});
  small.tree.reserve(small.branches[2], 59);  // the rest of its page
  EXPECT_EQ(small.tree.num_free_pages(), free_pages);
  small.tree.reserve(small.branches[2], 60);
  EXPECT_EQ(small.tree.num_free_pages(), free_pages - 1);
  EXPECT_THROW(small.tree.reserve(small.branches[2], 60 + kKvPageTokens * free_pages), Error);
  EXPECT_EQ(small.tree.num_free_pages(), free_pages - 1);
}

TEST(TreeOnly, HasNoPageTableUntilTheOthersAreGone) {
  SmallTree small;
  EXPECT_FALSE(small.tree.has_page_table(small.branches[0]));
  EXPECT_THROW(small.tree.page_table(small.branches[0]), Error);
  small.tree.prune(small.branches[1]);
  EXPECT_FALSE(small.tree.has_page_table(small.branches[0]));
  small.tree.prune(small.branches[2]);
  EXPECT_TRUE(small.tree.has_page_table(small.branches[0]));
  EXPECT_TRUE(small.tree.has_page_table(small.tree.open()));
}

}  // namespace
}  // namespace soliton
