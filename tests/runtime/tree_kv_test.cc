// The operations of the tree of KV pages one by one: what they copy, which pages they free, and that those refused
// change nothing.
#include "runtime/tree_kv_fixture.h"

namespace soliton {
namespace {

TEST(KvTree, ForkCopiesNothing) {
  for (const int num_tokens : {0, 1, 63, 64, 65, 200}) {
    Simulation simulation(100);
    const Branch root = simulation.open();
    simulation.append(root, num_tokens);
    const int used = 100 - simulation.tree().num_free_pages();
    EXPECT_EQ(used, ceil_divide(num_tokens, kKvPageTokens));
    const std::vector<Branch> branches = simulation.fork(root, 8);
    EXPECT_TRUE(simulation.tree().take_moves().empty());
    EXPECT_EQ(100 - simulation.tree().num_free_pages(), used);
    for (const Branch branch : branches) simulation.append(branch, 1);
    EXPECT_EQ(100 - simulation.tree().num_free_pages(), used + 8);
    simulation.check();
  }
}

// Whatever branches off where, page i of all of them holds tokens 64 i to 64 i + 63.
TEST(KvTree, BranchesOffAtPages) {
  for (const int kept : {0, 1, 63, 64, 65, 128, 199, 200}) {
    Simulation simulation(100);
    const Branch whole = simulation.open();
    simulation.append(whole, 200);
    const Branch part = simulation.branch_off(whole, kept);
    EXPECT_EQ(simulation.copy(), kept % kKvPageTokens) << kept;
    const Branch again = simulation.branch_off(part, kept / 2);
    simulation.append(part, 100);
    simulation.append(again, 70);
    simulation.step(10);
    simulation.check();
    for (const auto& [branch, tokens] : simulation.model()) {
      ASSERT_TRUE(simulation.tree().has_page_table(branch)) << kept;
      const std::vector<int32_t> table = simulation.tree().page_table(branch);
      const std::vector<PageTokens> path = simulation.tree().path(branch);
      ASSERT_GE(table.size(), path.size());
      for (size_t i = 0; i < path.size(); ++i) EXPECT_EQ(table[i], path[i].page);
    }
    simulation.prune(whole);
    simulation.check();
  }
}

TEST(KvTree, BeamsStayDense) {
  // Four beams, of which each step the first lives on as two and the last ends.
  constexpr int kSteps = 500;
  Simulation simulation(100);
  std::vector<Branch> beams = simulation.fork(simulation.open(), 4);
  int copied = 0;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<Branch> forked = simulation.fork(beams[0], 2);
    simulation.prune(beams[3]);
    beams = {forked[0], beams[1], beams[2], forked[1]};
    for (const Branch beam : beams) simulation.append(beam, 1);
    copied += simulation.copy();
  }
  for (const Branch beam : beams) copied += (simulation.prune(beam), simulation.copy());
  EXPECT_EQ(simulation.tree().num_free_pages(), 100);
  EXPECT_LE(copied, 4 * kSteps);
}

TEST(KvTree, ChainsJoinWithoutWaste) {
  // After the others are gone, a lone branch has no two neighbouring nodes that fit one page.
  Simulation simulation(100);
  Branch branch = simulation.open();
  for (int i = 0; i < 100; ++i) {
    const std::vector<Branch> forked = simulation.fork(branch, 2);
    simulation.append(forked[0], 3);
    simulation.prune(forked[1]);
    branch = forked[0];
    simulation.check();
  }
  EXPECT_EQ(simulation.tree().num_free_pages(), 100 - ceil_divide(300, kKvPageTokens));
}

TEST(KvTree, TruncateCopiesOnePageAtMost) {
  for (const int kept : {0, 1, 63, 64, 65, 128, 150, 199, 200, 201, 209, 210}) {
    Simulation simulation(100);
    const Branch root = simulation.open();
    simulation.append(root, 200);
    const std::vector<Branch> branches = simulation.fork(root, 3);
    for (const Branch branch : branches) simulation.append(branch, 10);
    simulation.truncate(branches[1], kept);
    int copied = 0;
    for (const TokenMove& move : simulation.tree().take_moves()) copied += move.num_tokens;
    EXPECT_EQ(copied, kept < 200 ? kept % kKvPageTokens : 0) << kept;
    simulation.truncate(branches[1], kept);  // nothing further
    EXPECT_TRUE(simulation.tree().take_moves().empty()) << kept;
    expect_exact_pages(simulation.tree());
  }
}

TEST(KvTree, FirstChildrenAreAcceptedInPlace) {
  Simulation simulation(100);
  const Branch branch = simulation.open();
  simulation.append(branch, 60);
  const std::vector<int32_t> parents = {-1, 0, 1, 1, 0, 4, -1};
  simulation.speculate(branch, parents, {0, 1, 2});
  EXPECT_TRUE(simulation.tree().take_moves().empty());
  simulation.speculate(branch, parents, {0, 4, 5});  // the branch had 63 tokens: slot 67 -> 64, 68 -> 65
  const int page = simulation.tree().path(branch)[1].page;
  EXPECT_EQ(simulation.tree().take_moves(), (std::vector<TokenMove>{{page, 3, page, 0, 2}}));
  EXPECT_EQ(simulation.tree().num_tokens(branch), 66);
  EXPECT_EQ(simulation.tree().num_free_pages(), 98);
}

TEST(KvTree, RejectedTokensFreeTheirPages) {
  Simulation simulation(10);
  const Branch branch = simulation.open();
  simulation.append(branch, 60);
  std::mt19937 random(1);
  const std::vector<int32_t> parents = random_draft(random, 256);
  simulation.tree().draft(branch, parents);
  EXPECT_EQ(simulation.tree().num_free_pages(), 10 - ceil_divide(60 + 256, kKvPageTokens));
  simulation.tree().accept(branch, {});
  EXPECT_EQ(simulation.tree().num_free_pages(), 9);
  simulation.check();
}

TEST(KvTree, AJoinKeepsRoomForTheDraft) {
  for (const int shared : {1, 40, 63, 64}) {
    for (const int own : {0, 1, 24, 63}) {
      for (const int num_new : {2, 63, 64, 65, 200}) {
        Simulation simulation(10);
        const Branch root = simulation.open();
        simulation.append(root, shared);
        const std::vector<Branch> branches = simulation.fork(root, 2);
        simulation.append(branches[0], own);
        simulation.tree().draft(branches[0], std::vector<int32_t>(static_cast<size_t>(num_new), -1));
        simulation.prune(branches[1]);
        simulation.tree().place(branches[0], num_new - 1);
        simulation.check();
        simulation.prune(branches[0]);
        EXPECT_EQ(simulation.tree().num_free_pages(), 10);
      }
    }
  }
}

TEST(KvTree, RowsBelowANodeAreOneInterval) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    KvTree tree(1000);
    std::vector<Branch> branches = {tree.open(), tree.open()};
    std::map<Branch, std::vector<int32_t>> drafts;
    for (int i = 0; i < 6; ++i) {
      const size_t at = random() % branches.size();
      const Branch parent = branches[at];
      branches.erase(branches.begin() + static_cast<ptrdiff_t>(at));
      for (const Branch branch : tree.fork(parent, 2)) {
        tree.append(branch, static_cast<int>(random() % 70));
        branches.push_back(branch);
      }
    }
    for (const Branch branch : branches) {
      drafts[branch] = random_draft(random, static_cast<int>(random() % 9));
      tree.draft(branch, drafts[branch]);
    }
    TreeSnapshot snapshot;
    tree.snapshot(snapshot);
    size_t num_rows = 0;
    for (const auto& [branch, parents] : drafts) num_rows += parents.size();
    ASSERT_EQ(snapshot.rows.size(), num_rows);
    std::vector<std::vector<int>> rows_below(snapshot.nodes.size());
    for (int row = 0; row < std::ssize(snapshot.rows); ++row) {
      const SnapshotRow& at = snapshot.rows[row];
      const std::vector<int32_t>& parents = drafts.at(at.branch);
      const int first = snapshot.nodes[at.node].first_row;
      ASSERT_EQ(row, first + at.draft);
      int depth = 0;
      for (int32_t token = at.draft; parents[token] >= 0; token = parents[token]) ++depth;
      EXPECT_EQ(at.position, tree.num_tokens(at.branch) + depth);
      for (int32_t other = 0; other < std::ssize(parents); ++other) {
        int32_t above = other;
        while (above >= 0 && above != at.draft) above = parents[above];
        EXPECT_EQ(above == at.draft, other >= at.draft && first + other < at.seen_end);
      }
      for (int32_t node = at.node; node >= 0; node = snapshot.nodes[node].parent)
        rows_below[node].push_back(row);
    }
    for (size_t i = 0; i < snapshot.nodes.size(); ++i) {
      const SnapshotNode& node = snapshot.nodes[i];
      EXPECT_LT(node.parent, static_cast<int>(i));
      ASSERT_EQ(std::ssize(rows_below[i]), node.end_row - node.first_row);
      for (size_t r = 0; r < rows_below[i].size(); ++r) {
        EXPECT_EQ(rows_below[i][r], node.first_row + static_cast<int>(r));
      }
    }
  }
}

