#include "runtime/answer/draft/prompt_lookup.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "models/error.h"

namespace soliton {
namespace {

Error misuse(std::string_view what, std::string_view expected, int64_t found) {
  return Error(ExitCode::kInternal,
               fmt::format("prompt lookup: {}: expected {}, got {}", what, expected, found));
}

/// An earlier occurrence of the context's end, and what follows it.
struct Occurrence {
  std::span<const int32_t> continuation;  // up to the context's end; then it begins again
  int32_t num_shared = 0;                 // tokens
  double share = 0;                       // probability that it is the one to follow

  /// The token that it predicts at `depth` (1: the next).
  int32_t token(int32_t depth) const {
    return continuation[static_cast<size_t>(depth - 1) % continuation.size()];
  }

  /// Probability that all its predictions down to `depth` are right: n/(n+1) (n+1)/(n+2) ..., shortened.
  double probability(int32_t depth) const { return share * num_shared / (num_shared + depth); }
};

/// Deals the probability out to `occurrences`, in descending order of shared tokens, later ones first.
void share_out(std::span<Occurrence> occurrences) {
  double left = 1;
  while (!occurrences.empty()) {
    const int32_t num_shared = occurrences[0].num_shared;
    size_t num_alike = 0;
    double total = 0;
    for (; num_alike < occurrences.size() && occurrences[num_alike].num_shared == num_shared; ++num_alike) {
      occurrences[num_alike].share = left / static_cast<double>(num_alike + 1);
      total += 1 / static_cast<double>(num_alike + 1);
    }
    for (Occurrence& alike : occurrences.first(num_alike)) alike.share /= total;
    left /= num_shared + 1;
    occurrences = occurrences.subspan(num_alike);
  }
}

/// A trie of continuations, grown by the most probable token at a time. A child is less probable than its
/// parent, so the tokens grown are the most probable of all.
class DraftTrie {
 public:
  DraftTrie(std::span<const Occurrence> occurrences, int32_t last_token) : occurrences_(occurrences) {
    grown_.push_back({.token = last_token, .occurrences = (uint32_t{1} << occurrences.size()) - 1});
    add_children(0);
  }

  /// Grows one token, if there is any occurrence.
  bool grow() {
    if (candidates_.empty()) return false;
    const auto likeliest = std::min_element(candidates_.begin(), candidates_.end(), likelier);
    grown_.push_back(*likeliest);
    *likeliest = candidates_.back();
    candidates_.pop_back();
    add_children(static_cast<int32_t>(grown_.size()) - 1);
    return true;
  }

  /// A parent was grown before its children and siblings in the order wanted, so counting suffices.
  TokenDraft in_preorder() const {
    const size_t size = grown_.size();
    std::vector<int32_t> num_rows(size, 1);  // of the subtree
    for (size_t i = size - 1; i > 0; --i) num_rows[grown_[i].parent] += num_rows[i];
    std::vector<int32_t> row(size), next_row(size, 1);  // next_row: of the next child
    TokenDraft draft{.tokens = std::vector<int32_t>(size), .parents = std::vector<int32_t>(size, kNoParent)};
    draft.tokens[0] = grown_[0].token;
    for (size_t i = 1; i < size; ++i) {
      const int32_t parent = grown_[i].parent;
      row[i] = next_row[parent];
      next_row[parent] += num_rows[i];
      next_row[i] = row[i] + 1;
      draft.tokens[row[i]] = grown_[i].token;
      draft.parents[row[i]] = row[parent];
    }
    return draft;
  }

 private:
  static constexpr int32_t kNoParent = -1;
  static_assert(PromptLookup::kMaxOccurrences < 32, "a bit of uint32_t each");

  struct Node {
    int32_t token = 0;
    int32_t parent = kNoParent;  // index into grown_
    int32_t depth = 0;
    uint32_t occurrences = 0;  // bits: those that predict the tokens down to here
    double probability = 0;
  };

  /// Candidates have no occurrence in common, so no two are equal.
  static bool likelier(const Node& left, const Node& right) {
    if (left.probability != right.probability) return left.probability > right.probability;
    return std::countr_zero(left.occurrences) < std::countr_zero(right.occurrences);
  }

