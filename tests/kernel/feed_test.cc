// Engine::feed(): what it leaves in the cache is what a decode would have left, whichever kernels a library has; and
// other branches of the tree do not notice.
#include <optional>

#include "kernel/tree_fixture.h"
#include "models/error.h"

namespace soliton {
namespace {

class Feed : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Kernels, Feed,
                         testing::Values("micro-3", "plain-4-split", "plain-4-rows8", "plain-4-all",
                                         "plain-4-rows8-lanes", "fp8-4-all"),
                         test_name);

// Around the chunks of 8 and 64 rows, and the end of a page.
TEST_P(Feed, FillsTheCacheAsTheReference) {
  for (const int length : long_tests() ? std::vector{1, 2, 8, 9, 63, 64, 65} : std::vector{1, 8, 9, 64, 65}) {
    SCOPED_TRACE(length);
    KernelUnderTest kernel(GetParam());
    const std::vector<int32_t> tokens = kernel.prompt(length + 1);
    kernel.engine().feed(kernel.engine().main_branch(), std::span(tokens).first(length));
    EXPECT_EQ(kernel.engine().position(), length);
    for (int i = 0; i < length; ++i) kernel.reference().step(tokens[i], i);
    kernel.expect_like_reference({tokens.back()}, 2);
  }
}

TEST_P(Feed, OneByOneFillsTheCacheAsTheReference) {
  constexpr int kLength = 13;
  KernelUnderTest kernel(GetParam());
  kernel.engine().feed_one_by_one();
  const std::vector<int32_t> tokens = kernel.prompt(kLength + 1);
  kernel.engine().feed(kernel.engine().main_branch(), std::span(tokens).first(kLength));
  for (int i = 0; i < kLength; ++i) kernel.reference().step(tokens[i], i);
  kernel.expect_like_reference({tokens.back()}, 2);
}

// The steps are those of a decode that chooses nothing either until its last token.
TEST(FeedOneRow, LeavesTheBitsThatADecodeLeaves) {
  KernelUnderTest kernel("micro-3");
  const std::vector<int32_t> tokens = kernel.prompt(70);
  const DecodeResult whole = kernel.decode(tokens, 3);
  for (const int length : {1, 40, 69}) {
    kernel.engine().set_position(0);
    kernel.engine().feed(kernel.engine().main_branch(), std::span(tokens).first(length));
    const DecodeResult rest = kernel.decode({tokens.begin() + length, tokens.end()}, 3);
    EXPECT_EQ(rest.tokens, whole.tokens) << length;
    EXPECT_EQ(rest.logits, whole.logits) << length;
  }
}

TEST_P(Feed, OfNothingChangesNothing) {
  KernelUnderTest kernel(GetParam());
  kernel.engine().feed(kernel.engine().main_branch(), {});
  EXPECT_EQ(kernel.engine().position(), 0);
  EXPECT_EQ(kernel.engine().tree().num_free_pages(), kernel.engine().tree().num_pages());
}

TEST_P(Feed, RefusesWhatDoesNotFit) {
  KernelUnderTest kernel(GetParam());
  Engine& engine = kernel.engine();
  const auto refused = [&](const std::vector<int32_t>& tokens) -> std::optional<ExitCode> {
    const std::vector<int> before = state_of(engine.tree());
    try {
      engine.feed(engine.main_branch(), tokens);
    } catch (const Error& error) {
      EXPECT_EQ(state_of(engine.tree()), before);
      return error.code();
    }
    return std::nullopt;
  };
  EXPECT_EQ(refused({1, -1}), ExitCode::kMismatch);
  EXPECT_EQ(refused({1, kernel.facts().vocabulary}), ExitCode::kMismatch);
  EXPECT_EQ(refused(std::vector<int32_t>(kTestContext + 1, 5)), ExitCode::kOutOfMemory);
  EXPECT_THROW(engine.feed(engine.main_branch() + 1, kernel.prompt(2)), Error);
}

TEST(FeedOneRow, RefusesABranchThatSharesTokens) {
  KernelUnderTest kernel("micro-3");
  Engine& engine = kernel.engine();
  engine.feed(engine.main_branch(), kernel.prompt(5));
  const std::vector<Branch> branches = engine.tree().fork(engine.main_branch(), 2);
  const std::vector<int> before = state_of(engine.tree());
  EXPECT_THROW(engine.feed(branches[0], kernel.prompt(2)), Error);
  EXPECT_EQ(state_of(engine.tree()), before);
}

// ---- Among others

class FeedTree : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Kernels, FeedTree, testing::Values("plain-4-rows8", "plain-4-all"), test_name);