TEST(KvTree, RefusalsChangeNothing) {
  KvTree tree(4);
  const Branch root = tree.open();
  tree.append(root, 130);
  const std::vector<Branch> branches = tree.fork(root, 2);
  tree.append(branches[0], 1);
  const State before = state_of(tree);
  const auto refuse = [&](const std::function<void()>& action) {
    expect_error(action, ExitCode::kOutOfMemory, "KV pool of 4 pages: expected at most 0 further ones, got");
    EXPECT_EQ(state_of(tree), before);
    EXPECT_TRUE(tree.take_moves().empty());
  };
  refuse([&] { tree.append(branches[1], 1); });
  refuse([&] { tree.append(branches[0], 64); });
  refuse([&] { tree.reserve(1); });
  refuse([&] { tree.draft(branches[1], std::vector<int32_t>{-1}); });
  refuse([&] { tree.truncate(branches[1], 100); });
  tree.truncate(branches[0], 100);  // its own page, given back, is enough for the copy
  EXPECT_EQ(tree.num_tokens(branches[0]), 100);
}

TEST(KvTree, MisuseChangesNothing) {
  KvTree tree(10);
  const Branch branch = tree.fork(tree.open(), 2)[1];
  tree.append(branch, 70);
  tree.draft(branch, std::vector<int32_t>{-1, 0, 0});
  const State before = state_of(tree);
  const auto refuse = [&](const std::string& fragment, const std::function<void()>& action) {
    expect_error(action, ExitCode::kInternal, fragment);
    EXPECT_EQ(state_of(tree), before);
  };
  refuse("expected a live one, got 17", [&] { tree.append(17, 1); });
  refuse("expected a live one, got -1", [&] { tree.prune(-1); });
  refuse("at least 1, got 0", [&] { tree.fork(branch, 0); });
  refuse("at least 0, got -1", [&] { tree.append(branch, -1); });
  refuse("0 to 70, got 71", [&] { tree.truncate(branch, 71); });
  refuse("child of draft token 1, got 2", [&] { tree.accept(branch, std::vector<int32_t>{0, 1, 2}); });
  refuse("child of draft token -1, got 3", [&] { tree.accept(branch, std::vector<int32_t>{3}); });
  refuse("parent of draft token 3: expected 2", [&] {
    tree.draft(branch, std::vector<int32_t>{-1, 0, 0, 1});
  });
  refuse("parent of draft token 0", [&] { tree.draft(branch, std::vector<int32_t>{0}); });
  refuse("0 to 57, got 58", [&] { tree.place(branch, 58); });
}

}  // namespace
}  // namespace soliton
