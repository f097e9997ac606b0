// What of a draft is accepted: against a naive walk, and in a simulated decoding that must not change the text.
#include <random>
#include <set>
#include <span>

#include "runtime/engine/tree/kv_tree.h"
#include "tests/runtime/prompt_lookup_fixture.h"

namespace soliton {
namespace {

/// Follows the choices by searching all children at each token.
AcceptedDraft naive_walk(const TokenDraft& draft, const Tokens& chosen, int32_t row) {
  for (int32_t child = 0; child < std::ssize(draft.tokens); ++child) {
    if (draft.parents[child] != row || draft.tokens[child] != chosen[row]) continue;
    AcceptedDraft below = naive_walk(draft, chosen, child);
    below.path.insert(below.path.begin(), row);
    return below;
  }
  return {.path = {row}, .next_token = chosen[row]};
}

TEST(PromptLookupAccept, FollowsTheChoices) {
  //  7 - 1 - 2 - 3
  //    \   \ 4 - 5
  //      2 - 3
  const TokenDraft draft{.tokens = {7, 1, 2, 3, 4, 5, 2, 3}, .parents = {-1, 0, 1, 2, 1, 4, 0, 6}};
  const auto accept = [&](const Tokens& chosen) { return accept_choices(draft, chosen); };
  EXPECT_EQ(accept({9, 2, 3, 0, 5, 0, 3, 0}), (AcceptedDraft{.path = {0}, .next_token = 9}));
  EXPECT_EQ(accept({1, 4, 3, 0, 5, 6, 3, 0}), (AcceptedDraft{.path = {0, 1, 4, 5}, .next_token = 6}));
  EXPECT_EQ(accept({1, 2, 8, 0, 5, 6, 3, 0}), (AcceptedDraft{.path = {0, 1, 2}, .next_token = 8}));
  EXPECT_EQ(accept({2, 2, 3, 0, 5, 6, 3, 7}), (AcceptedDraft{.path = {0, 6, 7}, .next_token = 7}));
  const TokenDraft alone{.tokens = {7}, .parents = {-1}};
  EXPECT_EQ(accept_choices(alone, Tokens{4}), (AcceptedDraft{.path = {0}, .next_token = 4}));
}

TEST(PromptLookupAccept, AcceptsAsANaiveWalkDoes) {
  for (unsigned seed = 0; seed < 5000; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int below) {
      return static_cast<int32_t>(random() % static_cast<unsigned>(below));
    };
    const int num_words = 2 + pick(4);
    // In preorder: the parent of a token is the one before or an ancestor of it, but siblings differ.
    TokenDraft draft{.tokens = {pick(num_words)}, .parents = {-1}};
    std::set<std::pair<int32_t, int32_t>> children;
    for (int size = pick(32); size > 0; --size) {
      int32_t parent = static_cast<int32_t>(draft.tokens.size()) - 1;
      while (parent > 0 && pick(3) == 0) parent = draft.parents[parent];
      const int32_t token = pick(num_words);
      if (!children.insert({parent, token}).second) continue;
      draft.tokens.push_back(token);
      draft.parents.push_back(parent);
    }
    Tokens chosen(draft.tokens.size());
    for (int32_t& token : chosen) token = pick(num_words);
    const AcceptedDraft accepted = accept_choices(draft, chosen);
    ASSERT_EQ(accepted, naive_walk(draft, chosen, 0)) << seed;
    KvTree tree(4);
    const Branch branch = tree.open();
    tree.draft(branch, draft.parents);
    EXPECT_NO_THROW(tree.accept(branch, accepted.path));
  }
}

TEST(PromptLookupAccept, RefusesWhatCannotBe) {
  expect_error([] { accept_choices({}, {}); }, "draft: rows: expected at least 1, got 0");
  expect_error(
      [] {
        accept_choices({.tokens = {1, 2}, .parents = {-1}}, Tokens{1, 2});
      },
      "draft: parents: expected 2, one a row, got 1");
  expect_error(
      [] {
        accept_choices({.tokens = {1, 2}, .parents = {-1, 0}}, Tokens{1});
      },
      "draft: chosen tokens: expected 2, one a row, got 1");
}

// ---- Decoding

using Model = std::function<int32_t(const Tokens& prefix)>;

/// Depends on all tokens of the prefix.
uint32_t hash_of(const Tokens& prefix) {
  uint32_t hash = 2166136261u;  // FNV-1a, a token at a time
  for (const int32_t token : prefix) hash = (hash ^ static_cast<uint32_t>(token)) * 16777619u;
  return hash >> 8;
}

/// Says again what it said 60 tokens before, but one time in 20 something else.
int32_t repetitive_model(const Tokens& prefix) {
  constexpr size_t kPeriod = 60;
  const uint32_t hash = hash_of(prefix);
  if (prefix.size() < kPeriod || hash % 20 == 0) return static_cast<int32_t>(hash / 20 % 50);
  return prefix[prefix.size() - kPeriod];
}

int32_t random_model(const Tokens& prefix) {
  return static_cast<int32_t>(hash_of(prefix) % 50'000);
}

Tokens decode(const Model& model, Tokens tokens, int num_tokens) {
  for (int i = 0; i < num_tokens; ++i) tokens.push_back(model(tokens));
  return tokens;
}

struct Decoded {
  Tokens tokens;
  int num_steps = 0;
};

/// As an engine would: the first token comes from the prompt, then a tree a step, over a tree of KV pages.
Decoded decode_with_lookups(const Model& model, Tokens tokens, int num_tokens, int max_drafts) {
  const size_t size = tokens.size() + num_tokens;
  KvTree tree(16);
  const Branch branch = tree.open();
  tree.append(branch, static_cast<int>(tokens.size()));
  tokens.push_back(model(tokens));
  PromptLookup lookup = lookup_of(tokens);
  int num_steps = 1;
  for (; tokens.size() < size; ++num_steps) {
    const TokenDraft draft = lookup.propose(max_drafts);
    tree.draft(branch, draft.parents);
    std::vector<Tokens> prefixes;
    Tokens chosen;
    for (size_t row = 0; row < draft.tokens.size(); ++row) {
      prefixes.push_back(row == 0 ? tokens : prefixes[draft.parents[row]]);
      if (row > 0) prefixes.back().push_back(draft.tokens[row]);
      chosen.push_back(model(prefixes.back()));
    }
    const AcceptedDraft accepted = accept_choices(draft, chosen);
    tree.accept(branch, accepted.path);
    Tokens added;
    for (const int32_t row : std::span(accepted.path).subspan(1)) added.push_back(draft.tokens[row]);
    added.push_back(accepted.next_token);
    lookup.append(added);
    tokens.insert(tokens.end(), added.begin(), added.end());
    EXPECT_EQ(tree.num_tokens(branch) + 1, std::ssize(tokens)) << "all are cached but the last";
  }
  tokens.resize(size);
  return {.tokens = tokens, .num_steps = num_steps};
}

TEST(PromptLookupDecoding, SaysWhatPlainDecodingSays) {
  constexpr int kTokens = 400;
  const std::pair<std::string, Model> models[] = {{"repetitive", repetitive_model}, {"random", random_model}};
  for (const auto& [name, model] : models) {
    for (int32_t seed = 0; seed < 5; ++seed) {
      const Tokens prompt = {seed, 1, 2, 3};
      const Tokens plain = decode(model, prompt, kTokens);
      for (const int max_drafts : kDraftSizes) {
        SCOPED_TRACE(testing::Message() << name << " from " << seed << ", drafts of " << max_drafts);
        const Decoded decoded = decode_with_lookups(model, prompt, kTokens, max_drafts);
        EXPECT_EQ(decoded.tokens, plain);
        EXPECT_LE(decoded.num_steps, kTokens);
        if (max_drafts == 0) {
          EXPECT_EQ(decoded.num_steps, kTokens);
        }
        // Of 20 tokens one is new, and what follows it takes a step or two to be recognised.
        if (max_drafts >= 7 && name == "repetitive") {
          EXPECT_LT(decoded.num_steps, kTokens / 2);
        }
      }
    }
  }
}

}  // namespace
}  // namespace soliton
