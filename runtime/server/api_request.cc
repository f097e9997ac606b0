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

/// Refuses what would change the answer and cannot be done. Of each member the value that changes nothing passes.
void refuse_unsupported(const JsonView& body) {
  for (const char* name : {"min_tokens", "mirostat", "dry_multiplier", "xtc_probability", "dynatemp_range",
                           "truncate_prompt_tokens"}) {
    if (!body[name].is_null() && body[name].number() != 0) throw not_yet(name, body[name].describe());
  }
  for (const char* name : {"typical_p", "length_penalty"}) {
    if (!body[name].is_null() && body[name].number() != 1) throw not_yet(name, body[name].describe());
  }
  for (const char* name : {"functions", "bad_words", "logits_processors"}) {
    if (body[name].is_null() || (body[name].is_array() && body[name].array_size() == 0)) continue;
    throw not_yet(name, body[name].describe());
  }
  for (const char* name : {"audio", "web_search_options", "prompt_embeds", "prompt_logprobs"}) {
    if (!body[name].is_null()) throw not_yet(name, body[name].describe());
  }
  if (!body["use_beam_search"].is_null() && body["use_beam_search"].boolean())
    throw not_yet("use_beam_search", "true");
  if (!body["suffix"].is_null() && !body["suffix"].string().empty()) throw not_yet("suffix", "text");
}

/// What is added to logits. -100 and 100 forbid a token and all others, which costs less.
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
    if (by == -kAll) {
      request.forbidden.push_back(id);
    } else if (by == kAll) {
      request.only.push_back(id);
    } else if (by != 0) {
      request.adjustment.biases.emplace_back(id, static_cast<float>(by));
    }
  }
}

/// Where a grammar says what an answer may be, a bias is no more than one.
void make_biases(ApiRequest& request) {
  constexpr float kAll = 100;
  std::vector<std::pair<int32_t, float>>& biases = request.adjustment.biases;
  for (const int32_t token : request.forbidden) biases.emplace_back(token, -kAll);
  for (const int32_t token : request.only) biases.emplace_back(token, kAll);
  request.forbidden.clear();
  request.only.clear();
}

void read_penalties(const JsonView& body, LogitAdjustment& adjustment) {
  constexpr double kMost = 2;
  const auto read = [&](const char* name) {
    return body[name].is_null() ? 0.0f : static_cast<float>(body[name].number(-kMost, kMost));
  };
  adjustment.frequency_penalty = read("frequency_penalty");
  adjustment.presence_penalty = read("presence_penalty");
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
  request.sampling = read_sampling(body, defaults);
  refuse_unsupported(body);
  if (!body["n"].is_null()) request.num_choices = static_cast<int>(body["n"].integer(1, kMaxChoices));
  request.num_told = request.num_choices;
  if (!body["best_of"].is_null())
    request.num_choices = static_cast<int>(body["best_of"].integer(request.num_told, kMaxChoices));
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    if (!body[name].is_null())
      request.max_tokens = static_cast<int>(body[name].integer(kAllTokens, std::numeric_limits<int>::max()));
  }
  read_logit_bias(body["logit_bias"], request);
  read_penalties(body, request.adjustment);
  read_stops(body["stop"], request);
  read_cache_salt(body["cache_salt"], request);
  if (!body["ignore_eos"].is_null()) request.ignores_stop_tokens = body["ignore_eos"].boolean();
  if (!body["stream"].is_null()) request.streams = body["stream"].boolean();
  if (!body["return_progress"].is_null()) request.tells_progress = body["return_progress"].boolean();
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

/// Of the template; OpenAI's reasoning_effort is one too.
void read_variables(const JsonView& body, const Json& ordered, ApiRequest& request) {
  if (!body["chat_template_kwargs"].is_null()) {
    body["chat_template_kwargs"].object();
    request.variables = ordered["chat_template_kwargs"];
  }
  if (body["reasoning_effort"].is_null()) return;
  const std::string& effort = body["reasoning_effort"].string();
  if (request.variables.is_null()) request.variables = Json::object();
  if (!request.variables.contains("reasoning_effort")) request.variables["reasoning_effort"] = effort;
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
  // Their logprobs come with those of the first choice.
  if (request.echoes && request.streams && request.num_choices > 1)
    throw body["echo"].error("expected n to be 1 beside logprobs in a stream, got {}", request.num_choices);
}

}  // namespace

void check_messages(const JsonView& messages) {
  if (messages.array_size() == 0) throw messages.error("expected at least one message, got none");
  for (size_t i = 0; i < messages.array_size(); ++i) {
    messages[i]["role"].string();
    if (!messages[i]["prefix"].is_null()) messages[i]["prefix"].boolean();
  }
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
    // By vLLM's newer name, for templates that know the older one.
    if (message.contains("reasoning") && message["reasoning"].is_string() &&
        !message.contains("reasoning_content"))
      message["reasoning_content"] = message["reasoning"];
    if (!message.contains("tool_calls") && !message.contains("content")) {
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

/// `document` is the body with integers as parse_body() makes them.
static ApiRequest read(ApiKind kind, const nlohmann::json& document, const Json& ordered,
                       const Sampling& defaults) {
  const JsonView body(document, kBodyName);
  body.object();
  ApiRequest request;
  read_common(body, defaults, request);
  request.is_chat = kind == ApiKind::kChat;
  (request.is_chat ? read_chat : read_completion)(body, ordered, request);
  request.grammar = read_answer_grammar(body, ordered);
  if (request.grammar || request.tools.is_required) make_biases(request);
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

ApiRequest read_api_request(ApiKind kind, const Json& body, const Sampling& defaults) {
  try {
    nlohmann::json document(body);
    make_integers(document);
    return read(kind, document, body, defaults);
  } catch (const Error& error) {
    throw api_error_of(error, kBodyName);
  }
}

}  // namespace soliton
