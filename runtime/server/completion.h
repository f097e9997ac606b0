// The answer to one request of OpenAI's API, as its tokens come: the text of each choice, its calls of functions and
// logprobs, and the JSON that the client gets, as a whole or piece by piece (server-sent events).
#pragma once

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/answer/answer_text.h"
#include "runtime/server/api_request.h"
#include "runtime/server/calls/chat_syntax.h"
#include "runtime/server/generation.h"

namespace soliton {

/// What a completion is made of beside the request.
struct CompletionSetup {
  ApiRequest request;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::string> echoes = {};  // [prompts]: what stands before the text, if the request wants it
  std::vector<int32_t> stop_tokens = {};
  int context = 0;               // tokens of a choice at most: see SchedulerOptions
  std::string client = {};       // see Generation, as of
  std::string cache_scope = {};  // this
  std::string model = {};        // what answers call it
  ChatSyntax syntax = {};
  ReasoningState reasoning = ReasoningState::kNone;  // of the answers
  std::shared_ptr<RequestGrammar> grammar = {};      // see Generation, as of
  std::function<std::unique_ptr<GrammarGate>()> make_gate = {};
  std::shared_ptr<const std::vector<uint32_t>> allowed = {};      // these
  std::vector<std::pair<std::string, std::string>> headers = {};  // of every response
};

/// Called by the scheduler's thread; whoever asks only makes the generations and waits for the reply. Lives as long as
/// one of the generations.
class Completion : public std::enable_shared_from_this<Completion> {
 public:
  /// The tokenizer must outlive it. Choice j of prompt i is the one of index i x num_choices + j.
  Completion(const Tokenizer& tokenizer, CompletionSetup setup);

  /// What the scheduler is to do for one of the prompts.
  Generation generation(size_t prompt);
  const std::shared_ptr<PendingReply>& reply() const { return reply_; }

 private:
  using Json = nlohmann::ordered_json;

  struct Choice {
    Choice(const Tokenizer& tokenizer, const AnswerStyle& style, const StopFilter& filter)
        : text(tokenizer, style, filter) {}

    AnswerText text;
    std::vector<GeneratedToken> tokens = {};
    std::optional<ReasoningReader> thoughts = {};
    std::optional<ToolCallReader> reader = {};
    std::string reasoning = {};
    size_t num_reasoning = 0;  // tokens
    std::string content = {};  // without reasoning, what has become calls, and the prompt
    std::vector<ToolCall> calls = {};
    size_t num_told = 0;     // tokens whose logprobs have been told
    size_t text_offset = 0;  // characters of the text before them
    bool has_begun = false;  // something of it has been told
    Json logprobs = {};      // of the whole answer
    std::string finish_reason = {};
  };

  /// What a piece of an answer's text is.
  struct Piece {
    std::string reasoning;
    std::string content;
  };
  Piece piece_of(Choice& choice, std::string text, bool is_last) const;

  void guard(const std::function<void()>& act);
  bool take(size_t index, const GeneratedToken& token);
  void end(size_t index, const SampleSummary& summary);
  void begin_stream();
  void finish();
  void fail(const ApiError& error);

  size_t num_settled(const Choice& choice, const SampleSummary* summary) const;
  Json new_logprobs(Choice& choice, size_t num_settled) const;
  Json logprob_entry(const GeneratedToken& token) const;
  void append_logprobs(Choice& choice, const Json& logprobs) const;
  std::string token_text(int32_t id) const;

  Json frame(const char* object) const;
  void tell(const Json& object);
  void tell_text(size_t index, const Piece& piece, const Json& logprobs);
  void tell_calls(size_t index);
  void tell_end(size_t index);
  Json chunk(size_t index, Json members, const Json& logprobs, const Json& finish_reason) const;
  std::vector<size_t> told_choices(size_t prompt) const;
  std::string echo_of(size_t index) const;
  std::string call_id() const;
  Json whole_choice(size_t index) const;
  Json usage() const;

  const Tokenizer& tokenizer_;
  CompletionSetup setup_;
  std::string id_;
  int64_t created_;
  int max_tokens(size_t prompt) const;
  std::shared_ptr<PendingReply> reply_ = std::make_shared<PendingReply>();
  std::deque<Choice> choices_;
  size_t num_left_;  // choices that have not ended
  bool has_begun_stream_ = false;
  bool has_failed_ = false;
  int64_t num_cached_ = 0;  // tokens of the prompts, of the first choice of each
};

/// JSON on one line; bytes that are no UTF-8 are replaced.
std::string one_line(const nlohmann::ordered_json& json);
/// A random id: "PREFIX" and 24 hexadecimal digits.
std::string random_id(const std::string& prefix);

}  // namespace soliton
