// The answer to one request as its tokens come: the text of each choice, its calls of functions and logprobs, which the
// format of an API makes into what the client gets, as a whole or piece by piece.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/answer/answer_text.h"
#include "runtime/server/answer_format.h"
#include "runtime/server/api_request.h"
#include "runtime/server/calls/chat_syntax.h"
#include "runtime/server/request_log.h"

namespace soliton {

/// What a completion is made of beside the request.
struct CompletionSetup {
  ApiRequest request;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::string> prompt_texts = {};  // [prompts], if the request wants them before the answers
  std::vector<int32_t> stop_tokens = {};
  int context = 0;               // tokens of a choice at most: see SchedulerOptions
  std::string client = {};       // see Generation, as of
  std::string cache_scope = {};  // this
  ChatSyntax syntax = {};
  ReasoningState reasoning = ReasoningState::kNone;  // of the answers
  std::shared_ptr<RequestGrammar> grammar = {};      // see Generation, as of
  std::function<std::unique_ptr<GrammarGate>()> make_gate = {};
  std::shared_ptr<const std::vector<uint32_t>> allowed = {};
  std::shared_ptr<const LogitAdjustment> adjustment = {};         // these
  std::vector<std::pair<std::string, std::string>> headers = {};  // of every response
  std::function<void(const RequestRecord&)> on_answered = {};     // once, at its end
};

/// Called by the scheduler's thread; whoever asks only makes the generations and waits for the reply. Lives as long as
/// one of the generations.
class Completion : public std::enable_shared_from_this<Completion> {
 public:
  /// The tokenizer must outlive it. Choice j of prompt i is the one of index i x num_choices + j.
  Completion(const Tokenizer& tokenizer, CompletionSetup setup, std::unique_ptr<AnswerFormat> format);

  /// What the scheduler is to do for one of the prompts.
  Generation generation(size_t prompt);
  const std::shared_ptr<PendingReply>& reply() const { return reply_; }

 private:
  using Json = nlohmann::ordered_json;
  using Clock = std::chrono::steady_clock;

  struct Choice {
    Choice(const Tokenizer& tokenizer, const AnswerStyle& style, const StopFilter& filter)
        : text(tokenizer, style, filter) {}

    AnswerText text;
    std::vector<GeneratedToken> tokens = {};
    std::optional<ReasoningReader> thoughts = {};
    std::optional<ToolCallReader> reader = {};
    size_t num_reasoning = 0;  // tokens
    AnswerChoice told = {};
    size_t num_told = 0;     // tokens whose logprobs have been told
    size_t num_ids = 0;      // tokens whose ids have been told
    size_t text_offset = 0;  // characters of the text before them
    bool has_begun = false;  // something of it has been told
  };

  void set_up_prompts(const AnswerStyle& style);
  void take_prompt_token(size_t prompt, const GeneratedToken& token);
  void take_fed(size_t prompt, int num_fed, int num_cached);
  AnswerPiece piece_of(Choice& choice, std::string text, bool is_last) const;
  void read_calls(Choice& choice, AnswerPiece& piece) const;
  void guard(const std::function<void()>& act);
  bool take(size_t index, const GeneratedToken& token);
  void end(size_t index, const SampleSummary& summary);
  AnswerEnd end_of(const Choice& choice, const SampleSummary& summary) const;
  std::optional<ApiError> error_of(const SampleSummary& summary) const;
  void begin_stream();
  void finish();
  void fail(const ApiError& error);
  void note(int status, std::string_view end) const noexcept;
  void tell(const std::string& bytes);
  void tell_piece(size_t index, AnswerPiece piece);

  int max_tokens(size_t prompt) const;
  size_t num_settled(const Choice& choice, const SampleSummary* summary) const;
  std::vector<ToldToken> new_tokens(Choice& choice, size_t num_settled) const;
  std::vector<int32_t> new_ids(Choice& choice) const;
  std::vector<size_t> told_choices(size_t prompt) const;
  std::string call_id() const;
  size_t first_choice(size_t prompt) const {
    return prompt * static_cast<size_t>(setup_.request.num_choices);
  }
  AnswerUsage usage() const;

  CompletionSetup setup_;
  std::unique_ptr<AnswerFormat> format_;
  std::shared_ptr<PendingReply> reply_ = std::make_shared<PendingReply>();
  std::deque<Choice> choices_;
  size_t num_left_;  // choices that have not ended
  bool has_begun_stream_ = false;
  bool has_failed_ = false;
  bool is_cancelled_ = false;
  std::vector<size_t> num_fed_;     // [prompts]: tokens
  std::vector<size_t> num_scored_;  // of these, but for the first
  std::vector<size_t> num_cached_;
  Clock::time_point asked_ = Clock::now();
  std::optional<Clock::time_point> first_token_ = {};
  Clock::time_point told_progress_ = {};  // when, last
};

}  // namespace soliton
