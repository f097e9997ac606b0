#include "runtime/text/constrain/token_constraint.h"

#include <algorithm>
#include <utility>

namespace soliton {

using namespace constrain;

TokenGrammar::TokenGrammar(const Grammar& grammar, std::shared_ptr<const Vocabulary> vocabulary,
                           const BudgetLimits& limits, std::function<bool()> is_cancelled)
    : vocabulary_(std::move(vocabulary)),
      budget_(grammar.name, limits),
      machine_(grammar, make_automaton(grammar, std::move(is_cancelled)), budget_),
      masks_(machine_, *vocabulary_, budget_) {
  constexpr std::chrono::milliseconds kMostAhead{10};
  budget_.begin_task();
  try {
    masks_.look_ahead(kMostAhead);
  } catch (const Cancelled&) {
    throw;
  } catch (const Error&) {  // a mask that needs it says so
  }
}

Automaton TokenGrammar::make_automaton(const Grammar& grammar, std::function<bool()> is_cancelled) {
  budget_.cancel_when(std::move(is_cancelled));
  return constrain::make_automaton(grammar, vocabulary_->bytes(), budget_);
}

TokenConstraint::TokenConstraint(std::shared_ptr<TokenGrammar> grammar, std::span<const int32_t> end_tokens)
    : grammar_(std::move(grammar)), end_tokens_(end_tokens.begin(), end_tokens.end()) {
  grammar_->budget_.begin_task();
  stacks_ = grammar_->machine_.start();
}

bool TokenConstraint::is_end(int token) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
}

std::span<const uint32_t> TokenConstraint::allowed() {
  if (ended_) {
    mask_.assign(grammar_->vocabulary_->num_words(), 0);
    return mask_;
  }
  grammar_->budget_.begin_task();
  mask_ = grammar_->masks_.allowed(stacks_);
  const bool may_end = grammar_->machine_.may_end(stacks_);
  for (const int32_t token : end_tokens_) {
    if (token < 0 || token >= grammar_->vocabulary_->size()) continue;
    uint32_t& word = mask_[static_cast<size_t>(token) / kMaskBits];
    const uint32_t bit = uint32_t{1} << (static_cast<size_t>(token) % kMaskBits);
    word = may_end ? word | bit : word & ~bit;
  }
  return mask_;
}

bool TokenConstraint::accept(int token) {
  if (ended_) return false;
  grammar_->budget_.begin_task();
  Moment before{stacks_, ended_};
  if (is_end(token)) {
    if (!may_end()) return false;
    ended_ = true;
  } else {
    const std::string& bytes = grammar_->vocabulary_->piece(token);
    if (bytes.empty() || !accept_bytes(bytes)) return false;
  }
  past_.push_back(std::move(before));
  return true;
}

bool TokenConstraint::accept_byte(uint8_t byte) {
  if (ended_) return false;
  Stacks next = grammar_->machine_.step(stacks_, byte);
  if (next.empty()) return false;
  stacks_ = std::move(next);
  return true;
}

bool TokenConstraint::accept_bytes(std::string_view bytes) {
  if (ended_) return false;
  Stacks stacks = stacks_;
  for (const char byte : bytes) {
    stacks = grammar_->machine_.step(stacks, static_cast<uint8_t>(byte));
    if (stacks.empty()) return false;
  }
  stacks_ = std::move(stacks);
  return true;
}

void TokenConstraint::roll_back(size_t num_tokens) {
  if (num_tokens == 0) return;
  if (num_tokens > past_.size()) {
    throw Error(
        ExitCode::kInternal,
        fmt::format("constraint: expected at most {} tokens to roll back, got {}", past_.size(), num_tokens));
  }
  past_.resize(past_.size() - num_tokens + 1);
  stacks_ = std::move(past_.back().stacks);
  ended_ = past_.back().ended;
  past_.pop_back();
}

bool TokenConstraint::ended() {
  if (ended_) return true;
  if (!may_end()) return false;
  grammar_->budget_.begin_task();
  const TokenMask& mask = grammar_->masks_.allowed(stacks_);
  return std::all_of(mask.begin(), mask.end(), [](uint32_t word) { return word == 0; });
}

}  // namespace soliton
