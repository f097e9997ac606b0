#include "runtime/server/api_request.h"

#include <algorithm>

#include "runtime/server/answer_grammar.h"
#include "runtime/server/chat_messages.h"
#include "runtime/server/token_choice.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxChoices = 128;
constexpr int kMaxStops = 64;
constexpr int kMaxTopLogprobs = 20;
constexpr int kMaxPrompts = 128;
constexpr size_t kMaxStopBytes = 1000;
constexpr ptrdiff_t kMaxSaltCharacters = 256;

void read_stops(const JsonView& stop, ApiRequest& request) {
  if (stop.is_null()) return;
  const auto add = [&](const JsonView& view) {
    if (view.string().empty()) throw view.error("expected text, got \"\"");
    if (view.string().size() > kMaxStopBytes)
      throw view.error("expected at most {} bytes, got {}", kMaxStopBytes, view.string().size());
    request.stops.push_back(view.string());
  };
  if (!stop.is_array()) {
    add(stop);
    return;
  }
  if (stop.array_size() > kMaxStops)
    throw stop.error("expected at most {} texts, got {}", kMaxStops, stop.array_size());
  for (size_t i = 0; i < stop.array_size(); ++i) add(stop[i]);
}

/// As vLLM has it.
void read_cache_salt(const JsonView& salt, ApiRequest& request) {
  if (salt.is_null()) return;
  request.cache_salt = salt.string();
  const auto size = std::count_if(request.cache_salt.begin(), request.cache_salt.end(),
                                  [](char c) { return (c & 0xc0) != 0x80; });
  if (size == 0 || size > kMaxSaltCharacters)
    throw salt.error("expected text of 1 to {} characters, got {}", kMaxSaltCharacters, size);
}

/// What both kinds of bodies say in the same way.
void read_common(const JsonView& body, const Sampling& defaults, ApiRequest& request) {
  if (!body["model"].is_null()) body["model"].string();  // there is one, whatever it is called
  read_token_choice(body, defaults, request);
  if (!body["n"].is_null()) request.num_choices = static_cast<int>(body["n"].integer(1, kMaxChoices));
  request.num_told = request.num_choices;
  if (!body["best_of"].is_null())
    request.num_choices = static_cast<int>(body["best_of"].integer(request.num_told, kMaxChoices));
  for (const char* name : {"n_predict", "max_tokens", "max_completion_tokens"}) {
    if (!body[name].is_null())
      request.max_tokens = static_cast<int>(body[name].integer(kAllTokens, std::numeric_limits<int>::max()));
  }
  read_stops(body["stop"], request);
  read_cache_salt(body["cache_salt"], request);
  if (!body["ignore_eos"].is_null()) request.ignores_stop_tokens = body["ignore_eos"].boolean();
  if (!body["stream"].is_null()) request.streams = body["stream"].boolean();
  if (!body["return_progress"].is_null()) request.tells_progress = body["return_progress"].boolean();
  if (!body["return_token_ids"].is_null()) request.token_ids = body["return_token_ids"].boolean();
  if (!body["return_tokens_as_token_ids"].is_null())
    request.names_ids = body["return_tokens_as_token_ids"].boolean();
  if (request.streams && request.num_choices > request.num_told)
    throw body["best_of"].error("expected {}, as n is, in a stream, got {}", request.num_told,
                                request.num_choices);
  const JsonView options = body["stream_options"];
  if (!options.is_null()) {
    if (!request.streams) throw options.error("expected stream to be true, got stream_options without");
    if (!options["include_usage"].is_null()) request.includes_usage = options["include_usage"].boolean();
  }
}

// ---- Chats

/// By llama.cpp's name, SGLang's and vLLM's.
void read_reasoning(const JsonView& body, ApiRequest& request) {
  const JsonView format = body["reasoning_format"];
  if (!format.is_null()) {
    const std::string& name = format.string();
    if (name != "none" && name != "auto" && name != "deepseek")
      throw format.error("expected none, auto or deepseek, got {}", format.describe());
    request.reasoning = name == "none" ? ReasoningFormat::kInText : ReasoningFormat::kApart;
  }
  const JsonView is_separate = body["separate_reasoning"];
  if (!is_separate.is_null())
    request.reasoning = is_separate.boolean() ? ReasoningFormat::kApart : ReasoningFormat::kInText;
  const JsonView is_included = body["include_reasoning"];
  if (!is_included.is_null() && !is_included.boolean()) request.reasoning = ReasoningFormat::kNowhere;
}

/// Of the template; OpenAI's reasoning_effort is one too, as is what the APIs of models say of thinking.
void read_variables(const JsonView& body, const Json& ordered, ApiRequest& request) {
  if (!body["chat_template_kwargs"].is_null()) {
    body["chat_template_kwargs"].object();
    request.variables = ordered["chat_template_kwargs"];
  }
  const auto add = [&](const char* name, const Json& value) {
    if (request.variables.is_null()) request.variables = Json::object();
    if (!request.variables.contains(name)) request.variables[name] = value;
  };
  if (!body["reasoning_effort"].is_null()) add("reasoning_effort", body["reasoning_effort"].string());
  std::optional<bool> thinks;
  if (!body["enable_thinking"].is_null()) thinks = body["enable_thinking"].boolean();
  if (!body["thinking"].is_null()) {
    const JsonView type = body["thinking"]["type"];
    if (type.string() != "enabled" && type.string() != "disabled")
      throw type.error("expected enabled or disabled, got {}", type.describe());
    thinks = type.string() == "enabled";
  }
  for (const char* name : {"enable_thinking", "thinking"}) {
    if (thinks) add(name, *thinks);
  }
}

