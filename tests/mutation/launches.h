// What mutants are judged by: launches of a kernel, and all that they bring forth.
#pragma once

#include <atomic>
#include <vector>

#include "kernel/tree_fixture.h"

namespace soliton {

constexpr int kPosition = 66;  // tokens in the cache: a page, and a tile of the next
constexpr int kShortContext = 192;

/// All that a trial has brought forth, bit by bit.
class Outcome {
 public:
  template <class T>
  void add(const std::vector<T>& values) {
    for (const T& value : values) add(&value, sizeof value);
  }
  bool operator==(const Outcome&) const = default;

 private:
  void add(const void* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i)
      hash_ = (hash_ ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211ull;
  }
  uint64_t hash_ = 14695981039346656037ull;
};

inline void add_decode(Outcome& outcome, const DecodeResult& result) {
  outcome.add(result.tokens);
  outcome.add(result.logits);
  outcome.add(result.logprobs);
}
inline void add_tree(Outcome& outcome, const TreeResult& result) {
  outcome.add(result.chosen);
  outcome.add(result.logits);
  outcome.add(result.logprobs);
  outcome.add(std::vector<int>{result.began_ns == record_time_ns(kNoRecord) ? 1 : 0});  // was it never said?
}

/// A launch of several steps, one that goes on where it ended, and one that ends early, by a token.
inline Outcome decode_twice(KernelUnderTest& kernel, int fed, int count) {
  Outcome outcome;
  const DecodeResult first = kernel.decode_from(kPosition, kernel.prompt(fed), count);
  add_decode(outcome, first);
  add_decode(outcome, kernel.decode({first.tokens.back()}, 1));
  const std::vector<int32_t> tokens = kernel.prompt(fed);
  const std::vector<int32_t> last = {first.tokens.front()};
  kernel.engine().set_position(kPosition);
  add_decode(outcome,
             kernel.engine().decode({.tokens = tokens, .max_tokens = count + 1, .stop_tokens = last}));
  return outcome;
}

/// Launches in which a page begins, or a slice of the cache, or a unit of tokens; and one after which the cache is full.
inline Outcome cross_pages(KernelUnderTest& kernel, int fed) {
  Outcome outcome;
  add_decode(outcome, kernel.decode_from(63, kernel.prompt(fed), 3));
  add_decode(outcome, kernel.decode_from(100, kernel.prompt(fed), 1));
  add_decode(outcome, kernel.decode_from(126, kernel.prompt(1), 4));
  add_decode(outcome, kernel.decode_from(kShortContext - fed - 1, kernel.prompt(fed), 2));
  return outcome;
}

/// Of more CTAs than a warp has lanes: more than are checked.
inline Outcome decode_on_many(KernelUnderTest& kernel) {
  Outcome outcome;
  add_decode(outcome, kernel.decode_from(kPosition, kernel.prompt(1), 5));
  return outcome;
}

/// A launch that somebody ends while it runs: how many steps it makes is a matter of time, but not all.
inline Outcome interrupt(KernelUnderTest& kernel) {
  constexpr int kSteps = 8;
  kernel.engine().set_position(kPosition);
  const std::vector<int32_t> tokens = kernel.prompt(1);
  const std::atomic<bool> interrupted = true;
  const TreeResult result = kernel.engine().decode_tree(
      {.tokens = tokens, .num_steps = kSteps, .lone_row_alone = true, .interrupt = &interrupted});
  Outcome outcome;
  outcome.add(std::vector<int>{result.num_steps < kSteps ? 1 : 0});
  return outcome;
}

/// All that there is of drawing, each where a small error shows: few of many tokens that are nearly as good, or as good, as
/// one another; the best of those that were seen before.
inline const std::vector<RowSampling>& samplings() {
  static const std::vector<RowSampling> all = {{1.0f, 5, 20, 0.9f, 2.0f},
                                               {0.0f, 6, 0, 1.0f, kUnlimitedDistance, 0.01f},
                                               {0.05f, 7, 5, 0.6f},
                                               {1e-5f, 8, 5, 0.5f},
                                               {1e-7f, 12, 5},
                                               {1.5f, 9, 12, 0.7f, 3.0f, 1.3f},
                                               {0.02f, 10, 0, 0.2f},
                                               {1.0f, 11}};
  return all;
}
/// Every third token.
inline std::vector<uint32_t> third_tokens(int vocabulary) {
  std::vector<uint32_t> mask(static_cast<size_t>((vocabulary + 31) / 32));
  for (int token = 0; token < vocabulary; token += 3)
    mask[static_cast<size_t>(token / 32)] |= 1u << token % 32;
  return mask;
}

/// Drawn tokens, and then one that a mask allows.
inline Outcome sample(KernelUnderTest& kernel) {
  Outcome outcome;
  const auto draw = [&](const RowSampling& sampling, const std::vector<int32_t>& tokens,
                        const std::vector<int32_t>& past) {
    kernel.engine().set_position(kPosition);
    add_decode(
        outcome,
        kernel.engine().decode(
            {.tokens = tokens, .max_tokens = 4, .sampling = sampling, .past = past, .want_logprobs = true}));
  };
  for (const RowSampling& sampling : samplings()) {
    if (sampling.penalty >= 1) draw(sampling, kernel.prompt(2), kernel.prompt(5));
    // What the launch itself has chosen is to be what it then prefers.
    for (int length = 3; sampling.penalty < 1 && length < 7; ++length)
      draw(sampling, {kernel.prompt(length).back()}, {});
  }
  const std::vector<int32_t> tokens = kernel.prompt(2);
  const std::vector<uint32_t> mask = third_tokens(kernel.facts().vocabulary);
  kernel.engine().set_position(kPosition);
  add_decode(
      outcome,
      kernel.engine().decode(
          {.tokens = tokens, .max_tokens = 1, .allowed = mask, .want_logits = true, .want_logprobs = true}));
  return outcome;
}

/// The same for a few rows at once.
struct Drawn {
  explicit Drawn(TreeUnderTest& kernel) : mask(third_tokens(kernel.facts().vocabulary)) {
    constexpr int kRows = 7;
    const Branch root = kernel.tree().open();
    kernel.fill(root, kFilled);
    const Drafts drafts = kernel.plain(kernel.tree().fork(root, kRows));
    tokens = kernel.prepare(drafts);
    for (size_t row = 0; row < kRows; ++row) {
      sampling.push_back(samplings()[row % samplings().size()]);
      past.push_back(kernel.any_tokens(sampling.back().penalty < 1 ? 0 : 5));
      allowed.push_back(row % 2 == 0 ? std::span<const uint32_t>(mask) : std::span<const uint32_t>());
    }
  }
  Outcome run(TreeUnderTest& kernel) const {
    Outcome outcome;
    add_tree(
        outcome,
        kernel.engine().decode_tree(
            {.tokens = tokens, .num_steps = 4, .sampling = sampling, .past = past, .want_logprobs = true}));
    cut(kernel);
    add_tree(outcome, kernel.engine().decode_tree({.tokens = tokens,
                                                   .num_steps = 1,
                                                   .sampling = sampling,
                                                   .allowed = allowed,
                                                   .want_logprobs = true}));
    cut(kernel);
    return outcome;
  }
  static void cut(TreeUnderTest& kernel) {
    for (const Branch branch : kernel.tree().branches()) kernel.tree().truncate(branch, kFilled);
  }

