// The radix tree of cached tokens, beside what each branch reads through its pages.
#include "runtime/answer/forest/prefix_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "layout/page.h"
#include "models/error.h"

namespace soliton {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int32_t kGarbage = -1;

/// A cache over pages that are arrays on the host.
class CacheUnderTest {
 public:
  explicit CacheUnderTest(int num_pages) : tree_(num_pages), cache_(tree_), pages_(num_pages) {
    for (auto& page : pages_) page.fill(kGarbage);
  }

  PrefixCache& cache() { return cache_; }
  KvTree& tree() { return tree_; }

  /// Feeds what is not cached of all tokens but the last one. Returns the branch, in use.
  Branch feed(const Tokens& tokens, std::string_view scope = {}) {
    const PrefixCache::Start start = cache_.start(tokens, scope);
    num_cached_ = start.num_cached;
    EXPECT_EQ(tree_.num_tokens(start.branch), num_cached_);
    append(start.branch, Tokens(tokens.begin() + num_cached_, tokens.end() - 1));
    return start.branch;
  }
  void append(Branch branch, const Tokens& tokens) {
    ASSERT_TRUE(cache_.make_room(tree_.missing(branch, static_cast<int>(tokens.size()))));
    move();
    tree_.append(branch, static_cast<int>(tokens.size()));
    cache_.append(branch, tokens);
    const std::vector<int32_t> table = tree_.page_table(branch);
    const size_t first = static_cast<size_t>(tree_.num_tokens(branch)) - tokens.size();
    for (size_t i = 0; i < tokens.size(); ++i) {
      const size_t at = first + i;
      pages_[table[at / kKvPageTokens]][at % kKvPageTokens] = tokens[i];
    }
  }
  Tokens read(Branch branch) {
    move();
    Tokens tokens;
    for (const PageTokens& part : tree_.path(branch)) {
      tokens.insert(tokens.end(), pages_[part.page].begin(), pages_[part.page].begin() + part.num_tokens);
    }
    return tokens;
  }
  int num_cached() const { return num_cached_; }

 private:
  void move() {
    for (const TokenMove& move : tree_.take_moves()) {
      for (int i = 0; i < move.num_tokens; ++i) {
        pages_[move.to_page][move.to_token + i] = pages_[move.from_page][move.from_token + i];
      }
    }
  }

