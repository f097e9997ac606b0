// Speculation without a draft model: what followed earlier occurrences of the latest tokens is drafted again.
// Code, quotations, lists and summaries repeat themselves, and a step that checks some rows more costs little.
//
// A draft is a tree, as KvTree::draft() takes it, because occurrences often go on differently. A step checks
// all its tokens at once; accept_choices() then keeps those that the model itself would have chosen, so the
// text is that of plain decoding, only sooner:
//
//   lookup.append(prompt, and the first token that the model chose);
//   repeat: draft = lookup.propose(7);  chosen = step(draft);  accepted = accept_choices(draft, chosen);
//           lookup.append(tokens of accepted.path but its first, and accepted.next_token);
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/answer/draft/token_draft.h"

namespace soliton {

/// The tokens of a context, and where each run of up to kMaxNgram tokens has occurred in them. Appending a
/// token takes constant time on average, truncating too for each token cut; a proposal takes time in
/// proportion to max_drafts, whatever the context's length. The same tokens give the same proposals, however
/// they were appended. Takes 50 to 250 bytes a token.
class PromptLookup {
 public:
  /// Appends to the context.
  void append(int32_t token);
  void append(std::span<const int32_t> tokens);

  /// Cuts the context back to its first `num_tokens` tokens; throws Error (kInternal) if it has fewer.
  void truncate(int num_tokens);

  /// Tokens of the context.
  int num_tokens() const { return static_cast<int>(tokens_.size()); }

  /// The last token and `max_drafts` likely ones behind it, or it alone if it has not occurred before. Throws
  /// Error (kInternal) if the context is empty or max_drafts negative.
  ///
  /// Looks at kMaxOccurrences earlier occurrences: those that share most tokens with the context's end,
  /// counted to kMaxNgram, and of these the latest. Where an occurrence reaches the end it goes on from its
  /// start, as if it repeated itself. An occurrence that shares n tokens (counted to kMaxMatch) is taken to
  /// be right about the next with probability n / (n + 1); if it is, it shares one more. Of those that share
  /// equally many, the r-th latest counts 1 / r; those that share fewer count if all that share more are
  /// wrong. The draft is the max_drafts tokens that are most probable to be reached: no other tree of as many
  /// rows has more tokens accepted on average, by these probabilities.
  TokenDraft propose(int max_drafts) const;

  static constexpr int kMaxNgram = 4;
  static constexpr int kMaxOccurrences = 16;
  static constexpr int kMaxMatch = 32;

 private:
  static constexpr int32_t kNone = -1;

  /// The n-grams that end at a token: [length - 1], kNone where the context begins later.
  struct NgramsAt {
    std::array<int32_t, kMaxNgram> ngram;     // index into latest_
    std::array<int32_t, kMaxNgram> previous;  // token at which it ended before
  };

  /// An n-gram is known by the one without its last token, and that token.
  uint64_t key(int32_t end, int length) const;

  std::vector<int32_t> tokens_;
  std::vector<NgramsAt> ngrams_at_;                 // [token of the context]
  std::unordered_map<uint64_t, int32_t> ngram_of_;  // by key()
  std::vector<int32_t> latest_;                     // [n-gram]: token at which it ended last
};

}  // namespace soliton
