#include "runtime/server/api_request.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "models/hf_config.h"
#include "runtime/server/answer_grammar.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxChoices = 128;
constexpr int kMaxStops = 64;
constexpr int kMaxTopLogprobs = 20;
constexpr int kMaxPrompts = 128;
constexpr size_t kMaxTools = 1000;
constexpr size_t kMaxStopBytes = 1000;
// Enough to forbid every token of the largest vocabulary, and for prompts of tokens; an empty list of two bytes takes 64.
constexpr JsonLimits kBodyLimits = {.values = 2'000'000, .members = 500'000};
constexpr ptrdiff_t kMaxSaltCharacters = 256;

ApiError not_yet(const std::string& param, const std::string& got) {
  return ApiError(400, fmt::format("{}: not supported by this server, got {}", param, got), param,
                  "unsupported");
}

/// Of any 64-bit seed one that the kernels take. OpenAI's are signed.
uint32_t fold_seed(int64_t seed) {
  const auto bits = static_cast<uint64_t>(seed);
  return static_cast<uint32_t>(bits ^ bits >> 32);
}

uint32_t any_seed() {
  static thread_local std::random_device device;
  return device();
}

/// Where a number has no fraction, and is as exact as an integer.
void make_integers(nlohmann::json& value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value.is_structured()) {
    for (nlohmann::json& member : value) make_integers(member);
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) <= kExact) value = static_cast<int64_t>(number);
  }
}

// ---- Messages

/// The text of a content that is text, a list of parts that are, or nothing.
Json read_content(const Json& content, const std::string& param) {
  if (content.is_string() || content.is_null()) return content;
  if (!content.is_array()) {
    throw ApiError(400, param + ": expected text or a list of parts, got another value", param);
  }
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& part = content[i];
    const std::string at = fmt::format("{}[{}]", param, i);
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
      throw ApiError(400, at + ": expected an object with a type, got another value", at);
    }
    if (part["type"] != "text") {
      throw ApiError(400,
                     fmt::format("{}.type: expected text, the only kind that models here read, got {}", at,
                                 in_quotes(part["type"].get<std::string>())),
                     at + ".type");
    }
    if (!part.contains("text") || !part["text"].is_string()) {
      throw ApiError(400, at + ".text: expected text, got another value", at + ".text");
    }
    text += part["text"].get<std::string>();
  }
  return text;
}

/// Arguments of a call, which come as JSON in text and which templates write as objects. Other text stays what it is.
void read_arguments(Json& arguments, const std::string& param) {
  if (!arguments.is_string()) return;
  const std::string text = arguments.get<std::string>();
  try {
    if (auto parsed = parse_if_json(text.empty() ? "{}" : text, param, kBodyLimits))
      arguments = std::move(*parsed);
  } catch (const Error& error) {
    throw ApiError(400, error.what(), param);
  }
}

void read_tool_calls(Json& calls, const std::string& param) {
  if (calls.is_null()) return;
  if (!calls.is_array()) throw ApiError(400, param + ": expected a list, got another value", param);
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string at = fmt::format("{}[{}].function", param, i);
    Json* const function =
        calls[i].is_object() && calls[i].contains("function") ? &calls[i]["function"] : nullptr;
    if (function == nullptr || !function->is_object() || !function->contains("name") ||
        !(*function)["name"].is_string()) {
      throw ApiError(400, at + ".name: expected text, got nothing", at + ".name");
    }
    read_arguments((*function)["arguments"], at + ".arguments");
  }
}

// ---- How tokens are chosen

Sampling read_sampling(const JsonView& body, const Sampling& defaults) {
  Sampling sampling = defaults;
  const auto is_given = [&](const char* name) { return !body[name].is_null(); };
  if (is_given("temperature")) sampling.temperature = body["temperature"].number(0, kMaxTemperature);
  if (is_given("top_p")) sampling.top_p = body["top_p"].number(0, 1);
  if (is_given("min_p")) sampling.min_p = body["min_p"].number(0, 1);
  if (is_given("top_k")) {  // -1: all, as for vLLM
    sampling.top_k =
        static_cast<int>(std::max<int64_t>(0, body["top_k"].integer(-1, std::numeric_limits<int>::max())));
  }
  for (const char* name : {"repetition_penalty", "repeat_penalty"}) {  // vLLM's name, and llama.cpp's
    if (is_given(name)) sampling.repeat_penalty = body[name].number(kMinPenalty, kMaxPenalty);
  }
  const int64_t seed = is_given("seed") ? body["seed"].integer() : -1;  // -1: any, as for llama.cpp
  sampling.seed = seed == -1 ? any_seed() : fold_seed(seed);
  return sampling;
}