  void add_children(int32_t parent) {
    const int32_t depth = grown_[parent].depth + 1;
    for (uint32_t left = grown_[parent].occurrences; left != 0;) {
      Node child{
          .token = occurrences_[std::countr_zero(left)].token(depth), .parent = parent, .depth = depth};
      for (uint32_t rest = left; rest != 0; rest &= rest - 1) {
        const Occurrence& occurrence = occurrences_[std::countr_zero(rest)];
        if (occurrence.token(depth) != child.token) continue;
        child.occurrences |= rest & -rest;
        child.probability += occurrence.probability(depth);
      }
      left &= ~child.occurrences;
      candidates_.push_back(child);
    }
  }

  std::span<const Occurrence> occurrences_;
  std::vector<Node> grown_;       // the root first
  std::vector<Node> candidates_;  // children that are not grown: at most one an occurrence
};

}  // namespace

uint64_t PromptLookup::key(int32_t end, int length) const {
  const int32_t shorter = length == 1 ? kNone : ngrams_at_[end - 1].ngram[length - 2];
  return uint64_t{static_cast<uint32_t>(shorter)} << 32 | static_cast<uint32_t>(tokens_[end]);
}

void PromptLookup::append(int32_t token) {
  const int32_t end = num_tokens();
  tokens_.push_back(token);
  NgramsAt& at = ngrams_at_.emplace_back();
  at.ngram.fill(kNone);
  at.previous.fill(kNone);
  for (int length = 1; length <= std::min(kMaxNgram, num_tokens()); ++length) {
    const auto [entry, is_new] =
        ngram_of_.try_emplace(key(end, length), static_cast<int32_t>(latest_.size()));
    if (is_new) latest_.push_back(kNone);
    at.ngram[length - 1] = entry->second;
    at.previous[length - 1] = std::exchange(latest_[entry->second], end);
  }
}

void PromptLookup::append(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) append(token);
}

void PromptLookup::truncate(int num_tokens) {
  if (num_tokens < 0 || num_tokens > this->num_tokens()) {
    throw misuse("tokens to keep", fmt::format("0 to {}", this->num_tokens()), num_tokens);
  }
  while (this->num_tokens() > num_tokens) {
    const int32_t end = this->num_tokens() - 1;
    for (int length = std::min(kMaxNgram, this->num_tokens()); length >= 1; --length) {
      int32_t& latest = latest_[ngrams_at_[end].ngram[length - 1]];
      latest = ngrams_at_[end].previous[length - 1];
      if (latest != kNone) continue;
      // append() made it here; undone in reverse order, it is the newest n-gram.
      ngram_of_.erase(key(end, length));
      latest_.pop_back();
    }
    tokens_.pop_back();
    ngrams_at_.pop_back();
  }
}

TokenDraft PromptLookup::propose(int max_drafts) const {
  if (tokens_.empty()) throw misuse("tokens of the context", "at least 1", 0);
  if (max_drafts < 0) throw misuse("tokens to draft", "at least 0", max_drafts);
  const int32_t last = num_tokens() - 1;
  const auto num_shared = [&](int32_t end) {
    int32_t count = 0;
    while (count < kMaxMatch && count <= end && tokens_[end - count] == tokens_[last - count]) ++count;
    return count;
  };
  std::vector<Occurrence> occurrences;
  std::vector<int32_t> ends;
  // An n-gram's chain begins with those of the longer ones, all of which have been taken before it is walked:
  // so no chain is walked for more than kMaxOccurrences tokens.
  for (int length = kMaxNgram; length >= 1; --length) {
    const auto previous = [&](int32_t end) { return ngrams_at_[end].previous[length - 1]; };
    for (int32_t end = previous(last); end != kNone && ends.size() < kMaxOccurrences; end = previous(end)) {
      if (std::find(ends.begin(), ends.end(), end) != ends.end()) continue;
      ends.push_back(end);
      occurrences.push_back(
          {.continuation = std::span(tokens_).subspan(end + 1), .num_shared = num_shared(end)});
    }
  }
  std::stable_sort(
      occurrences.begin(), occurrences.end(),
      [](const Occurrence& left, const Occurrence& right) { return left.num_shared > right.num_shared; });
  share_out(occurrences);
  DraftTrie trie(occurrences, tokens_[last]);
  for (int drafted = 0; drafted < max_drafts && trie.grow();) ++drafted;
  return trie.in_preorder();
}

}  // namespace soliton