  static constexpr int kFilled = 11;
  std::vector<uint32_t> mask;
  std::vector<int32_t> tokens;
  std::vector<RowSampling> sampling;
  std::vector<std::vector<int32_t>> past;
  std::vector<std::span<const uint32_t>> allowed;
};

/// Branches with drafts in one step, then several steps of all branches, in both ways to cut their pages.
struct Branches {
  explicit Branches(TreeUnderTest& kernel) {
    const int rows = kernel.engine().max_rows();
    root = kernel.tree().open();
    kernel.fill(root, 70);
    branches = kernel.tree().fork(root, rows >= 32 ? 5 : 3);
    plain = kernel.plain(branches);
    drafts = plain;
    drafts[branches[1]] = kernel.any_draft(rows >= 32 ? 11 : 4);
    drafts.erase(branches[2]);
  }
  Outcome run(TreeUnderTest& kernel) const {
    Outcome outcome;
    for (const SliceRule rule : {SliceRule::kBalanced, SliceRule::kFixed}) {
      add_tree(outcome, kernel.run(drafts, 1, rule));
      kernel.take_back(drafts);
      add_tree(outcome, kernel.run(plain, 3, rule));
      for (const Branch branch : branches) kernel.tree().truncate(branch, 70);
    }
    return outcome;
  }

  Branch root = {};
  std::vector<Branch> branches;
  Drafts plain;
  Drafts drafts;
};

/// Many branches behind some whole pages, then fewer of them: query tiles and parts of every number.
struct Forks {
  explicit Forks(TreeUnderTest& kernel) {
    const Branch root = kernel.tree().open();
    kernel.fill(root, 300);
    for (const Branch branch : kernel.tree().fork(root, std::min(kernel.engine().max_rows(), 21))) {
      drafts.push_back(kernel.plain({branch}));
    }
  }
  Outcome run(TreeUnderTest& kernel) const {
    Outcome outcome;
    for (const size_t rows : {size_t{21}, size_t{12}, size_t{5}}) {
      Drafts some;
      for (size_t i = 0; i < std::min(rows, drafts.size()); ++i)
        some.insert(drafts[i].begin(), drafts[i].end());
      for (const SliceRule rule : {SliceRule::kBalanced, SliceRule::kFixed}) {
        add_tree(outcome, kernel.run(some, 1, rule));
        kernel.take_back(some);
      }
    }
    return outcome;
  }

  std::vector<Drafts> drafts;
};

/// A path of many nodes: a CTA has more items than a warp has lanes, and a row more partial results. Beside it a node that
/// comes to have a slice more.
struct Path {
  explicit Path(TreeUnderTest& kernel) {
    constexpr int kNodes = 36;
    Branch leaf = kernel.tree().open();
    std::vector<Branch> forked;
    for (int node = 0; node < kNodes; ++node) {
      kernel.fill(leaf, 1);
      forked = kernel.tree().fork(leaf, 2);
      leaf = forked[0];
    }
    std::vector<Branch> rows = forked;  // the first, whose merges workers hold
    rows.push_back(kernel.tree().open());
    kernel.fill(rows.back(), 126);
    drafts = kernel.plain(rows);
    for (const Branch branch : rows) lengths.push_back({branch, kernel.tree().num_tokens(branch)});
  }
  Outcome run(TreeUnderTest& kernel) const {
    Outcome outcome;
    for (const SliceRule rule : {SliceRule::kBalanced, SliceRule::kFixed}) {
      add_tree(outcome, kernel.run(drafts, 4, rule));
      for (const auto& [branch, length] : lengths) kernel.tree().truncate(branch, length);
    }
    return outcome;
  }

  Drafts drafts;
  std::vector<std::pair<Branch, int>> lengths;
};

}  // namespace soliton
