// Who drafts the tokens that a step of the model checks.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/answer/draft/prompt_lookup.h"
#include "runtime/answer/draft/token_draft.h"
#include "runtime/engine/sampling.h"

namespace soliton {

class Drafter {
 public:
  struct Proposal {
    TokenDraft draft;
    /// Of a draft that is row 0 alone: tokens to be decoded before the next proposal, at least one.
    int num_plain = 1;
  };

  virtual ~Drafter() = default;
  /// Begins an answer that is drawn so, behind a context of at least one token, of which the last has not been fed.
  virtual void begin(std::span<const int32_t> context, const Sampling& sampling) = 0;
  /// Reads at most so many tokens of the context; false if more are to be read before it can draft at once.
  virtual bool feed(int /*max_tokens*/) { return true; }
  /// Tokens that the model has chosen, of the last draft or another.
  virtual void append(std::span<const int32_t> tokens) = 0;
  /// At most so many tokens behind the context.
  virtual Proposal propose(int max_drafts) = 0;
};

/// Drafts what followed earlier occurrences of the latest tokens.
class LookupDrafter : public Drafter {
 public:
  void begin(std::span<const int32_t> context, const Sampling& /*sampling*/) override {
    lookup_ = {};
    lookup_.append(context);
  }
  void append(std::span<const int32_t> tokens) override { lookup_.append(tokens); }
  Proposal propose(int max_drafts) override { return {.draft = lookup_.propose(max_drafts)}; }

 private:
  PromptLookup lookup_;
};

}  // namespace soliton
