// Drafts looked up in the context: against a naive search that keeps no index and ranks all that it could draft, and on
// examples worked out by hand.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "long_tests.h"
#include "runtime/engine/tree/kv_tree.h"
#include "tests/runtime/prompt_lookup_fixture.h"

namespace soliton {
namespace {

TokenDraft propose(const Tokens& tokens, int max_drafts) {
  return lookup_of(tokens).propose(max_drafts);
}

/// All that KvTree and the docstring ask of a draft's form.
void expect_valid(const TokenDraft& draft, int32_t last_token, int max_drafts) {
  ASSERT_EQ(draft.tokens.size(), draft.parents.size());
  ASSERT_GE(draft.tokens.size(), 1u);
  EXPECT_LE(std::ssize(draft.tokens), 1 + max_drafts);
  EXPECT_EQ(draft.tokens[0], last_token);
  EXPECT_EQ(draft.parents[0], -1);
  std::set<std::pair<int32_t, int32_t>> children;
  for (size_t row = 1; row < draft.tokens.size(); ++row) {
    EXPECT_GE(draft.parents[row], 0);
    EXPECT_TRUE(children.insert({draft.parents[row], draft.tokens[row]}).second) << "siblings alike";
  }
  KvTree tree(4);
  EXPECT_NO_THROW(tree.draft(tree.open(), draft.parents));
}

/// The docstring of PromptLookup::propose() as plainly as can be.
class NaiveLookup {
 public:
  explicit NaiveLookup(Tokens tokens) : tokens_(std::move(tokens)) {
    const int last = static_cast<int>(tokens_.size()) - 1;
    for (int end = last - 1; end >= 0; --end) {
      if (num_shared(end) > 0) sources_.push_back({.end = end, .num_shared = num_shared(end)});
    }
    sort_by([](const Source& source) { return std::min(source.num_shared, PromptLookup::kMaxNgram); });
    if (sources_.size() > PromptLookup::kMaxOccurrences) sources_.resize(PromptLookup::kMaxOccurrences);
    sort_by([](const Source& source) { return source.num_shared; });
    std::map<int, double> totals;
    std::map<int, int> ranks;
    for (const Source& source : sources_) totals[source.num_shared] += 1.0 / ++ranks[source.num_shared];
    std::map<int, double> left;
    double rest = 1;
    for (auto total = totals.rbegin(); total != totals.rend(); ++total) {
      left[total->first] = rest;
      rest /= total->first + 1;
    }
    ranks.clear();
    for (Source& source : sources_) {
      const int num_shared = source.num_shared;
      source.share = left[num_shared] / ++ranks[num_shared] / totals[num_shared];
    }
  }

  TokenDraft propose(int max_drafts) const {
    // Every path that could be drafted, by its tokens.
    std::map<Tokens, Candidate> paths;
    for (int i = 0; i < std::ssize(sources_); ++i) {
      Tokens path;
      for (int depth = 1; depth <= max_drafts; ++depth) {
        path.push_back(prediction(sources_[i].end, depth));
        Candidate& candidate = paths.try_emplace(path, Candidate{.path = path, .source = i}).first->second;
        const int num_shared = sources_[i].num_shared;
        candidate.probability += sources_[i].share * num_shared / (num_shared + depth);
      }
    }
    std::vector<Candidate> ranked;
    for (const auto& [path, candidate] : paths) ranked.push_back(candidate);
    std::sort(ranked.begin(), ranked.end(), [](const Candidate& left, const Candidate& right) {
      if (left.probability != right.probability) return left.probability > right.probability;
      return left.source != right.source ? left.source < right.source : left.path.size() < right.path.size();
    });
    if (std::ssize(ranked) > max_drafts) ranked.resize(max_drafts);
    TokenDraft draft{.tokens = {tokens_.back()}, .parents = {-1}};
    add_below({}, 0, ranked, draft);
    return draft;
  }

 private:
  struct Source {
    int end = 0;
    int num_shared = 0;
    double share = 0;
  };
  struct Candidate {
    Tokens path;
    int source = 0;  // the first that predicts it
    double probability = 0;
  };

