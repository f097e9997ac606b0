// What a grammar lets an answer be, token by token.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/text/constrain/token_masks.h"

namespace soliton {

/// A grammar made ready for the tokens of a vocabulary. Shared by the constraints of one request's answers, which then
/// belong to one thread at a time. All that they cost is charged to its budget.
class TokenGrammar {
 public:
  /// Texts that the vocabulary's single bytes cannot write are left out, so that there always is a token that leads to the
  /// end. `is_cancelled`, if there is one, is asked while it is made ready and whenever something takes long: see Budget.
  /// Throws what constrain::make_automaton() does.
  TokenGrammar(const constrain::Grammar& grammar, std::shared_ptr<const constrain::Vocabulary> vocabulary,
               const constrain::BudgetLimits& limits = {}, std::function<bool()> is_cancelled = {});

  const constrain::Vocabulary& vocabulary() const { return *vocabulary_; }
  /// From now on in place of what was said before.
  void cancel_when(std::function<bool()> is_cancelled) { budget_.cancel_when(std::move(is_cancelled)); }

 private:
  friend class TokenConstraint;

  constrain::Automaton make_automaton(const constrain::Grammar& grammar, std::function<bool()> is_cancelled);

  std::shared_ptr<const constrain::Vocabulary> vocabulary_;
  constrain::Budget budget_;
  constrain::StackMachine machine_;
  constrain::TokenMasks masks_;
};

/// How far an answer has come. Copies go on by themselves, as samples of one prompt do.
class TokenConstraint {
 public:
  /// `end_tokens` are allowed where the text may end, and only there. Throws as allowed() does.
  TokenConstraint(std::shared_ptr<TokenGrammar> grammar, std::span<const int32_t> end_tokens);

  /// From now on of all that follow the grammar, in place of what was said before: see TokenGrammar.
  void cancel_when(std::function<bool()> is_cancelled) { grammar_->cancel_when(std::move(is_cancelled)); }

  /// A bit for each token that may follow: bit i % 32 of word i / 32, [ceil(vocabulary / 32)]. After an end token, none.
  /// Holds until the next call. Throws Error (kOutOfMemory), naming the grammar, if that is too ambiguous or costs more
  /// than the budget has; Cancelled. What throws changes nothing.
  std::span<const uint32_t> allowed();

  /// Whether the token may follow; if so the answer goes on behind it. Throws as allowed() does.
  bool accept(int token);
  /// The same of a byte.
  bool accept_byte(uint8_t byte);
  /// The same of all of some bytes, or of none.
  bool accept_bytes(std::string_view bytes);
  /// Forgets the last tokens, of which there were as many or more.
  void roll_back(size_t num_tokens);

  /// Whether the text may end here.
  bool may_end() const { return !ended_ && grammar_->machine_.may_end(stacks_); }
  /// Whether an end token was accepted, or nothing but one may follow: no further token is needed.
  bool ended();

 private:
  struct Moment {
    constrain::Stacks stacks;
    bool ended;
  };

  bool is_end(int token) const;

  std::shared_ptr<TokenGrammar> grammar_;
  std::vector<int32_t> end_tokens_;
  constrain::Stacks stacks_;
  bool ended_ = false;
  std::vector<Moment> past_;  // before each token
  constrain::TokenMask mask_;
};

}  // namespace soliton