/// Refuses what would change the answer and cannot be done.
void refuse_unsupported(const JsonView& body) {
  for (const char* name : {"frequency_penalty", "presence_penalty"}) {
    if (!body[name].is_null() && body[name].number() != 0) throw not_yet(name, body[name].describe());
  }
  for (const char* name : {"guided_json", "guided_regex", "guided_choice", "guided_grammar"}) {
    if (!body[name].is_null()) throw not_yet(name, body[name].describe());
  }
  if (!body["use_beam_search"].is_null() && body["use_beam_search"].boolean())
    throw not_yet("use_beam_search", "true");
  if (!body["suffix"].is_null() && !body["suffix"].string().empty()) throw not_yet("suffix", "text");
}

/// -100 and 100, which forbid a token and all others; what lies between is not there.
void read_logit_bias(const JsonView& bias, ApiRequest& request) {
  constexpr double kAll = 100;
  if (bias.is_null()) return;
  for (const auto& [token, value] : bias.object().items()) {
    int32_t id = 0;
    const char* const end = token.data() + token.size();
    const auto read = std::from_chars(token.data(), end, id);
    const bool has_zeros = token.size() > 1 && token[0] == '0';
    if (read.ec != std::errc() || read.ptr != end || id < 0 || has_zeros)
      throw bias.error("expected the ids of tokens, got {}", in_quotes(token));
    const double by = bias[token].number(-kAll, kAll);
    if (by != 0 && std::abs(by) != kAll)
      throw not_yet("logit_bias", fmt::format("{} of token {}; -100 forbids it and 100 all others", by, id));
    if (by == -kAll) request.forbidden.push_back(id);
    if (by == kAll) request.only.push_back(id);
  }
}

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

/// What both kinds of bodies say in the same way.
/// As vLLM has it.
void read_cache_salt(const JsonView& salt, ApiRequest& request) {
  if (salt.is_null()) return;
  request.cache_salt = salt.string();
  const auto size = std::count_if(request.cache_salt.begin(), request.cache_salt.end(),
                                  [](char c) { return (c & 0xc0) != 0x80; });
  if (size == 0 || size > kMaxSaltCharacters)
    throw salt.error("expected text of 1 to {} characters, got {}", kMaxSaltCharacters, size);
}

void read_common(const JsonView& body, const Sampling& defaults, ApiRequest& request) {
  if (!body["model"].is_null()) body["model"].string();  // there is one, whatever it is called
  request.sampling = read_sampling(body, defaults);
  refuse_unsupported(body);
  if (!body["n"].is_null()) request.num_choices = static_cast<int>(body["n"].integer(1, kMaxChoices));
  request.num_told = request.num_choices;
  if (!body["best_of"].is_null())
    request.num_choices = static_cast<int>(body["best_of"].integer(request.num_told, kMaxChoices));
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    if (!body[name].is_null())
      request.max_tokens = static_cast<int>(body[name].integer(1, std::numeric_limits<int>::max()));
  }
  read_logit_bias(body["logit_bias"], request);
  read_stops(body["stop"], request);
  read_cache_salt(body["cache_salt"], request);
  if (!body["ignore_eos"].is_null()) request.ignores_stop_tokens = body["ignore_eos"].boolean();
  if (!body["stream"].is_null()) request.streams = body["stream"].boolean();
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