  int num_shared(int end) const {
    const int last = static_cast<int>(tokens_.size()) - 1;
    for (int i = 0; i < PromptLookup::kMaxMatch; ++i) {
      if (i > end || tokens_[end - i] != tokens_[last - i]) return i;
    }
    return PromptLookup::kMaxMatch;
  }

  void sort_by(const std::function<int(const Source&)>& key) {
    std::stable_sort(sources_.begin(), sources_.end(),
                     [&](const Source& left, const Source& right) { return key(left) > key(right); });
  }

  /// Continues the context by itself, token by token.
  int32_t prediction(int end, int depth) const {
    Tokens text = tokens_;
    for (int i = 1; i <= depth; ++i) text.push_back(text[end + i]);
    return text.back();
  }

  static void add_below(const Tokens& path, int32_t row, const std::vector<Candidate>& ranked,
                        TokenDraft& draft) {
    for (const Candidate& candidate : ranked) {
      if (candidate.path.size() != path.size() + 1) continue;
      if (!std::equal(path.begin(), path.end(), candidate.path.begin())) continue;
      draft.tokens.push_back(candidate.path.back());
      draft.parents.push_back(row);
      add_below(candidate.path, static_cast<int32_t>(draft.tokens.size()) - 1, ranked, draft);
    }
  }