TEST_P(FeedTree, OtherBranchesKeepTheirDrafts) {
  TreeUnderTest kernel(GetParam());
  Engine& engine = kernel.engine();
  const Branch root = kernel.tree().open();
  kernel.fill(root, 20);
  const std::vector<Branch> branches = kernel.tree().fork(root, 3);
  kernel.tree().draft(branches[0], {});
  const Draft draft = kernel.any_draft(3);
  kernel.tree().draft(branches[2], draft.parents);
  for (const int count : {1, 5, 8, 9, 17}) {
    const int before = kernel.tree().num_tokens(branches[1]);
    engine.feed(branches[1], kernel.any_tokens(count));
    EXPECT_EQ(kernel.tree().num_tokens(branches[1]), before + count);
  }
  EXPECT_EQ(kernel.tree().num_tokens(branches[0]), 20);
  EXPECT_EQ(kernel.tree().num_tokens(branches[2]), 20);
  std::vector<std::pair<Branch, int>> rows;
  for (const SnapshotRow& row : engine.rows()) rows.emplace_back(row.branch, row.draft);
  EXPECT_EQ(rows, (std::vector<std::pair<Branch, int>>{
                      {branches[1], 0}, {branches[2], 0}, {branches[2], 1}, {branches[2], 2}}));
}

// As the chunks that a caller makes himself of drafts while all others are paused.
TEST_P(FeedTree, GivesTheBitsOfChunksMadeByHand) {
  std::vector<float> logits[2];
  for (const bool by_hand : {false, true}) {
    TreeUnderTest kernel(GetParam());
    const int chunk = kernel.engine().max_rows();
    const Branch root = kernel.tree().open();
    kernel.fill(root, 30);
    const std::vector<Branch> branches = kernel.tree().fork(root, 2);
    const std::vector<int32_t> tokens = kernel.any_tokens(2 * chunk);
    if (!by_hand) kernel.engine().feed(branches[1], tokens);
    for (int from = 0; by_hand && from < 2 * chunk; from += chunk) {
      const auto first = tokens.begin() + from;
      const std::vector<int32_t> row_tokens =
          kernel.prepare({{branches[1], {chain(chunk), {first, first + chunk}}}});
      kernel.engine().decode_tree({.tokens = row_tokens, .skips_choice = true});
      std::vector<int32_t> path(chunk);
      std::iota(path.begin(), path.end(), 0);
      kernel.tree().accept(branches[1], path);
    }
    logits[by_hand] = kernel.run(kernel.plain(branches)).logits;
  }
  EXPECT_EQ(logits[0], logits[1]);
}

TEST_P(FeedTree, TheMainBranchDecodesWhileOthersWait) {
  constexpr int kTokens = 6;
  KernelUnderTest kernel(GetParam(), kTestContext, 4 * kTestContext);
  Engine& engine = kernel.engine();
  const std::vector<int32_t> prompt = kernel.prompt(75);
  const DecodeResult alone = kernel.decode(prompt, kTokens);
  engine.reset_tree();
  const Branch other = engine.tree().open();
  engine.feed(other, kernel.prompt(10));
  const DecodeResult among = kernel.decode(prompt, kTokens);
  EXPECT_EQ(among.tokens, alone.tokens);
  EXPECT_EQ(among.logits, alone.logits);
  EXPECT_EQ(engine.tree().num_tokens(other), 10);
  EXPECT_EQ(engine.position(), 75 + kTokens - 1);
}

}  // namespace
}  // namespace soliton
