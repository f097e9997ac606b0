// Whole kernels in emulation over trees of branches: against the scalar reference of each branch's path; bits
// that depend neither on the schedule nor, with SliceRule::kFixed, on the neighbours and the launches.
#include "kernel/kernel_cases.h"
#include "kernel/tree_fixture.h"

namespace soliton {
namespace {

CopyPolicy policy_of(uint64_t seed) {
  return seed % 3 == 0 ? CopyPolicy::kEager : seed % 3 == 1 ? CopyPolicy::kLate : CopyPolicy::kRandom;
}

// ---- Against the reference

class Tree : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(
    Kernels, Tree,
    testing::Values(
        "micro-3-rows8", "plain-4-rows8", "plain-4-rows32", "plain-3-rows64", "plain-3-rows64-lanes",
        "plain-2-rows128", "broad-2-rows256", "broad-4-rows64", "wide128-5-rows8", "wide128-5-rows32",
        "deep256-group4-3-rows32", "group7-4-rows8", "group7-4-rows32", "group8-6-rows8", "group8-3-rows64",
        "group12-2-rows8", "narrow96-5-rows8", "plain-4-all", "plain-4-rows8-lanes", "norm128-4-all",
        "norm64-bias-3-rows32", "micro-2-all-cards2", "plain-2-rows32-cards2", "plain-2-rows64-cards2",
        "int4-zeros-3-rows64", "int4-ordered-3-all", "int4-ordered-2-all-cards2", "plain-1-rows8-cards4",
        "group7-2-rows8-cards3", "norm128-2-rows8-cards2", "int4-1-rows8-cards8", "variant-4-all",
        "variant-3-rows64", "kinds-14-all", "int4-kinds-3-all", "mixture-4-rows8", "mixture-wide-9-rows32",
        "mixture-few-21-rows64-lanes", "int4-mixture-3-rows16", "int4-mixture-3-rows32",
        "int4-mixture-4-rows8", "mixture-shared-4-rows8", "mixture-joint-4-rows8", "int4-sigmoid-3-rows8",
        "mixture-sinks-4-rows8", "mxfp4-wide-4-rows16", "mixture-sinks-all-3-rows64-lanes", "sandwich-4-all",
        "sandwich-3-rows64", "after-3-all", "after-2-cards2-all", "int4-after-3-all", "scaled-4-all",
        "turned-3-all", "parallel-3-all", "centred-3-all", "norm-bias-3-all", "biases-3-all", "plain-3-bytes",
        "wide128-2-bytes-rows64", "deep256-3-bytes"),
    test_name);

/// A random operation on a tree of at most `most` branches.
void act(TreeUnderTest& kernel, int most) {
  const std::vector<Branch> branches = kernel.tree().branches();
  const int num_branches = static_cast<int>(branches.size());
  const Branch branch = branches[kernel.pick(num_branches)];
  const int num_tokens = kernel.tree().num_tokens(branch);
  switch (kernel.pick(10)) {
    case 0:
    case 1:
      if (num_branches < most) kernel.fork(branch, 1 + kernel.pick(most - num_branches + 1));
      return;
    case 2:
      if (num_branches > 1) kernel.prune(branch);
      return;
    case 3:
      kernel.truncate(branch, kernel.pick(3) == 0 ? kernel.pick(num_tokens + 1)
                                                  : std::max(0, num_tokens - kernel.pick(4)));
      return;
    case 4:
    case 5:
    case 6: {  // a draft, beside branches that decode plainly
      const int left = kernel.engine().max_rows() - num_branches + 1;
      const int count = left < 2 ? 1 : 2 + kernel.pick(std::min(left - 1, 20));
      Drafts drafts = kernel.plain(branches);
      drafts[branch] = kernel.any_draft(count);
      kernel.step(drafts);
      if (count > 1) kernel.accept(branch, random_path(kernel.random(), drafts[branch].parents));
      return;
    }
    default:
      kernel.generate(branches, 1 + kernel.pick(6));
  }
}

TEST_P(Tree, FollowsTheReferenceThroughRandomOperations) {
  TreeUnderTest kernel(GetParam());
  const int most = std::min(kernel.engine().max_rows(), 6);
  const Branch root = kernel.open();
  kernel.feed(root, 61);
  kernel.fork(root, 3);
  for (int i = 0; i < (long_tests() ? 8 : 4) && !HasFailure(); ++i) {
    act(kernel, most);
    if (HasFailure()) ADD_FAILURE() << "operation " << i;
  }
}

TEST_P(Tree, TakesAllItsRows) {
  TreeUnderTest kernel(GetParam());
  const int rows = kernel.engine().max_rows();
  const Branch root = kernel.open();
  kernel.feed(root, 3);
  const std::vector<Branch> halves = kernel.fork(root, 2);
  kernel.generate(halves, 1);
  kernel.fork(halves[0], rows / 2 - 1);
  kernel.fork(halves[1], rows - rows / 2 + 1);
  EXPECT_EQ(kernel.generate(kernel.tree().branches(), 1).num_rows, rows);
}

class TreeShapes : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(Kernels, TreeShapes,
                         testing::Values("micro-3-rows8", "wide128-5-rows32", "deep256-group4-3-rows32",
                                         "group8-3-rows64"),
                         test_name);

// Every length of a node above, between and below others.
TEST_P(TreeShapes, NodesOfEveryLength) {
  TreeUnderTest kernel(GetParam());
  const Branch root = kernel.open();
  kernel.feed(root, 65);
  const std::vector<Branch> below = kernel.fork(root, 4);  // 0, 1, 63 and 64 tokens
  kernel.feed(below[1], 1);
  kernel.feed(below[2], 63);
  kernel.feed(below[3], 64);
  const std::vector<Branch> empty = kernel.fork(below[0], 2);
  kernel.feed(empty[1], 1);
  const std::vector<Branch> page = kernel.fork(below[3], 2);
  kernel.feed(page[1], 126);
  EXPECT_EQ(kernel.depth(), 3);
  // 63 becomes 66; with 128 tokens, a slice begins that the launch did not begin with.
  kernel.generate(kernel.tree().branches(), 3, SliceRule::kFixed);
}

TEST_P(TreeShapes, SixteenNodesAboveOneAnother) {
  TreeUnderTest kernel(GetParam());
  Branch branch = kernel.open();
  std::vector<Branch> others;
  for (int i = 0; i < 16; ++i) {
    kernel.feed(branch, 1);
    const std::vector<Branch> forked = kernel.fork(branch, 2);
    branch = forked[i % 2];
    others.push_back(forked[1 - i % 2]);
  }
  EXPECT_EQ(kernel.depth(), 17);
  others.resize(std::min(16, kernel.engine().max_rows() - 1));
  others.push_back(branch);
  kernel.generate(others, 1);
}

class TreeLong : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(Kernels, TreeLong,
                         testing::Values("plain-4-rows8", "plain-4-rows32", "plain-2-rows128",
                                         "broad-2-rows256", "group7-4-rows64", "plain-2-rows64-cards2",
                                         "int4-zeros-3-rows64", "variant-3-rows64"),
                         test_name);

// Whole pages, of one query tile to many; the last page is partly filled, or whole.
TEST_P(TreeLong, NodesOfWholePages) {
  TreeUnderTest kernel(GetParam(), 1024);
  const int rows = kernel.engine().max_rows();
  const Branch root = kernel.open();
  kernel.feed(root, 300);
  const std::vector<Branch> below = kernel.fork(root, 3);
  kernel.feed(below[1], 256);
  kernel.feed(below[2], 150);
  kernel.fork(below[1], rows / 2);
  kernel.fork(below[2], rows - rows / 2 - 1);
  for (const SliceRule rule : {SliceRule::kBalanced, SliceRule::kFixed})
    kernel.generate(kernel.tree().branches(), long_tests() ? 2 : 1, rule);
}

class TreeLongFault : public testing::TestWithParam<FaultKind> {};

INSTANTIATE_TEST_SUITE_P(Kinds, TreeLongFault,
                         testing::Values(FaultKind::kDropProductFence, FaultKind::kDropProductCommit,
                                         FaultKind::kNoProductWait));

// Where only attention multiplies by warpgroups.
TEST_P(TreeLongFault, IsFound) {
  TreeUnderTest kernel("group7-4-rows32");
  kernel.fill(kernel.tree().open(), 200);
  kernel.tree().fork(kernel.tree().branches()[0], 32);
  const Drafts drafts = kernel.plain(kernel.tree().branches());
  const TreeResult expected = kernel.run(drafts, 1, SliceRule::kBalanced);
  kernel.take_back(drafts);
  kernel.emulation().fault.kind = GetParam();
  try {
    EXPECT_NE(kernel.run(drafts, 1, SliceRule::kBalanced).logits, expected.logits);
  } catch (const Error&) {
  }
}

// Workers share query tiles by powers of two: where there are three, nobody takes the fourth place, and the next item may.
// Of six nodes the two shortest, with 16 rows and with 12, are one CTA's.
TEST(TreePlaces, ThatWereLeftAreTakenLater) {
  if (!long_tests()) GTEST_SKIP() << "in long runs: trees of any shape of 32 rows have such items too";
  TreeUnderTest kernel("wide128-5-rows32", 1024);
  const Branch root = kernel.open();
  int short_rows = 16;
  for (Branch branch : kernel.fork(root, 2)) {
    for (const int rows : {16, 12, 9}) {
      kernel.feed(branch, rows == short_rows ? 128 : 192);
      const int next = rows == 16 ? 12 : rows == 12 ? 9 : 1;
      branch = kernel.fork(branch, 1 + rows - next)[0];
    }
    short_rows = 12;
  }
  ASSERT_EQ(kernel.tree().branches().size(), 32u);
  kernel.generate(kernel.tree().branches(), 2, SliceRule::kBalanced);
}

// ---- Trees of any shape

class TreeOfAnyShape : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(Kernels, TreeOfAnyShape,
                         testing::Values("plain-4-rows8", "plain-4-rows32", "plain-2-rows128",
                                         "broad-2-rows256", "wide128-5-rows32", "group7-4-rows64",
                                         "plain-2-rows64-cards2"),
                         test_name);

/// Nodes of lengths around the ends of tiles, pages and slices, until all rows are there, or some.
void grow(TreeUnderTest& kernel) {
  constexpr int kLengths[] = {0, 1, 15, 16, 17, 33, 63, 64, 65, 127, 128, 129, 193, 256};
  const int most = kernel.engine().max_rows();
  const int rows = kernel.pick(3) == 0 ? most : 1 + kernel.pick(most);
  kernel.fill(kernel.tree().open(), 1 + kernel.pick(200));
  for (;;) {
    const std::vector<Branch> branches = kernel.tree().branches();
    const int left = rows - static_cast<int>(branches.size());
    const Branch branch = branches[kernel.pick(static_cast<int>(branches.size()))];
    const int length = kLengths[kernel.pick(static_cast<int>(std::size(kLengths)))];
    if (kernel.tree().num_tokens(branch) + length < 600) kernel.fill(branch, length);
    if (left <= 0) return;
    kernel.tree().fork(branch, 1 + kernel.pick(std::min(left, 14)) + 1);
  }
}

/// A token at each branch, or drafts at some of them as far as there are rows.
Drafts any_step(TreeUnderTest& kernel) {
  const std::vector<Branch> branches = kernel.tree().branches();
  Drafts drafts = kernel.plain(branches);
  int left = kernel.engine().max_rows() - static_cast<int>(branches.size());
  while (left > 0 && kernel.pick(3) != 0) {
    Draft& draft = drafts[branches[kernel.pick(static_cast<int>(branches.size()))]];
    if (draft.tokens.size() > 1) break;
    const int more = 1 + kernel.pick(std::min(left, 30));
    draft = kernel.any_draft(1 + more);
    left -= more;
  }
  return drafts;
}

// Whoever waits for what does not come, or does not wait for what does, differs from schedule to schedule or does not end.
TEST_P(TreeOfAnyShape, EndsWithTheSameBitsUnderEverySchedule) {
  constexpr int kFirst = 19;  // there of 32 rows a CTA has items of three tiles and of four, see TreePlaces
  const int num_trees = long_tests()               ? 30
                        : has_256_rows(GetParam()) ? 1
                                                   : 2;  // of so many rows one takes 5 s
  for (int seed = kFirst; seed < kFirst + num_trees; ++seed) {
    SCOPED_TRACE(seed);
    TreeUnderTest kernel(GetParam(), 1024, 600);
    kernel.random().seed(static_cast<unsigned>(seed));
    grow(kernel);
    const SliceRule rule = seed % 3 == 0 ? SliceRule::kFixed : SliceRule::kBalanced;
    const Drafts plain = kernel.plain(kernel.tree().branches());
    for (const Drafts& drafts : {plain, any_step(kernel)}) {
      kernel.emulation().copies = CopyPolicy::kEager;
      const TreeResult expected = kernel.run(drafts, 1, rule);
      for (const CopyPolicy policy : {CopyPolicy::kLate, CopyPolicy::kRandom}) {
        kernel.take_back(drafts);
        kernel.emulation().seed = static_cast<uint64_t>(seed);
        kernel.emulation().copies = policy;
        const TreeResult result = kernel.run(drafts, 1, rule);
        EXPECT_EQ(result.chosen, expected.chosen);
        EXPECT_EQ(result.logits, expected.logits);
      }
      kernel.take_back(drafts);
    }
  }
}

// ---- Speculation

class TreeDraft : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(Kernels, TreeDraft,
                         testing::Values("micro-3-rows8", "plain-4-rows32", "plain-3-rows64",
                                         "plain-2-rows128", "broad-2-rows256", "group7-4-rows32",
                                         "group8-3-rows64", "deep256-group4-3-rows32", "plain-3-bytes"),
                         test_name);

// The last children are accepted, so that tokens must move; what then follows reads them at their new place.
TEST_P(TreeDraft, AcceptedTokensMove) {
  TreeUnderTest kernel(GetParam());
  const int rows = kernel.engine().max_rows();
  const Branch root = kernel.open();
  kernel.feed(root, 190);
  const std::vector<Branch> branches = kernel.fork(root, 2);
  for (const SliceRule rule : {SliceRule::kBalanced, SliceRule::kFixed}) {
    Drafts drafts = kernel.plain(branches);
    drafts[branches[0]] = kernel.any_draft(rows - 1);  // with 64 rows: 63 tokens
    std::vector<int32_t>& parents = drafts[branches[0]].parents;
    parents.back() = -1;
    parents[rows - 3] = -1;
    parents[rows - 2] = rows - 3;
    kernel.step(drafts, rule);
    kernel.accept(branches[0], {rows - 3, rows - 2});
    kernel.generate(branches, 2, rule);
  }
}

// Drafts of several branches in one step, and a chain of as many tokens as there are rows.
TEST_P(TreeDraft, SeveralAtOnceAndLongChains) {
  TreeUnderTest kernel(GetParam());
  const int rows = kernel.engine().max_rows();
  const Branch root = kernel.open();
  kernel.feed(root, rows);
  kernel.feed(root, 5);
  const std::vector<Branch> branches = kernel.fork(root, 3);
  Drafts drafts;
  for (const Branch branch : branches) drafts[branch] = kernel.any_draft(rows / 3);
  kernel.step(drafts);
  for (const Branch branch : branches)
    kernel.accept(branch, random_path(kernel.random(), drafts[branch].parents));
  kernel.generate(branches, 1);
}

// ---- The same bits

class TreeBits : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(Kernels, TreeBits,
                         testing::Values("micro-3-rows8", "plain-4-rows32", "group7-4-rows32",
                                         "group7-4-rows8", "group8-3-rows64", "deep256-group4-3-rows32",
                                         "norm64-bias-3-rows32", "mixture-4-rows8",
                                         "mixture-few-21-rows64-lanes", "int4-mixture-4-rows8",
                                         "variant-3-rows64"),
                         test_name);

// The others wait or take part; node boundaries are the same.
TEST_P(TreeBits, ABranchAloneEqualsItselfAmongOthers) {
  constexpr int kSteps = 2;
  TreeUnderTest kernel(GetParam());
  const Branch root = kernel.tree().open();
  kernel.fill(root, has_windows(kernel.facts()) ? 278 : 150);  // its first slice is before the windows
  std::vector<Branch> branches = kernel.tree().fork(root, kernel.engine().max_rows());
  kernel.fill(branches[1], 40);
  kernel.fill(branches.back(), 1);
  const int num_branches = static_cast<int>(branches.size());
  const Drafts all = kernel.plain(branches);
  const auto run = [&](const Drafts& drafts) {
    const TreeResult result = kernel.run(drafts, kSteps);
    for (const auto& [branch, draft] : drafts)
      kernel.tree().truncate(branch, kernel.tree().num_tokens(branch) - kSteps);
    return result;
  };
  kernel.prepare(all);
  const std::vector<SnapshotRow> rows = kernel.engine().rows();
  const TreeResult among = run(all);
  for (const int index : {1, num_branches - 1}) {
    const int row = static_cast<int>(
        std::find_if(rows.begin(), rows.end(), [&](const auto& at) { return at.branch == branches[index]; }) -
        rows.begin());
    Drafts alone = {{branches[index], all.at(branches[index])}};
    EXPECT_EQ(kernel.logits_of(run(alone), 0), kernel.logits_of(among, row)) << "row " << row << " alone";
    // With four others, some of which come before.
    for (int i = 1; i <= 4; ++i) {
      const Branch other = branches[(index + i * num_branches / 5) % num_branches];
      alone[other] = all.at(other);
    }
    kernel.prepare(alone);
    const std::vector<SnapshotRow> few = kernel.engine().rows();
    const int place = static_cast<int>(
        std::find_if(few.begin(), few.end(), [&](const auto& at) { return at.branch == branches[index]; }) -
        few.begin());
    EXPECT_EQ(kernel.logits_of(run(alone), place), kernel.logits_of(among, row))
        << "row " << row << " as one of five";
  }
}

TEST_P(TreeBits, OneLaunchEqualsOneAStep) {
  constexpr int kSteps = 4;
  TreeUnderTest kernel(GetParam());
  const Branch root = kernel.tree().open();
  kernel.fill(root, has_windows(kernel.facts()) ? 32 : 62);
  const std::vector<Branch> branches = kernel.tree().fork(root, 7);
  kernel.fill(branches[3], 62);   // to the next page,
  kernel.fill(branches[4], 126);  // and to the next slice within the launch,
  if (has_windows(kernel.facts()))
    kernel.fill(branches[5], 275);  // or past the last query that sees the first
  Drafts drafts = kernel.plain(branches);
  const TreeResult together = kernel.run(drafts, kSteps);
  ASSERT_EQ(together.num_steps, kSteps);
  for (const Branch branch : branches)
    kernel.tree().truncate(branch, kernel.tree().num_tokens(branch) - kSteps);
  for (int step = 0; step < kSteps; ++step) {
    const TreeResult one = kernel.run(drafts);
    const size_t line = one.logits.size();
    EXPECT_TRUE(std::equal(one.logits.begin(), one.logits.end(),
                           together.logits.begin() + static_cast<ptrdiff_t>(step * line)))
        << "step " << step;
    const std::vector<SnapshotRow> rows = kernel.engine().rows();
    for (size_t row = 0; row < rows.size(); ++row) drafts[rows[row].branch].tokens = {one.chosen[row]};
  }
}

/// Branches that fill the kernel's rows, one of them with a draft of more than one tile of new tokens where
/// there are so many rows; more items than CTAs, and with many rows more than 4 tiles of queries.
Drafts busy_step(TreeUnderTest& kernel) {
  const int rows = kernel.engine().max_rows();
  const int num_new = rows >= 32 ? 19 : rows / 2;
  const Branch root = kernel.tree().open();
  kernel.fill(root, 70);
  const std::vector<Branch> branches = kernel.tree().fork(root, rows - num_new + 1);
  kernel.fill(branches[0], 33);
  Drafts drafts = kernel.plain(branches);
  drafts[branches[1]] = kernel.any_draft(num_new);
  return drafts;
}

TEST_P(TreeBits, TheSameUnderEverySchedule) {
  TreeUnderTest kernel(GetParam());
  const Drafts drafts = busy_step(kernel);
  const TreeResult expected = kernel.run(drafts);
  EXPECT_EQ(expected.num_rows, kernel.engine().max_rows());
  for (uint64_t seed = 1; seed <= (long_tests() ? 6 : 3); ++seed) {  // each policy twice or once
    kernel.take_back(drafts);
    kernel.emulation().seed = seed;
    kernel.emulation().copies = policy_of(seed);
    const TreeResult result = kernel.run(drafts);
    EXPECT_EQ(result.chosen, expected.chosen) << "seed " << seed;
    EXPECT_EQ(result.logits, expected.logits) << "seed " << seed;
  }
}

class TreeRace : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(Kernels, TreeRace,
                         testing::Values("micro-3-rows8", "plain-4-rows32", "group7-4-rows32",
                                         "micro-2-all-cards2", "plain-2-rows32-cards2",
                                         "plain-2-rows64-cards2", "int4-zeros-3-rows64", "int4-ordered-3-all",
                                         "plain-1-rows8-cards4", "group7-2-rows8-cards3",
                                         "norm128-2-rows8-cards2", "int4-1-rows8-cards8", "mixture-4-rows8",
                                         "int4-mixture-4-rows8", "int4-mixture-3-rows16",
                                         "int4-mixture-3-rows32", "int4-pairs-halved-3-rows8",
                                         "sandwich-3-rows64", "after-2-cards2-all"),
                         test_name);

TEST_P(TreeRace, HasNone) {
  TreeUnderTest kernel(GetParam());
  Drafts drafts = busy_step(kernel);
  kernel.emulation().check = true;
  kernel.emulation().copies = CopyPolicy::kRandom;
  EXPECT_NO_THROW(kernel.run(drafts));
  kernel.take_back(drafts);
  // Without the draft, several steps.
  std::erase_if(drafts, [](const auto& entry) { return entry.second.parents.size() > 1; });
  kernel.emulation().seed = 2;
  kernel.emulation().copies = CopyPolicy::kLate;
  EXPECT_NO_THROW(kernel.run(drafts, 2));
}

}  // namespace
}  // namespace soliton
