// A small model drafts what a large one of the same vocabulary checks.
//
// The draft model chooses as the large one will: a draw is the best of logit / T plus a noise that depends on seed,
// position and token alone (layout/sampling.h), so with the same seed both add the same noise, and draw the same token
// wherever their distributions do not lie far apart. What the large model draws is its own in any case: an answer has
// its distribution, and for one seed the very tokens that it has without drafts, but for rounding. Rejection sampling
// would keep the distribution too, but not the tokens.
//
// How many tokens are drafted follows from how many were accepted lately: the j-th one as long as the probability that
// it is accepted is more than what drafting it costs of a token of the large model. Where not even the first one pays,
// the large model goes on alone for a while, and longer each time that another try fails.
#pragma once

#include <memory>
#include <vector>

#include "runtime/answer/draft/drafter.h"
#include "runtime/engine/engine.h"

namespace soliton {

/// How many tokens to draft, as said above.
class DraftLength {
 public:
  /// `cost` is the time of a drafted token over that of one of the large model.
  explicit DraftLength(double cost);

  /// Tokens to draft, at most `max_drafts` (at least one); 0: none for num_plain() tokens.
  int next(int max_drafts);
  int num_plain() const { return num_plain_; }
  /// Of the tokens drafted, so many were accepted.
  void note(int num_drafted, int num_accepted);

 private:
  double rate() const { return accepted_ / tried_; }

  double threshold_;
  double accepted_;
  double tried_;
  int num_plain_;
  bool tries_again_ = false;
};

class DraftModel : public Drafter {
 public:
  /// `engine` has an empty tree, and room for `context` tokens; behind these nothing is drafted. Nor are tokens from
  /// `vocabulary` on, which the large model does not know, or anything behind those that the draft model does not.
  /// `cost` is that of a DraftLength.
  DraftModel(std::unique_ptr<Engine> engine, int context, int vocabulary, double cost);

  void begin(std::span<const int32_t> context, const Sampling& sampling) override;
  void append(std::span<const int32_t> tokens) override;
  Proposal propose(int max_drafts) override;

  /// Feeds at most so many tokens of the context, and returns whether a proposal now has no more than that to feed: for
  /// those whose thread is not to be held up by a long one.
  bool feed(int max_tokens) override;
  /// Forgets the texts that it has read: the next one is read from its first token on.
  void forget();
  /// As Engine::enter_thread().
  void enter_thread() { engine_->enter_thread(); }

 private:
  bool can_draft(int max_drafts) const;
  bool knows(std::span<const int32_t> tokens) const;
  std::vector<int32_t> decode(int num_tokens);

  std::unique_ptr<Engine> engine_;
  size_t most_tokens_;
  int vocabulary_;
  DraftLength length_;
  Sampling sampling_;
  std::vector<int32_t> context_;
  bool knows_context_ = true;
  std::vector<int32_t> cached_;   // what the engine holds
  std::vector<int32_t> drafted_;  // in the last proposal, until it is known what has become of them
};

}  // namespace soliton
