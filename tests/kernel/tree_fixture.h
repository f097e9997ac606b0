// Trees of branches on an emulated kernel, and beside every branch a reference model that has been fed the
// branch's tokens and no others.
#pragma once

#include <map>
#include <numeric>
#include <random>

#include "kernel/kernel_fixture.h"
#include "tree_drafts.h"

namespace soliton {

/// New tokens of a branch: see KvTree::draft().
struct Draft {
  std::vector<int32_t> parents;
  std::vector<int32_t> tokens;
};
using Drafts = std::map<Branch, Draft>;

/// Names a test after its kernel.
inline std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// All that decides what the next step reads and writes.
inline std::vector<int> state_of(const KvTree& tree) {
  std::vector<int> state = tree.references();
  TreeSnapshot snapshot;
  tree.snapshot(snapshot);
  for (const SnapshotNode& node : snapshot.nodes) {
    state.insert(state.end(),
                 {node.parent, node.num_tokens, node.num_new, node.num_pages, node.first_row, node.end_row});
  }
  for (const SnapshotRow& row : snapshot.rows)
    state.insert(state.end(), {row.branch, row.node, row.draft, row.position, row.seen_end});
  state.insert(state.end(), snapshot.pages.begin(), snapshot.pages.end());
  return state;
}

inline bool has_256_rows(const std::string& kernel) {
  return kernel.ends_with("rows256");
}

class TreeUnderTest : public KernelUnderTest {
 public:
  /// Pages for a branch of each row, and some more.
  explicit TreeUnderTest(const std::string& name, int context = 0, int num_pages = 0)
      : KernelUnderTest(name,
                        context > 0          ? context
                        : has_256_rows(name) ? 2 * kTestContext
                                             : kTestContext,
                        (num_pages > 0        ? num_pages
                         : has_256_rows(name) ? 420
                                              : 160) *
                            kKvPageTokens) {
    engine().clear_tree();
    random_.seed(std::accumulate(name.begin(), name.end(), 0u));  // other trees for every kernel
  }

  KvTree& tree() { return engine().tree(); }
  std::mt19937& random() { return random_; }
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  int32_t any_token() { return pick(facts().vocabulary); }
  std::vector<int32_t> any_tokens(int count) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(any_token());
    return tokens;
  }
  Draft any_draft(int count) { return {random_draft(random_, count), any_tokens(count)}; }
  size_t vocabulary() const { return static_cast<size_t>(facts().vocabulary); }

  /// Errors are a sum over columns: relative to the logits they go with the root of their number, and the
  /// kernels' tolerance is for 128 columns or more.
  float tolerance() const {
    constexpr float kColumns = 128;
    return KernelUnderTest::tolerance() *
           std::sqrt(std::max(1.0f, kColumns / static_cast<float>(facts().hidden)));
  }

  // ---- Without the reference

  /// The branches of `drafts` have these new tokens in the next step; the others wait. Returns a token a row.
  std::vector<int32_t> prepare(const Drafts& drafts) {
    for (const Branch branch : tree().branches()) {
      const auto found = drafts.find(branch);
      tree().draft(branch, found == drafts.end() ? std::span<const int32_t>() : found->second.parents);
    }
    std::vector<int32_t> tokens;
    for (const SnapshotRow& row : engine().rows())
      tokens.push_back(drafts.at(row.branch).tokens.at(row.draft));
    return tokens;
  }

  TreeResult run(const Drafts& drafts, int num_steps = 1, SliceRule rule = SliceRule::kFixed) {
    const std::vector<int32_t> tokens = prepare(drafts);
    return engine().decode_tree(
        {.tokens = tokens, .num_steps = num_steps, .want_logits = true, .rule = rule});
  }

  /// Feeds a branch `num_tokens` random tokens.
  void fill(Branch branch, int num_tokens) { engine().feed(branch, any_tokens(num_tokens)); }

  /// Takes back what a step of these has appended.
  void take_back(const Drafts& drafts) {
    for (const auto& [branch, draft] : drafts) {
      if (draft.parents.size() > 1) {
        tree().accept(branch, {});
      } else {
        tree().truncate(branch, tree().num_tokens(branch) - 1);
      }
    }
  }

  /// One token for each of these branches.
  Drafts plain(const std::vector<Branch>& branches) {
    Drafts drafts;
    for (const Branch branch : branches) drafts[branch] = {{-1}, {any_token()}};
    return drafts;
  }

  /// Logits [steps][vocabulary] of one row.
  std::vector<float> logits_of(const TreeResult& result, int row) const {
    std::vector<float> logits;
    for (int step = 0; step < result.num_steps; ++step) {
      const auto from =
          result.logits.begin() +
          static_cast<ptrdiff_t>((static_cast<size_t>(step) * result.num_rows + row) * vocabulary());
      logits.insert(logits.end(), from, from + static_cast<ptrdiff_t>(vocabulary()));
    }
    return logits;
  }

