#include "runtime/server/answer_mask.h"

namespace soliton {

const std::shared_ptr<const constrain::Vocabulary>& LazyVocabulary::get() {
  std::call_once(needed_, [this] { made_ = make_(); });
  return made_;
}

const std::shared_ptr<TokenGrammar>& RequestGrammar::ready(GrammarWorkers::Turn& turn,
                                                           const std::function<bool()>& is_cancelled) {
  if (failure_) throw *failure_;
  if (ready_ != nullptr) return ready_;
  try {
    ready_ = turn.shared(std::make_unique<TokenGrammar>(grammar_, vocabulary_->get(),
                                                        constrain::BudgetLimits{}, is_cancelled));
  } catch (const constrain::Cancelled&) {
    throw;
  } catch (const Error& error) {
    failure_ = error;
    throw;
  }
  grammar_ = {};
  return ready_;
}

AnswerMask::AnswerMask(std::shared_ptr<RequestGrammar> grammar, std::vector<int32_t> end_tokens,
                       std::function<bool()> is_unwanted, std::string begun)
    : grammar_(std::move(grammar)),
      end_tokens_(std::move(end_tokens)),
      is_unwanted_(std::move(is_unwanted)),
      begun_(std::move(begun)) {}

void AnswerMask::find(GrammarWorkers& workers, std::optional<int32_t> token, std::function<void()> done) {
  allowed_ = {};
  workers.run(grammar_->line(),
              [self = shared_from_this(), token, done = std::move(done)](GrammarWorkers::Turn& turn) {
                try {
                  self->work(turn, token);
                } catch (const constrain::Cancelled&) {
                } catch (const Error& error) {
                  self->failure_ = error;
                } catch (const std::exception& error) {
                  self->failure_ =
                      Error(ExitCode::kInternal, fmt::format("{}: {}", self->grammar_->name(), error.what()));
                }
                done();
              });
}

void AnswerMask::work(GrammarWorkers::Turn& turn, std::optional<int32_t> token) {
  const std::function<bool()> is_unwanted = [this] { return given_up_ || is_unwanted_(); };
  const std::function<bool()> is_cancelled = [&] { return !turn.goes_on(is_unwanted); };
  if (is_cancelled()) return;
  const std::shared_ptr<TokenGrammar>& grammar = grammar_->ready(turn, is_cancelled);
  grammar->cancel_when(is_cancelled);  // this task's, in place of the one before
  if (!constraint_) {
    constraint_.emplace(grammar, end_tokens_);
    is_other_text_ = !constraint_->accept_bytes(begun_);
    if (is_other_text_) return;
  }
  if (token && !constraint_->accept(*token))
    throw Error(ExitCode::kInternal,
                fmt::format("grammar: expected a token that is allowed, got {}", *token));
  is_whole_ = (token || !begun_.empty() || end_tokens_.empty()) && constraint_->ended();
  if (!is_whole_) allowed_ = constraint_->allowed();
}

}  // namespace soliton