/// vLLM's flags; a prefix is Mistral's and DeepSeek's word for it.
void read_continuation(const JsonView& body, ApiRequest& request) {
  const JsonView messages = body["messages"];
  const JsonView last = messages[messages.array_size() - 1];
  const JsonView flag = body["continue_final_message"];
  const JsonView begins = body["add_generation_prompt"];
  if (!begins.is_null()) request.begins_answer = begins.boolean();
  if (!flag.is_null()) request.continues_last = flag.boolean();
  if (request.continues_last && !begins.is_null() && request.begins_answer)
    throw flag.error("expected add_generation_prompt to be false, got true");
  if (last["role"].string() == "assistant" && !last["prefix"].is_null() && last["prefix"].boolean())
    request.continues_last = true;
  if (!request.continues_last) return;
  if (last["role"].string() != "assistant")
    throw flag.error("expected a last message of the assistant, got one of {}", last["role"].describe());
  request.begins_answer = false;
}

/// Templates write the special tokens of chats, and completions have those that the tokenizer adds.
void check_special_tokens(const JsonView& adds, bool is_chat) {
  if (!adds.is_null() && adds.boolean() == is_chat)
    throw not_yet("add_special_tokens", is_chat ? "true" : "false");
}

void read_chat(const JsonView& body, const Json& ordered, ApiRequest& request) {
  check_messages(body["messages"]);
  request.messages = read_messages(ordered["messages"]);
  request.tools = read_tool_request(body, ordered);
  read_variables(body, ordered, request);
  read_continuation(body, request);
  read_reasoning(body, request);
  if (!body["logprobs"].is_null()) request.logprobs = body["logprobs"].boolean();
  if (body["top_logprobs"].is_null()) return;
  request.num_top_logprobs = static_cast<int>(body["top_logprobs"].integer(0, kMaxTopLogprobs));
  if (!request.logprobs && request.num_top_logprobs > 0)
    throw body["top_logprobs"].error("expected logprobs to be true, got top_logprobs without");
}

// ---- Completions

std::vector<int32_t> read_tokens(const JsonView& list) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < list.array_size(); ++i) {
    tokens.push_back(static_cast<int32_t>(list[i].integer(0, std::numeric_limits<int32_t>::max())));
  }
  if (tokens.empty()) throw list.error("expected at least one token, got none");
  return tokens;
}

void read_completion(const JsonView& body, const Json& ordered, ApiRequest& request) {
  const JsonView prompt = body["prompt"];
  const auto add = [&](const JsonView& view) {
    if (view.is_array()) {
      request.prompts.push_back(read_tokens(view));
    } else {
      request.prompts.push_back(view.string());
    }
  };
  const bool is_tokens = prompt.is_array() && !ordered["prompt"].empty() && ordered["prompt"][0].is_number();
  if (!prompt.is_array() || is_tokens) {
    add(prompt);
  } else {
    if (prompt.array_size() == 0 || prompt.array_size() > kMaxPrompts) {
      throw prompt.error("expected 1 to {} prompts, got {}", kMaxPrompts, prompt.array_size());
    }
    for (size_t i = 0; i < prompt.array_size(); ++i) add(prompt[i]);
  }
  if (!body["echo"].is_null()) request.echoes = body["echo"].boolean();
  if (body["logprobs"].is_null()) return;
  request.logprobs = true;
  request.num_top_logprobs = static_cast<int>(body["logprobs"].integer(0, kMaxTopLogprobs));
  // Their logprobs come with those of the first choice.
  if (request.echoes && request.streams && request.num_choices > 1)
    throw body["echo"].error("expected n to be 1 beside logprobs in a stream, got {}", request.num_choices);
}

}  // namespace

/// `document` is the body with integers as parse_body() makes them.
static ApiRequest read(ApiKind kind, const nlohmann::json& document, const Json& ordered,
                       const Sampling& defaults) {
  const JsonView body(document, kBodyName);
  body.object();
  ApiRequest request;
  read_common(body, defaults, request);
  request.is_chat = kind == ApiKind::kChat;
  check_special_tokens(body["add_special_tokens"], request.is_chat);
  (request.is_chat ? read_chat : read_completion)(body, ordered, request);
  request.grammar = read_answer_grammar(body, ordered);
  if (request.grammar || request.tools.is_required) bias_only(request);
  request.sampling.logprobs = request.logprobs || request.num_choices > request.num_told;
  return request;
}

ApiRequest parse_api_request(ApiKind kind, const std::string& text, const Sampling& defaults) {
  try {
    const nlohmann::json document = parse_body(text);
    // Once more, as templates see the order of members.
    return read(kind, document, parse_ordered_body(text), defaults);
  } catch (const Error& error) {
    throw api_error_of(error, kBodyName);
  }
}

ApiRequest read_api_request(ApiKind kind, const Json& body, const Sampling& defaults, ApiNames names) {
  try {
    return read(kind, with_integers(body), body, defaults);
  } catch (const ApiError& error) {
    throw error.renamed(names);
  } catch (const Error& error) {
    throw api_error_of(error, kBodyName).renamed(names);
  }
}

}  // namespace soliton