  // ---- Beside the reference

  Branch open() {
    const Branch branch = tree().open();
    paths_.insert_or_assign(branch, Path{reference(), 0, any_token()});
    return branch;
  }

  std::vector<Branch> fork(Branch branch, int num_branches) {
    const Path path = paths_.at(branch);
    paths_.erase(branch);
    const std::vector<Branch> branches = tree().fork(branch, num_branches);
    for (const Branch forked : branches) {
      paths_.insert_or_assign(forked, path);
      paths_.at(forked).next = any_token();
    }
    return branches;
  }

  void prune(Branch branch) {
    tree().prune(branch);
    paths_.erase(branch);
  }

  void truncate(Branch branch, int num_tokens) {
    tree().truncate(branch, num_tokens);
    paths_.at(branch).length = num_tokens;
    paths_.at(branch).next = any_token();
  }

  /// One step, all rows compared. Of a branch with several new tokens nothing stays: accept() says what does.
  TreeResult step(const Drafts& drafts, SliceRule rule = SliceRule::kBalanced) {
    const std::vector<SnapshotRow> rows = rows_of(drafts);
    const TreeResult result = run(drafts, 1, rule);
    drafted_.clear();
    for (size_t row = 0; row < rows.size(); ++row) {
      const auto& [branch, node, at, position, seen_end] = rows[row];
      const Draft& draft = drafts.at(branch);
      const int32_t parent = draft.parents[at];
      const Path& path = paths_.at(branch);
      Path next = parent < 0 ? path : drafted_.at(branch)[parent];
      EXPECT_EQ(next.length, position);
      compare(next, draft.tokens[at], result, 0, row);
      drafted_[branch].push_back(next);
    }
    for (const auto& [branch, draft] : drafts) {
      if (draft.parents.size() == 1) paths_.at(branch) = drafted_.at(branch)[0];
    }
    expect_lengths();
    return result;
  }

  void accept(Branch branch, const std::vector<int32_t>& path) {
    tree().accept(branch, path);
    if (!path.empty()) paths_.at(branch) = drafted_.at(branch)[path.back()];
    expect_lengths();
  }

  /// Feeds and compares a chain, in as many steps as it takes.
  void feed(Branch branch, int num_tokens) {
    while (num_tokens > 0) {
      const int count = std::min(num_tokens, engine().max_rows());
      step({{branch, {chain(count), any_tokens(count)}}});
      std::vector<int32_t> all(count);
      for (int i = 0; i < count; ++i) all[i] = i;
      if (count > 1) accept(branch, all);
      num_tokens -= count;
    }
  }

  /// These branches decode plainly and are compared, each with what it has chosen itself.
  TreeResult generate(const std::vector<Branch>& branches, int num_steps,
                      SliceRule rule = SliceRule::kBalanced) {
    Drafts drafts;
    for (const Branch branch : branches) drafts[branch] = {{-1}, {paths_.at(branch).next}};
    const std::vector<SnapshotRow> rows = rows_of(drafts);
    const TreeResult result = run(drafts, num_steps, rule);
    EXPECT_EQ(result.num_steps, num_steps);
    for (int step = 0; step < result.num_steps; ++step) {
      for (size_t row = 0; row < rows.size(); ++row) {
        Path& path = paths_.at(rows[row].branch);
        compare(path, path.next, result, step, row);
      }
    }
    expect_lengths();
    return result;
  }

  /// Of the longest chain of nodes.
  int depth() {
    TreeSnapshot snapshot;
    tree().snapshot(snapshot);
    std::vector<int> depths;
    for (const SnapshotNode& node : snapshot.nodes)
      depths.push_back(node.parent < 0 ? 1 : depths[node.parent] + 1);
    return depths.empty() ? 0 : *std::max_element(depths.begin(), depths.end());
  }

 private:
  struct Path {
    ReferenceModel model;
    int length = 0;    // cached tokens
    int32_t next = 0;  // what generate() feeds
  };

  std::vector<SnapshotRow> rows_of(const Drafts& drafts) {
    prepare(drafts);
    return engine().rows();
  }

  /// Feeds the reference of a row, and compares.
  void compare(Path& path, int32_t token, const TreeResult& result, int step, size_t row) {
    const size_t at = static_cast<size_t>(step) * result.num_rows + row;
    const std::vector<float> expected = path.model.step(token, path.length);
    expect_near(expected, result.logits.data() + at * vocabulary(), result.chosen.at(at), tolerance(),
                path.length);
    ++path.length;
    path.next = result.chosen[at];
  }

  void expect_lengths() {
    for (const auto& [branch, path] : paths_) EXPECT_EQ(tree().num_tokens(branch), path.length);
  }

  std::mt19937 random_;
  std::map<Branch, Path> paths_;
  std::map<Branch, std::vector<Path>> drafted_;
};

}  // namespace soliton