  Tokens tokens_;
  std::vector<Source> sources_;
};

// ---- Proposals

TEST(PromptLookup, DraftsWhatFollowed) {
  EXPECT_EQ(propose({1, 2, 3, 4, 9, 1, 2, 3}, 3),
            (TokenDraft{.tokens = {3, 4, 9, 1}, .parents = {-1, 0, 1, 2}}));
}

TEST(PromptLookup, DraftsNothingBehindANewToken) {
  const TokenDraft alone{.tokens = {4}, .parents = {-1}};
  for (const int max_drafts : kDraftSizes) {
    EXPECT_EQ(propose({4}, max_drafts), alone);
    EXPECT_EQ(propose({1, 2, 3, 4}, max_drafts), alone);
    EXPECT_EQ(propose({1, 1, 2, 2, 1, 1, 4}, max_drafts), alone);
  }
}

TEST(PromptLookup, GoesOnFromTheStartBehindTheEnd) {
  EXPECT_EQ(propose({5, 5}, 4), (TokenDraft{.tokens = {5, 5, 5, 5, 5}, .parents = {-1, 0, 1, 2, 3}}));
  EXPECT_EQ(propose({8, 1, 2, 3, 1}, 5),
            (TokenDraft{.tokens = {1, 2, 3, 1, 2, 3}, .parents = {-1, 0, 1, 2, 3, 4}}));
}

TEST(PromptLookup, PrefersTheOccurrenceThatSharesMore) {
  // Behind "1 2 3" came 4, behind the later "3" 5.
  EXPECT_EQ(propose({1, 2, 3, 4, 3, 5, 1, 2, 3}, 1), (TokenDraft{.tokens = {3, 4}, .parents = {-1, 0}}));
  // Beyond kMaxNgram too: "9 1 2 3 4 5" against "8 1 2 3 4 5".
  EXPECT_EQ(propose({9, 1, 2, 3, 4, 5, 6, 8, 1, 2, 3, 4, 5, 7, 9, 1, 2, 3, 4, 5}, 1),
            (TokenDraft{.tokens = {5, 6}, .parents = {-1, 0}}));
}

TEST(PromptLookup, PrefersTheLaterOccurrence) {
  EXPECT_EQ(propose({7, 1, 2, 8, 1, 3, 9, 1}, 1), (TokenDraft{.tokens = {1, 3}, .parents = {-1, 0}}));
  // Two older ones that agree count 1/2 + 1/3, three 1/2 + 1/3 + 1/4.
  EXPECT_EQ(propose({6, 1, 2, 7, 1, 2, 8, 1, 3, 9, 1}, 1),
            (TokenDraft{.tokens = {1, 3}, .parents = {-1, 0}}));
  EXPECT_EQ(propose({5, 1, 2, 6, 1, 2, 7, 1, 2, 8, 1, 3, 9, 1}, 1),
            (TokenDraft{.tokens = {1, 2}, .parents = {-1, 0}}));
}

TEST(PromptLookup, MergesContinuations) {
  // Behind 9 came "2 9 2 ..." (share 2/3) and "1 9 2 ..." (1/3): 2 has probability 1/3, 2 9 2/9, 2 9 2 and 1
  // both 1/6, of which the later occurrence's comes first, 2 9 2 9 2/15, 1 9 1/9.
  const Tokens tokens = {9, 1, 9, 2, 9};
  EXPECT_EQ(propose(tokens, 3), (TokenDraft{.tokens = {9, 2, 9, 2}, .parents = {-1, 0, 1, 2}}));
  EXPECT_EQ(propose(tokens, 4), (TokenDraft{.tokens = {9, 2, 9, 2, 1}, .parents = {-1, 0, 1, 2, 0}}));
  EXPECT_EQ(propose(tokens, 5), (TokenDraft{.tokens = {9, 2, 9, 2, 9, 1}, .parents = {-1, 0, 1, 2, 3, 0}}));
  // Behind "1 2" came "3 5 1" and, less late, "3 4 1": 3 has probability 2/3, 5 1/3, 1 4/15, 2 2/9, 3 4/21,
  // then 5 and 4 1/6.
  EXPECT_EQ(propose({1, 2, 3, 4, 1, 2, 3, 5, 1, 2}, 7),
            (TokenDraft{.tokens = {2, 3, 5, 1, 2, 3, 5, 4}, .parents = {-1, 0, 1, 2, 3, 4, 5, 1}}));
}

TEST(PromptLookup, KeepsToTheLimit) {
  Tokens tokens;
  for (int i = 0; i < 40; ++i) tokens.insert(tokens.end(), {1, 2, 100 + i});
  tokens.insert(tokens.end(), {1, 2});
  for (const int max_drafts : kDraftSizes) {
    const TokenDraft draft = propose(tokens, max_drafts);
    expect_valid(draft, 2, max_drafts);
    EXPECT_EQ(std::ssize(draft.tokens), 1 + max_drafts);
  }
  // Each occurrence went on differently; the kMaxOccurrences latest are looked at, the latest first.
  const TokenDraft draft = propose(tokens, 1000);
  EXPECT_EQ(draft.tokens.size(), 1001u);
  Tokens next;
  for (size_t row = 1; row < draft.tokens.size(); ++row) {
    if (draft.parents[row] == 0) next.push_back(draft.tokens[row]);
  }
  Tokens latest;
  for (int i = 0; i < PromptLookup::kMaxOccurrences; ++i) latest.push_back(139 - i);
  EXPECT_EQ(next, latest);
}

TEST(PromptLookup, ProposesAsANaiveSearchDoes) {
  for (unsigned seed = 0; seed < (long_tests() ? 6000 : 1200); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    const int num_words = 1 + pick(12);
    const int num_copies = pick(4);  // of 4: how much of the text is copied from earlier on
    Tokens tokens;
    PromptLookup lookup;
    for (int round = 1 + pick(3); round > 0; --round) {
      const int size = static_cast<int>(tokens.size()) + 1 + pick(100);
      Tokens added;
      while (std::ssize(tokens) < size) {
        if (!tokens.empty() && pick(4) < num_copies) {
          const int from = pick(static_cast<int>(tokens.size()));
          const int end = from + 1 + pick(50);
          for (int i = from; i < end && i < std::ssize(tokens); ++i) added.push_back(tokens[i]);
        } else {
          added = {pick(num_words)};
        }
        tokens.insert(tokens.end(), added.begin(), added.end());
        lookup.append(added);
        added.clear();
      }
      const int max_drafts = kDraftSizes[pick(std::size(kDraftSizes))];
      const TokenDraft draft = lookup.propose(max_drafts);
      expect_valid(draft, tokens.back(), max_drafts);
      ASSERT_EQ(draft, NaiveLookup(tokens).propose(max_drafts));
      // Truncated for the next round, to anything from nothing to all.
      tokens.resize(pick(static_cast<int>(tokens.size()) + 1));
      lookup.truncate(static_cast<int>(tokens.size()));
      ASSERT_EQ(lookup.num_tokens(), std::ssize(tokens));
    }
  }
}

TEST(PromptLookup, ForgetsWhatIsTruncated) {
  PromptLookup lookup = lookup_of({1, 2, 3, 1, 2, 4, 1, 2});
  EXPECT_EQ(lookup.propose(1).tokens, (Tokens{2, 4}));
  lookup.truncate(5);
  EXPECT_EQ(lookup.num_tokens(), 5);
  EXPECT_EQ(lookup.propose(1).tokens, (Tokens{2, 3}));
  lookup.truncate(2);
  EXPECT_EQ(lookup.propose(1).tokens, (Tokens{2}));
  lookup.truncate(2);
  lookup.truncate(0);
  EXPECT_EQ(lookup.num_tokens(), 0);
  lookup.append(Tokens{7, 1, 7});
  EXPECT_EQ(lookup.propose(2), propose({7, 1, 7}, 2));
}

TEST(PromptLookup, DependsOnTheTokensAlone) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Tokens tokens(1 + random() % 300);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 20);
    const PromptLookup at_once = lookup_of(tokens);
    PromptLookup one_by_one;  // with detours
    for (const int32_t token : tokens) {
      const Tokens detour(random() % 5, static_cast<int32_t>(random() % 40));
      one_by_one.append(detour);
      one_by_one.truncate(one_by_one.num_tokens() - static_cast<int>(detour.size()));
      one_by_one.append(token);
    }
    for (const int max_drafts : kDraftSizes) {
      const TokenDraft draft = at_once.propose(max_drafts);
      EXPECT_EQ(draft, at_once.propose(max_drafts));
      EXPECT_EQ(draft, one_by_one.propose(max_drafts));
    }
  }
}

