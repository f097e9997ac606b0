// How one API tells its client of an answer. Completion makes texts, calls and logprobs of tokens; of these a format of its
// own for each API makes what is sent, whole or piece by piece. A format is of one answer, and called by one thread at a time.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/server/api_error.h"
#include "runtime/server/calls/call_reader.h"
#include "runtime/server/generation.h"
#include "runtime/server/timestamp.h"

namespace soliton {

/// A token whose logprob is told; the first of a prompt has none.
struct ToldToken {
  GeneratedToken token;
  size_t text_offset = 0;  // characters of the text, the prompt's if that is told too, before it
};

struct ToldCall : ToolCall {
  std::string id = {};
};

/// What has become certain of an answer since the last piece.
struct AnswerPiece {
  std::string reasoning = {};
  std::string content = {};
  std::vector<ToldToken> tokens = {};   // whose text that is, if logprobs are wanted
  std::vector<int32_t> token_ids = {};  // of all that have come, if they are wanted
};

enum class AnswerEnd { kStop, kStopText, kLength, kCalls };
/// As OpenAI's API calls it: "stop", "length" or "tool_calls".
std::string_view name_of(AnswerEnd end);

/// One choice. Of a stream the tokens are told with the pieces alone.
struct AnswerChoice {
  std::string prompt = {};  // its text, if it is wanted before the answer's
  std::vector<ToldToken> prompt_tokens = {};
  std::string reasoning = {};
  std::string content = {};  // without reasoning, calls and prompt
  std::vector<ToldToken> tokens = {};
  std::vector<int32_t> prompt_ids = {};  // if they are wanted
  std::vector<int32_t> token_ids = {};   // of the answer, with the stop token; of a stream those of no piece
  std::vector<ToldCall> calls = {};
  AnswerEnd end = AnswerEnd::kStop;
  std::string stop_text = {};  // of kStopText
};

/// Tokens, and times in seconds.
struct AnswerUsage {
  size_t num_prompt = 0;
  size_t num_cached = 0;  // of these
  size_t num_generated = 0;
  std::optional<size_t> num_reasoning = {};  // of these, of models that reason
  double prompt_s = 0;                       // from the request to the first token
  double generation_s = 0;                   // from there on
};

/// How much of the prompts has been fed.
struct PromptProgress {
  size_t num_tokens = 0;
  size_t num_cached = 0;
  size_t num_fed = 0;  // with those
  double seconds = 0;
};

class AnswerFormat {
 public:
  using Json = nlohmann::ordered_json;

  virtual ~AnswerFormat() = default;

  virtual const std::string& id() const = 0;
  virtual HttpResponse refuse(const ApiError& error) const = 0;
  /// The choices are those that are wanted.
  virtual Json whole(std::span<const AnswerChoice* const> choices, const AnswerUsage& usage) = 0;

  // ---- Of a stream: bytes to be sent, be it none
  virtual std::string stream_type() const { return "text/event-stream"; }
  /// Before all else. Of the usage the prompt is known.
  virtual std::string begin(const AnswerUsage& usage) = 0;
  virtual std::string progress(const PromptProgress& progress) = 0;
  /// Before the first piece of a choice, whose prompt is known.
  virtual std::string begin_choice(size_t index, const AnswerChoice& choice) = 0;
  virtual std::string piece(size_t index, const AnswerPiece& piece) = 0;
  virtual std::string end_choice(size_t index, const AnswerChoice& choice) = 0;
  virtual std::string finish(const AnswerUsage& usage) = 0;
  /// In place of all that would follow.
  virtual std::string fail(const ApiError& error) = 0;
};

/// Server-sent events, with a name or without.
std::string server_event(const std::string& data);
std::string server_event(const std::string& name, const AnswerFormat::Json& data);
/// JSON on one line; bytes that are no UTF-8 are replaced.
std::string one_line(const nlohmann::ordered_json& json);
/// A random id: "PREFIX" and 24 hexadecimal digits.
std::string random_id(const std::string& prefix);
}  // namespace soliton