  KvTree tree_;
  PrefixCache cache_;
  std::vector<std::array<int32_t, kKvPageTokens>> pages_;
  int num_cached_ = 0;
};

/// `count` tokens from `first` on.
Tokens run(int32_t first, int count) {
  Tokens tokens(count);
  for (int i = 0; i < count; ++i) tokens[i] = first + i;
  return tokens;
}

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Tokens but_last(Tokens tokens) {
  tokens.pop_back();
  return tokens;
}

TEST(PrefixCache, SecondTurnGoesOnInTheSameBranch) {
  CacheUnderTest test(20);
  const Tokens turn = run(0, 100);
  const Branch branch = test.feed(turn);
  EXPECT_EQ(test.num_cached(), 0);
  test.append(branch, {99, 500, 501});
  test.cache().release(branch);
  const int free_pages = test.tree().num_free_pages();
  const Tokens next = joined(joined(turn, {500, 501, 502}), run(700, 10));
  const Branch again = test.feed(next);
  EXPECT_EQ(again, branch);
  EXPECT_EQ(test.num_cached(), 102);
  EXPECT_EQ(test.tree().num_free_pages(), free_pages);
  EXPECT_EQ(test.read(again), but_last(next));
}

// Neither what another scope keeps nor what it is being fed is found, and all scopes' pages are taken for room.
TEST(PrefixCache, ScopesShareNothingButRoom) {
  CacheUnderTest test(7);
  const Tokens prompt = run(0, 150);
  const Branch first = test.feed(prompt, "one");
  for (const bool in_use : {true, false}) {
    if (!in_use) test.cache().release(first);
    EXPECT_EQ(test.cache().match(prompt, "one"), 149);
    EXPECT_EQ(test.cache().match_in_use(prompt, "one"), in_use ? 149 : 0);
    for (const char* other : {"", "two", "on", "one\n"}) {
      EXPECT_EQ(test.cache().match(prompt, other), 0) << other;
      EXPECT_EQ(test.cache().match_in_use(prompt, other), 0) << other;
    }
  }
  const Branch second = test.feed(prompt, "two");
  EXPECT_EQ(test.num_cached(), 0);
  EXPECT_NE(second, first);
  EXPECT_EQ(test.cache().num_pages_in_use(), 3);
  const Branch third = test.cache().branch_off(second);
  EXPECT_EQ(test.cache().match(prompt, "one"), 149);
  test.cache().release(third);
  test.cache().release(second);
  test.feed(prompt, "");
  EXPECT_EQ(test.num_cached(), 0);
  EXPECT_EQ(test.cache().match(prompt, "one"), 0);  // the oldest, whose pages were wanted
  EXPECT_EQ(test.cache().match(prompt, "two"), 149);
}

TEST(PrefixCache, SharesWithWhoIsInUse) {
  CacheUnderTest test(20);
  const Tokens system = run(0, 150);
  const Tokens one = joined(system, run(1000, 30));
  const Tokens other = joined(system, run(2000, 30));
  const Branch first = test.feed(one);
  const Branch second = test.feed(other);
  EXPECT_EQ(test.num_cached(), 150);
  EXPECT_EQ(test.read(first), but_last(one));
  EXPECT_EQ(test.read(second), but_last(other));
  // Two pages shared, one of each.
  EXPECT_EQ(test.cache().num_pages_in_use(), 4);
  EXPECT_TRUE(test.tree().has_page_table(first));
  EXPECT_TRUE(test.tree().has_page_table(second));
}

TEST(PrefixCache, NeverHoldsTheLastToken) {
  CacheUnderTest test(20);
  const Tokens tokens = run(0, 129);
  test.cache().release(test.feed(tokens));
  EXPECT_EQ(test.cache().match(tokens), 128);
  const Tokens shorter = run(0, 128);
  EXPECT_EQ(test.cache().match(shorter), 127);
  const Branch branch = test.feed(shorter);
  EXPECT_EQ(test.num_cached(), 127);
  EXPECT_EQ(test.read(branch), but_last(shorter));
}

TEST(PrefixCache, LessThanAPageIsCopied) {
  CacheUnderTest test(20);
  const Tokens known = run(0, 60);
  test.cache().release(test.feed(known));
  EXPECT_EQ(test.cache().num_kept(), 1);
  const Tokens longer = joined(run(0, 40), run(500, 50));
  const Branch branch = test.feed(longer);
  EXPECT_EQ(test.num_cached(), 40);
  EXPECT_EQ(test.read(branch), but_last(longer));
  EXPECT_EQ(test.cache().match(known), 59);  // it is still there as it was
  EXPECT_EQ(test.cache().match(run(0, 64)), 59);
  constexpr int kLeast = PrefixCache::kLeastTokens;
  EXPECT_EQ(test.cache().match(run(0, kLeast + 1)), kLeast);
  EXPECT_EQ(test.cache().match(run(0, kLeast)), 0);
  EXPECT_EQ(test.cache().match(joined(run(0, kLeast - 1), run(900, 40))), 0);
  EXPECT_EQ(test.cache().match(known, "other"), 0);
}

// Where there is no page for the copy, all is fed.
TEST(PrefixCache, LessThanAPageIsFedWhereNoPageIsFree) {
  CacheUnderTest test(1);
  const Branch branch = test.feed(run(0, 60));
  const PrefixCache::Start start = test.cache().start(joined(run(0, 40), {7, 8}));
  EXPECT_EQ(start.num_cached, 0);
  EXPECT_EQ(test.tree().num_tokens(start.branch), 0);
  EXPECT_EQ(test.read(branch), run(0, 59));
}

TEST(PrefixCache, FewTokensAreNotKept) {
  CacheUnderTest test(20);
  test.cache().release(test.feed(run(0, PrefixCache::kLeastTokens)));
  EXPECT_EQ(test.cache().num_kept(), 0);
  EXPECT_EQ(test.tree().num_free_pages(), 20);
  EXPECT_EQ(test.cache().num_evicted(), 0);
}

TEST(PrefixCache, LeastRecentlyUsedGoesFirst) {
  CacheUnderTest test(9);
  for (const int32_t first : {0, 1000, 2000}) test.cache().release(test.feed(run(first, 150)));
  EXPECT_EQ(test.tree().num_free_pages(), 0);
  // Used again, and left as it was.
  test.cache().release(test.feed(run(0, 150)));
  EXPECT_EQ(test.num_cached(), 149);
  EXPECT_TRUE(test.cache().make_room({.pages = 3}));
  EXPECT_EQ(test.cache().match(run(1000, 150)), 0);
  EXPECT_EQ(test.cache().match(run(0, 150)), 149);
  EXPECT_EQ(test.cache().match(run(2000, 150)), 149);
  EXPECT_EQ(test.cache().num_evicted(), 1);
}

TEST(PrefixCache, WhatIsInUseStays) {
  CacheUnderTest test(6);
  const Branch branch = test.feed(run(0, 150));
  test.cache().release(test.feed(run(1000, 150)));
  EXPECT_FALSE(test.cache().make_room({.pages = 4}));
  EXPECT_EQ(test.tree().num_free_pages(), 3);
  EXPECT_EQ(test.read(branch), run(0, 149));
}

// With a full pool, what would be copied is fed again.
TEST(PrefixCache, SharesWholePagesWhereNoneIsFree) {
  CacheUnderTest test(3);
  const Branch branch = test.feed(run(0, 180));
  const PrefixCache::Start start = test.cache().start(joined(run(0, 150), {7, 8}));
  EXPECT_EQ(start.num_cached, 128);
  EXPECT_EQ(test.read(start.branch), run(0, 128));
  EXPECT_EQ(test.read(branch), run(0, 179));
}

// Sequences of a few tokens that share beginnings of all lengths come, grow and go.
TEST(PrefixCache, RandomSequencesReadTheirTokens) {
  std::mt19937 random(7);
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (int round = 0; round < 30; ++round) {
    CacheUnderTest test(24);
    std::vector<Tokens> known = {run(0, 300)};
    std::map<Branch, Tokens> in_use;
    for (int i = 0; i < 60; ++i) {
      if (in_use.size() < 3 && pick(2) == 0) {
        const Tokens& base = known[pick(static_cast<int>(known.size()))];
        Tokens tokens(base.begin(), base.begin() + 1 + pick(static_cast<int>(base.size())));
        for (int j = pick(40); j > 0; --j) tokens.push_back(pick(3));
        tokens.resize(std::min<size_t>(tokens.size(), 350));
        const int match = test.cache().match(tokens);
        const Branch branch = test.feed(tokens);
        EXPECT_LE(test.num_cached(), match);
        EXPECT_GE(test.num_cached(), match / kKvPageTokens * kKvPageTokens);
        ASSERT_TRUE(in_use.try_emplace(branch, but_last(tokens)).second);
        known.push_back(tokens);
      } else if (!in_use.empty()) {
        const auto one = std::next(in_use.begin(), pick(static_cast<int>(in_use.size())));
        if (pick(2) == 0) {
          const Tokens more = {pick(3), pick(3), pick(3)};
          test.append(one->first, more);
          one->second = joined(one->second, more);
        } else {
          test.cache().release(one->first);
          in_use.erase(one);
        }
      }
      for (const auto& [branch, tokens] : in_use) ASSERT_EQ(test.read(branch), tokens) << round << " " << i;
    }
    for (const auto& [branch, tokens] : in_use) test.cache().release(branch);
    EXPECT_TRUE(test.cache().make_room({.pages = 24}));
    EXPECT_EQ(test.tree().num_free_pages(), 24);
  }
}

// Of layers with a window a long sequence keeps what its end reaches: another one that has a beginning in common with it is fed
// all of that where nothing of it can be gone on from.
TEST(PrefixCache, FindsNoMoreThanWindowsReach) {
  constexpr KvWindows kFew = {.window = 100, .num_pages = 8, .reach = 4};
  KvTree tree(64, kFew);
  PrefixCache cache(tree);
  const auto feed = [&](const Tokens& tokens) {
    const PrefixCache::Start start = cache.start(tokens);
    const Tokens left(tokens.begin() + start.num_cached, tokens.end() - 1);
    EXPECT_TRUE(cache.make_room(tree.missing(start.branch, static_cast<int>(left.size()))));
    tree.append(start.branch, static_cast<int>(left.size()));
    cache.append(start.branch, left);
    cache.release(start.branch);
    return start.num_cached;
  };
  EXPECT_EQ(feed(run(0, 1000)), 0);
  EXPECT_EQ(cache.match(joined(run(0, 990), run(5000, 10))), 990);
  EXPECT_EQ(feed(joined(run(0, 990), run(5000, 10))), 990);
  EXPECT_EQ(cache.match(joined(run(0, 500), run(6000, 10))), 0);
  EXPECT_EQ(feed(joined(run(0, 500), run(6000, 10))), 0);
  EXPECT_EQ(cache.match(run(0, 505)), 500) << "which is there now";
}

TEST(PrefixCache, BranchesOffWhatABranchHolds) {
  CacheUnderTest under_test(4);
  PrefixCache& cache = under_test.cache();
  const Tokens tokens = run(0, kKvPageTokens + 10);
  const Branch first = under_test.feed(tokens);
  const Branch second = cache.branch_off(first);
  under_test.append(first, {-5});
  under_test.append(second, {-6});
  Tokens expected(tokens.begin(), tokens.end() - 1);
  expected.push_back(-6);
  EXPECT_EQ(under_test.read(second), expected);
  expected.back() = -5;
  EXPECT_EQ(under_test.read(first), expected);
  EXPECT_EQ(cache.num_pages_in_use(), 3) << "the full page is shared";
  const Branch third = cache.branch_off(second);
  EXPECT_THROW(cache.branch_off(second), Error) << "without a page for the copy";
  EXPECT_EQ(under_test.read(third), under_test.read(second));
  cache.release(first);
  EXPECT_NO_THROW(cache.branch_off(second)) << "what nobody uses goes";
}

}  // namespace
}  // namespace soliton
