// Kernels of several rows over several emulated cards: faults that take the scope of the system away, bits, draws. Against
// the reference, and for races, they run with those of one card (tree_test.cc).
#include <gmock/gmock.h>

#include "error_of.h"
#include "kernel/kernel_cases.h"
#include "kernel/tree_fixture.h"

namespace soliton {
namespace {

using testing::HasSubstr;

struct RowsFault {
  const char* name;
  FaultKind kind;
};

class CardsTreeFault : public testing::TestWithParam<RowsFault> {};

INSTANTIATE_TEST_SUITE_P(Each, CardsTreeFault,
                         testing::Values(RowsFault{"fence_of_the_card", FaultKind::kWeakenSystemFence},
                                         RowsFault{"stores_of_the_card", FaultKind::kWeakenSystemAccess}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(CardsTreeFault, IsFound) {
  TreeUnderTest kernel("micro-2-all-cards2");
  const Branch root = kernel.tree().open();
  kernel.fill(root, 70);
  const Drafts drafts = kernel.plain(kernel.tree().fork(root, 5));
  kernel.emulation().check = true;
  EXPECT_NO_THROW(kernel.run(drafts));
  kernel.take_back(drafts);
  kernel.emulation().fault.kind = GetParam().kind;
  std::string found = "no error";
  for (uint64_t seed = 1; seed <= 4 && found == "no error"; ++seed) {
    kernel.emulation().seed = seed;
    kernel.emulation().copies = seed % 2 == 0 ? CopyPolicy::kLate : CopyPolicy::kRandom;
    found = error_of([&] {
      kernel.run(drafts);
      kernel.take_back(drafts);
    });
  }
  EXPECT_NE(found, "no error");
}

// Sums have one order for as many CTAs, wherever they are, and slices one length by SliceRule::kFixed.
TEST(CardsTreeBits, AreThoseOfOneCardWithAsManyCtas) {
  std::vector<TreeResult> results;
  for (const char* name : {"micro-4-rows8", "micro-2-all-cards2"}) {
    TreeUnderTest kernel(name);
    kernel.random().seed(3);
    const Branch root = kernel.tree().open();
    const std::vector<int32_t> prompt = kernel.any_tokens(141);
    for (size_t fed = 0; fed < prompt.size(); fed += 8) {  // chunks, whatever kernels there are
      const size_t count = std::min<size_t>(8, prompt.size() - fed);
      Draft chunk{chain(static_cast<int>(count)), {prompt.begin() + fed, prompt.begin() + fed + count}};
      kernel.run({{root, chunk}});
      std::vector<int32_t> all(count);
      std::iota(all.begin(), all.end(), 0);
      kernel.tree().accept(root, all);
    }
    const std::vector<Branch> branches = kernel.tree().fork(root, 5);
    Drafts drafts;
    for (size_t i = 0; i < branches.size(); ++i) drafts[branches[i]] = {{-1}, {static_cast<int32_t>(7 * i)}};
    results.push_back(kernel.run(drafts, 3));
  }
  EXPECT_EQ(results[1].chosen, results[0].chosen);
  EXPECT_EQ(results[1].logits, results[0].logits);
}

TEST(CardsTreeBits, AreTheSameUnderEverySchedule) {
  for (const char* name : {"plain-1-rows8-cards4", "plain-2-rows32-cards2", "plain-2-rows64-cards2"}) {
    if (!is_built(name)) continue;
    TreeUnderTest kernel(name);
    const Branch root = kernel.tree().open();
    kernel.fill(root, 100);
    const Drafts drafts = kernel.plain(kernel.tree().fork(root, 7));
    const TreeResult expected = kernel.run(drafts);
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      kernel.take_back(drafts);
      kernel.emulation().seed = seed;
      kernel.emulation().copies = seed % 3 == 0   ? CopyPolicy::kEager
                                  : seed % 3 == 1 ? CopyPolicy::kLate
                                                  : CopyPolicy::kRandom;
      EXPECT_EQ(kernel.run(drafts).logits, expected.logits) << name << ", seed " << seed;
    }
  }
}

// From the same logits by the same seeds, as all cards agree on limits and candidates.
TEST(CardsTreeSampling, DrawsTheTokensOfOneCard) {
  std::vector<TreeResult> results;
  for (const char* name : {"micro-4-rows8", "micro-2-all-cards2"}) {
    TreeUnderTest kernel(name);
    kernel.emulation().check = true;
    const std::vector<Branch> branches = kernel.tree().fork(kernel.tree().open(), 3);
    std::vector<int32_t> tokens;
    std::vector<RowSampling> sampling;
    for (size_t i = 0; i < branches.size(); ++i) {
      tokens.push_back(static_cast<int32_t>(5 + i));
      sampling.push_back({.inverse_temperature = 0.5f, .seed = static_cast<uint32_t>(i), .top_k = 9});
    }
    sampling[1] = {
        .inverse_temperature = 0.5f, .seed = 5, .top_p = 0.7f, .max_distance = 2.0f, .penalty = 1.5f};
    const std::vector<std::vector<int32_t>> past(branches.size(), std::vector<int32_t>{1, 2, 3});
    results.push_back(kernel.engine().decode_tree({.tokens = tokens,
                                                   .num_steps = 3,
                                                   .sampling = sampling,
                                                   .past = past,
                                                   .want_logits = true,
                                                   .want_logprobs = true,
                                                   .rule = SliceRule::kFixed}));
  }
  EXPECT_EQ(results[1].chosen, results[0].chosen);
  EXPECT_EQ(results[1].logits, results[0].logits);
  EXPECT_EQ(results[1].logprobs, results[0].logprobs);
}

TEST(CardsTreeLaunch, EndsWithoutACardThatNeverBegins) {
  TreeUnderTest kernel("micro-2-all-cards2");
  const Branch root = kernel.tree().open();
  const Drafts drafts = kernel.plain(kernel.tree().fork(root, 3));
  kernel.engine().lose_card(1);
  const std::string error = error_of([&] { kernel.run(drafts); });
  EXPECT_THAT(error, HasSubstr("kernel stalled: device 0: CTA"));
  EXPECT_THAT(error, HasSubstr("; device 1: nothing is running there"));
}

}  // namespace
}  // namespace soliton
