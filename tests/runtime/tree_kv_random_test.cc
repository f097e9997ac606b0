// Random operations on the tree of KV pages: after each one every branch reads its tokens.
#include "runtime/tree_kv_fixture.h"

namespace soliton {
namespace {

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
      if (num_branches < 24 && pick(3) == 0) {
        simulation.branch_off(branch, pick(num_tokens + 1));
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