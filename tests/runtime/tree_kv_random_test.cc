// Random operations on the tree of KV pages: after each one every branch reads its tokens.
#include "long_tests.h"
#include "runtime/tree_kv_fixture.h"

namespace soliton {
namespace {

/// Layers with a window, and the most tokens that a step adds to a branch.
struct Case {
  int window = 0;  // 0: there are none
  int most_new = 256;
};

/// One random operation; the error if it was refused.
void act(Simulation& simulation, std::mt19937& random, const Case& test) {
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
      if (num_branches < 24 && pick(3) == 0) {
        simulation.branch_off(branch, simulation.tree().usable_tokens(branch, pick(num_tokens + 1)));
      } else if (num_branches < 24) {
        simulation.fork(branch, 1 + pick(4));
      }
      return;
    case 4:
    case 5:
    case 6:
      simulation.prune(branch);
      return;
    case 7:
      simulation.truncate(branch, simulation.tree().usable_tokens(branch, pick(num_tokens + 1)));
      return;
    case 8:
      simulation.truncate(branch,
                          simulation.tree().usable_tokens(branch, std::max(0, num_tokens - pick(10))));
      return;
    case 9:
    case 10: {
      const std::vector<int32_t> parents =
          random_draft(random, pick(std::min(test.most_new + 1, pick(8) == 0 ? 257 : 20)));
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

/// Operations on trees of several sizes, all of which the branches survive.
void expect_tokens(int seed, int num_sequences, const Case& test) {
  constexpr int kOperations = 150;
  int refused = 0;
  for (int sequence = 0; sequence < num_sequences; ++sequence) {
    std::mt19937 random(static_cast<unsigned>(seed * num_sequences + sequence));
    const int num_pages = 20 << random() % 5;
    // Of windows as many pages, fewer, or just those of one branch.
    const int reach = test.window == 0 ? 0 : (test.window + test.most_new + 61) / kKvPageTokens + 1;
    const int num_windows = std::min(num_pages, std::max(reach, num_pages >> random() % 4));
    const KvWindows windows{.window = test.window, .num_pages = num_windows, .reach = reach};
    Simulation simulation(num_pages, test.window == 0 ? KvWindows{} : windows);
    for (int i = 0; i < kOperations; ++i) {
      const State before = state_of(simulation.tree());
      try {
        act(simulation, random, test);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ExitCode::kOutOfMemory) << error.what();
        ASSERT_EQ(state_of(simulation.tree()), before);
        ++refused;
      }
      if (random() % 3 == 0) simulation.check();
      ASSERT_FALSE(testing::Test::HasFailure()) << "sequence " << sequence << ", operation " << i;
    }
    simulation.check();
    while (!simulation.model().empty()) {
      const auto any =
          std::next(simulation.model().begin(), static_cast<int>(random() % simulation.model().size()));
      simulation.prune(any->first);
      simulation.check();
    }
    EXPECT_EQ(simulation.tree().num_free_pages(), num_pages);
    EXPECT_EQ(simulation.tree().num_free_window_pages(), simulation.tree().windows().num_pages);
    ASSERT_FALSE(testing::Test::HasFailure()) << "sequence " << sequence;
  }
  EXPECT_GT(refused, 0);
}

class KvTreeRandom : public testing::TestWithParam<int> {};

TEST_P(KvTreeRandom, BranchesReadTheirTokens) {
  expect_tokens(GetParam(), 40, {});
}

class KvTreeWindows : public testing::TestWithParam<int> {};

// Every query of every step sees the tokens of its window, and every page is there or free.
TEST_P(KvTreeWindows, ReachTheirTokens) {
  for (const Case& test : {Case{.window = 5, .most_new = 8}, Case{.window = 100, .most_new = 1},
                           Case{.window = 200, .most_new = 256}})
    expect_tokens(GetParam(), 6, test);
}

INSTANTIATE_TEST_SUITE_P(Seeds, KvTreeRandom, testing::Range(0, long_tests() ? 50 : 6));
INSTANTIATE_TEST_SUITE_P(Seeds, KvTreeWindows, testing::Range(0, long_tests() ? 12 : 4));

}  // namespace
}  // namespace soliton