void read_tools(const JsonView& body, const Json& ordered, ApiRequest& request) {
  const JsonView tools = body["tools"];
  const JsonView choice = body["tool_choice"];
  if (!choice.is_null()) {
    if (ordered["tool_choice"].is_object()) throw not_yet("tool_choice", "a function");
    if (choice.string() == "required") throw not_yet("tool_choice", "\"required\"");
    if (choice.string() != "none" && choice.string() != "auto") {
      throw choice.error("expected none or auto, got {}", choice.describe());
    }
  }
  if (tools.is_null() || tools.array_size() == 0) return;
  if (tools.array_size() > kMaxTools)
    throw tools.error("expected at most {} functions, got {}", kMaxTools, tools.array_size());
  for (size_t i = 0; i < tools.array_size(); ++i) {
    if (tools[i]["type"].string() != "function") {
      throw tools[i]["type"].error("expected function, got {}", tools[i]["type"].describe());
    }
    tools[i]["function"]["name"].string();
  }
  if (choice.is_null() || choice.string() == "auto") request.tools = ordered["tools"];
}

void read_chat(const JsonView& body, const Json& ordered, ApiRequest& request) {
  check_messages(body["messages"]);
  request.messages = read_messages(ordered["messages"]);
  read_tools(body, ordered, request);
  if (!body["chat_template_kwargs"].is_null()) {
    body["chat_template_kwargs"].object();
    request.variables = ordered["chat_template_kwargs"];
  }
  if (!body["logprobs"].is_null()) request.logprobs = body["logprobs"].boolean();
  if (body["top_logprobs"].is_null()) return;
  request.num_top_logprobs = static_cast<int>(body["top_logprobs"].integer(0, kMaxTopLogprobs));
  if (!request.logprobs)
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
  if (request.echoes) throw not_yet("echo", "true beside logprobs");
}

}  // namespace

void check_messages(const JsonView& messages) {
  if (messages.array_size() == 0) throw messages.error("expected at least one message, got none");
  for (size_t i = 0; i < messages.array_size(); ++i) messages[i]["role"].string();
}

Json read_messages(const Json& messages) {
  Json read = messages;
  for (size_t i = 0; i < read.size(); ++i) {
    Json& message = read[i];
    const std::string at = fmt::format("messages[{}]", i);
    if (message.contains("content")) message["content"] = read_content(message["content"], at + ".content");
    if (message.contains("tool_calls")) {
      read_tool_calls(message["tool_calls"], at + ".tool_calls");
      // Templates ask whether there are calls by whether the list is there.
      if (message["tool_calls"].is_null() || message["tool_calls"].empty()) message.erase("tool_calls");
    }
    const bool has_calls = message.contains("tool_calls");
    if (!has_calls && (!message.contains("content") || message["content"].is_null())) {
      throw ApiError(400, at + ".content: expected text, got nothing", at + ".content");
    }
    if (!message.contains("content") || message["content"].is_null()) message["content"] = "";
  }
  return read;
}

nlohmann::json parse_body(const std::string& text) {
  nlohmann::json body = parse_json(text, kBodyName, kBodyLimits);
  make_integers(body);
  return body;
}

Json parse_ordered_body(const std::string& text) {
  return parse_ordered_json(text, kBodyName, kBodyLimits);
}

ApiRequest parse_api_request(ApiKind kind, const std::string& text, const Sampling& defaults) {
  try {
    const nlohmann::json document = parse_body(text);
    const JsonView body(document, kBodyName);
    body.object();
    ApiRequest request;
    read_common(body, defaults, request);
    request.is_chat = kind == ApiKind::kChat;
    const Json ordered = parse_ordered_body(text);  // once more, as templates see the order of members
    (request.is_chat ? read_chat : read_completion)(body, ordered, request);
    request.grammar = read_answer_grammar(body, ordered);
    if (request.grammar && !(request.forbidden.empty() && request.only.empty()))
      throw ApiError(400, "logit_bias: expected none beside a grammar of the answer, got tokens",
                     "logit_bias");
    if (request.grammar && !request.tools.empty())
      throw ApiError(400, "tools: expected none beside a grammar of the answer, got some", "tools");
    request.sampling.logprobs = request.logprobs || request.num_choices > request.num_told;
    return request;
  } catch (const Error& error) {
    throw api_error_of(error, kBodyName);
  }
}

}  // namespace soliton