TEST(PromptLookup, TakesAnyToken) {
  constexpr int32_t kLargest = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(propose({-1, kLargest, 0, -1}, 2).tokens, (Tokens{-1, kLargest, 0}));
}

TEST(PromptLookup, RefusesWhatCannotBe) {
  PromptLookup lookup;
  expect_error([&] { lookup.propose(7); }, "tokens of the context: expected at least 1, got 0");
  expect_error([&] { lookup.truncate(1); }, "tokens to keep: expected 0 to 0, got 1");
  lookup.append(3);
  expect_error([&] { lookup.propose(-1); }, "tokens to draft: expected at least 0, got -1");
  expect_error([&] { lookup.truncate(-1); }, "tokens to keep: expected 0 to 1, got -1");
  expect_error([&] { lookup.truncate(2); }, "tokens to keep: expected 0 to 1, got 2");
  EXPECT_EQ(lookup.num_tokens(), 1);
}

// The times are for the reader; the proposals must be right at this size too.
TEST(PromptLookup, LongContexts) {
  using Clock = std::chrono::steady_clock;
  constexpr int kTokens = 100'000;
  constexpr int kRounds = 2000;
  const auto us = [](Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
  };
  const std::pair<const char*, double> kinds[] = {{"one token", 0}, {"few words", 4}, {"many words", 11}};
  for (const auto& [name, log_words] : kinds) {
    // Words of about equal numbers between powers of e, as Zipf's law has it.
    std::mt19937 random(1);
    std::uniform_real_distribution<double> log_word(0, log_words);
    Tokens tokens(kTokens);
    for (int32_t& token : tokens) token = static_cast<int32_t>(std::exp(log_word(random)));
    PromptLookup lookup;
    const Clock::time_point start = Clock::now();
    lookup.append(tokens);
    const double append_us = us(Clock::now() - start);
    std::vector<double> propose_us;
    for (int round = 0; round < kRounds; ++round) {
      lookup.append(tokens[round]);
      const Clock::time_point before = Clock::now();
      const TokenDraft draft = lookup.propose(31);
      propose_us.push_back(us(Clock::now() - before));
      EXPECT_EQ(draft.tokens.size(), 32u);
    }
    tokens.insert(tokens.end(), tokens.begin(), tokens.begin() + kRounds);
    EXPECT_EQ(lookup.propose(31), NaiveLookup(tokens).propose(31));
    std::nth_element(propose_us.begin(), propose_us.begin() + kRounds / 2, propose_us.end());
    std::printf("%-10s  append %.2f us a token, propose %.1f us\n", name, append_us / kTokens,
                propose_us[kRounds / 2]);
  }
}

}  // namespace
}  // namespace soliton
