// The bodies of /v1/completions and /v1/chat/completions, read strictly: what is known and wrong is refused by name, as is
// what other servers can do and this one cannot; what is unknown is ignored.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/answer/host_choice.h"
#include "runtime/engine/sampling.h"
#include "runtime/server/api_body.h"
#include "runtime/server/api_error.h"
#include "runtime/server/calls/tool_request.h"
#include "runtime/text/constrain/grammar.h"

namespace soliton {

/// Where answers have the model's reasoning.
enum class ReasoningFormat {
  kApart,   // in a member of its own
  kInText,  // as the model writes it, before the rest of the content
  kNowhere
};

/// max_tokens: as many as there is room for.
inline constexpr int kAllTokens = -1;

struct ApiRequest {
  bool is_chat = false;
  // ---- of a chat
  nlohmann::ordered_json messages;  // as chat templates take them: contents are text, arguments objects
  bool begins_answer = true;        // behind the last message
  bool continues_last = false;      // the answer goes on where the last message ends
  ToolRequest tools;
  std::optional<ReasoningFormat> reasoning = {};  // else as the server has it
  nlohmann::ordered_json variables;               // of the template; null: none
  // ---- of a completion
  std::vector<std::variant<std::string, std::vector<int32_t>>> prompts;
  bool echoes = false;  // the prompt before the answer
  // ---- of both
  Sampling sampling;
  int num_choices = 1;            // of each prompt, generated
  int num_told = 1;               // of these, by the mean logprob of their tokens where they are fewer
  std::optional<int> max_tokens;  // of each choice, or kAllTokens; 0: nothing is generated
  std::vector<std::string> stops;
  std::vector<int32_t> stop_tokens;           // beside the model's
  std::optional<constrain::Grammar> grammar;  // what an answer may be
  std::vector<int32_t> forbidden;             // tokens that no answer has
  std::vector<int32_t> only;                  // the only ones that it may have, unless there are none
  LogitAdjustment adjustment;                 // of the logits of its tokens
  bool ignores_stop_tokens = false;
  bool logprobs = false;
  int num_top_logprobs = 0;  // further tokens whose logprobs are wanted
  bool token_ids = false;    // of prompts and answers are told
  bool names_ids = false;    // tokens with logprobs are told by their ids
  std::string cache_salt;    // only prompts with an equal one share what has been fed; empty: those without
  bool streams = false;
  bool includes_usage = false;  // in the last piece of a stream
  bool tells_progress = false;  // in a stream, while prompts are fed
};

/// How a body says what stands before the answer.
enum class ApiKind { kChat, kCompletion };

/// `defaults` are how tokens are chosen where the body does not say. Throws ApiError.
ApiRequest parse_api_request(ApiKind kind, const std::string& body, const Sampling& defaults);

/// The same of a body that has been parsed, or made of one of another API.
/// `names` are those of that API, see ApiError::renamed().
using ApiNames = std::span<const std::pair<std::string_view, std::string_view>>;
ApiRequest read_api_request(ApiKind kind, const nlohmann::ordered_json& body, const Sampling& defaults,
                            ApiNames names = {});

}  // namespace soliton
