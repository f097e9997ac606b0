// Which tokens may be next in an answer that follows a grammar. All that may take long is done by GrammarWorkers, which make
// the grammar ready for the model's tokens too; the scheduler looks at what they have found.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/server/grammar_workers.h"
#include "runtime/text/constrain/token_constraint.h"

namespace soliton {

/// A model's tokens, sorted when they are wanted first. Any thread may ask.
class LazyVocabulary {
 public:
  using Make = std::function<std::shared_ptr<const constrain::Vocabulary>()>;

  explicit LazyVocabulary(Make make) : make_(std::move(make)) {}
  const std::shared_ptr<const constrain::Vocabulary>& get();

 private:
  Make make_;
  std::once_flag needed_;
  std::shared_ptr<const constrain::Vocabulary> made_;
};

/// What all answers of a request follow. Its tasks stand in a line.
class RequestGrammar {
 public:
  RequestGrammar(constrain::Grammar grammar, std::shared_ptr<LazyVocabulary> vocabulary)
      : name_(grammar.name), grammar_(std::move(grammar)), vocabulary_(std::move(vocabulary)) {}

  /// What errors call it: the member of the request.
  const std::string& name() const { return name_; }
  const std::shared_ptr<GrammarWorkers::Line>& line() const { return line_; }
  /// In a task of the line. Throws what making a TokenGrammar does, the same again if it has failed.
  const std::shared_ptr<TokenGrammar>& ready(GrammarWorkers::Turn& turn,
                                             const std::function<bool()>& is_cancelled);

 private:
  std::string name_;
  constrain::Grammar grammar_;  // of nothing once it is ready
  std::shared_ptr<LazyVocabulary> vocabulary_;
  std::shared_ptr<GrammarWorkers::Line> line_ = std::make_shared<GrammarWorkers::Line>();
  std::shared_ptr<TokenGrammar> ready_;
  std::optional<Error> failure_;
};

/// Of one answer. Between a call of find() and of what it calls when it is done, only give_up() may be called.
class AnswerMask : public std::enable_shared_from_this<AnswerMask> {
 public:
  /// `end_tokens` as TokenConstraint has them. `is_unwanted` is asked by the thread that works.
  /// Of the grammar stands already what has `begun`, in the bytes of its vocabulary.
  AnswerMask(std::shared_ptr<RequestGrammar> grammar, std::vector<int32_t> end_tokens,
             std::function<bool()> is_unwanted, std::string begun = {});

  /// Goes on behind a token, if there is one, and finds what may be next. `done` is called by a thread of the workers.
  void find(GrammarWorkers& workers, std::optional<int32_t> token, std::function<void()> done);
  /// Nobody looks at it any more.
  void give_up() { given_up_ = true; }

  /// The tokens that may be next; holds until the next call of find(). Empty if nothing has been found.
  std::span<const uint32_t> allowed() const { return allowed_; }
  /// Nothing may follow the last token.
  bool is_whole() const { return is_whole_; }
  /// No text of the grammar begins with what had begun: nothing has been found.
  bool is_other_text() const { return is_other_text_; }
  /// Why nothing has been found, unless it was given up.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  void work(GrammarWorkers::Turn& turn, std::optional<int32_t> token);

  std::shared_ptr<RequestGrammar> grammar_;
  std::vector<int32_t> end_tokens_;
  std::function<bool()> is_unwanted_;
  std::string begun_;
  std::atomic<bool> given_up_ = false;
  std::optional<TokenConstraint> constraint_;
  std::span<const uint32_t> allowed_;
  bool is_whole_ = false;
  bool is_other_text_ = false;
  std::optional<Error> failure_;
};

}  // namespace soliton
