// The tree of KV pages against a model that keeps every branch's tokens apart, over a pool whose pages are
// arrays on the host: what a branch reads through its pages must be its tokens, copies and freed pages
// included.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <random>

#include "layout/page.h"
#include "models/error.h"
#include "runtime/tree/kv_tree.h"

namespace soliton {
namespace {

using Tokens = std::vector<int>;
constexpr int kGarbage = -1;

void expect_error(const std::function<void()>& action, ExitCode code, const std::string& fragment) {
  try {
    action();
    ADD_FAILURE() << "no error; expected: " << fragment;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
  }
}

/// All that a caller can see of a tree.
struct State {
  std::vector<Branch> branches;
  std::vector<std::pair<int, int>> path_pages;
  std::vector<int> references;
  int num_free_pages = 0;
  std::vector<int> snapshot;

  bool operator==(const State&) const = default;
};

State state_of(const KvTree& tree) {
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
void expect_exact_pages(const KvTree& tree) {
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
void expect_dense(const KvTree& tree) {
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
  explicit Simulation(int num_pages) : tree_(num_pages), pool_(num_pages) {
    for (auto& page : pool_) page.fill(kGarbage);
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
      }
    }
  }

  /// `num_steps` steps of all branches, reserved beforehand, as the kernel does them.
  void step(int num_steps) {
    tree_.reserve(num_steps);
    copy();
    for (auto& [branch, tokens] : model_) {
      for (int i = 0; i < num_steps; ++i) {
        tokens.push_back(next_token_);
        const KvTree::Place place = tree_.place(branch, i);
        pool_[place.page][place.token] = next_token_++;
      }
    }
    for (const auto& [branch, tokens] : model_) tree_.append(branch, num_steps);
  }

  /// Drafts a tree and accepts a path of it.
  void speculate(Branch branch, const std::vector<int32_t>& parents, const std::vector<int32_t>& path) {
    tree_.draft(branch, parents);
    copy();
    const int first = next_token_;
    for (int i = 0; i < std::ssize(parents); ++i) {
      const KvTree::Place place = tree_.place(branch, i);
      pool_[place.page][place.token] = next_token_++;
    }
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
    }
    expect_exact_pages(tree_);
    expect_dense(tree_);
  }

 private:
  void expect_new(Branch branch) { ASSERT_TRUE(model_.try_emplace(branch).second) << "branch " << branch; }

  KvTree tree_;
  std::vector<std::array<int, kKvPageTokens>> pool_;
  std::map<Branch, Tokens> model_;
  int next_token_ = 0;
};

/// A random tree of draft tokens in depth-first preorder.
std::vector<int32_t> random_draft(std::mt19937& random, int num_tokens) {
  std::vector<int32_t> parents;
  for (int i = 0; i < num_tokens; ++i) {
    int32_t parent = i - 1;
    while (parent >= 0 && random() % 3 == 0) parent = parents[parent];
    parents.push_back(parent);
  }
  return parents;
}

/// A random path down from a token without parent.
std::vector<int32_t> random_path(std::mt19937& random, const std::vector<int32_t>& parents) {
  std::vector<int32_t> path;
  int32_t last = -1;
  for (int32_t token = 0; token < std::ssize(parents); ++token) {
    if (parents[token] == last && random() % 2 == 0) {
      path.push_back(token);
      last = token;
    }
  }
  return path;
}

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

/// One random operation; the error if it was refused.
void act(Simulation& simulation, std::mt19937& random) {
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  const int num_branches = static_cast<int>(simulation.model().size());
  if (num_branches == 0) {
    simulation.open();
    return;
  }
  const Branch branch = std::next(simulation.model().begin(), pick(num_branches))->first;
  const int num_tokens = simulation.tree().num_tokens(branch);
  constexpr int kLengths[] = {0, 1, 1, 2, 5, 40, 63, 64, 65, 150};
  switch (pick(16)) {
    case 0:
      simulation.open();
      return;
    case 1:
    case 2:
    case 3:
      if (num_branches < 24) simulation.fork(branch, 1 + pick(4));
      return;
    case 4:
    case 5:
    case 6:
      simulation.prune(branch);
      return;
    case 7:
      simulation.truncate(branch, pick(num_tokens + 1));
      return;
    case 8:
      simulation.truncate(branch, std::max(0, num_tokens - pick(10)));
      return;
    case 9:
    case 10: {
      const std::vector<int32_t> parents = random_draft(random, pick(pick(8) == 0 ? 257 : 20));
      simulation.speculate(branch, parents, random_path(random, parents));
      return;
    }
    case 11:
    case 12:
      simulation.step(1 + pick(10));
      return;
    default:
      simulation.append(branch, kLengths[pick(static_cast<int>(std::size(kLengths)))]);
  }
}

class KvTreeRandom : public testing::TestWithParam<int> {};

TEST_P(KvTreeRandom, BranchesReadTheirTokens) {
  constexpr int kSequences = 40;
  constexpr int kOperations = 150;
  int refused = 0;
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    std::mt19937 random(static_cast<unsigned>(GetParam() * kSequences + sequence));
    const int num_pages = 20 << random() % 5;
    Simulation simulation(num_pages);
    for (int i = 0; i < kOperations; ++i) {
      const State before = state_of(simulation.tree());
      try {
        act(simulation, random);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ExitCode::kOutOfMemory) << error.what();
        ASSERT_EQ(state_of(simulation.tree()), before);
        ++refused;
      }
      if (random() % 3 == 0) simulation.check();
      ASSERT_FALSE(HasFailure()) << "sequence " << sequence << ", operation " << i;
    }
    simulation.check();
    while (!simulation.model().empty()) {
      const auto any =
          std::next(simulation.model().begin(), static_cast<int>(random() % simulation.model().size()));
      simulation.prune(any->first);
      simulation.check();
    }
    EXPECT_EQ(simulation.tree().num_free_pages(), num_pages);
    ASSERT_FALSE(HasFailure()) << "sequence " << sequence;
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, KvTreeRandom, testing::Range(0, 50));

}  // namespace
}  // namespace soliton
