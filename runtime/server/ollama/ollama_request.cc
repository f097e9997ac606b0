// What Ollama's requests say, as OpenAI's API says it.
#include <algorithm>

#include "runtime/server/ollama/ollama.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

/// -1: as many as fit. -2, which fills the context too, is the same here.
int64_t limit_of(const JsonView& num_predict) {
  return std::max<int64_t>(-1, num_predict.integer(-2, std::numeric_limits<int>::max()));
}

/// What is there whether or not a request asks for it.
void read_options(const JsonView& options, const Json& ordered, Json& body) {
  if (options.is_null()) return;
  options.object();
  for (const char* name :
       {"temperature", "top_k", "top_p", "min_p", "seed", "stop", "repeat_penalty", "repeat_last_n",
        "presence_penalty", "frequency_penalty", "typical_p", "tfs_z", "mirostat"}) {
    if (!options[name].is_null()) body[name] = ordered[name];
  }
  if (!options["num_predict"].is_null()) body["max_tokens"] = limit_of(options["num_predict"]);
  // What others of Ollama's options say is how it runs a model, and changes no answer.
}

/// Streams unless told otherwise.
void read_ollama_common(const JsonView& request, const Json& ordered, Json& body) {
  body["max_tokens"] = -1;
  body["stream"] = request["stream"].is_null() || request["stream"].boolean();
  read_options(request["options"], request["options"].is_null() ? Json() : ordered["options"], body);
  const JsonView format = request["format"];
  if (!format.is_null() && !(ordered["format"].is_string() && format.string().empty())) {
    if (ordered["format"].is_object()) {
      body["json_schema"] = ordered["format"];
    } else if (format.string() == "json") {
      body["response_format"] = {{"type", "json_object"}};
    } else {
      throw format.error("expected json or a schema, got {}", format.describe());
    }
  }
  const JsonView thinks = request["think"];
  if (!thinks.is_null()) {
    const bool is_effort = ordered["think"].is_string();
    const bool wants = is_effort || thinks.boolean();
    body["chat_template_kwargs"] = {{"enable_thinking", wants}, {"thinking", wants}};
    if (is_effort) body["reasoning_effort"] = thinks.string();
  }
}

/// Images are for models that read them.
void refuse_images(const JsonView& images) {
  if (!images.is_null() && images.array_size() > 0)
    throw images.error("expected none, as models here read text alone, got some");
}

/// As OpenAI's, but for arguments that are objects and calls without ids.
Json read_ollama_message(const JsonView& message, const Json& ordered) {
  refuse_images(message["images"]);
  Json read = {{"role", message["role"].string()}};
  read["content"] = message["content"].is_null() ? "" : message["content"].string();
  if (!message["thinking"].is_null()) read["reasoning_content"] = message["thinking"].string();
  if (!message["tool_name"].is_null()) read["name"] = message["tool_name"].string();
  if (!message["tool_call_id"].is_null()) read["tool_call_id"] = message["tool_call_id"].string();
  if (!message["tool_calls"].is_null() && message["tool_calls"].array_size() > 0) {
    read["tool_calls"] = ordered["tool_calls"];
    for (Json& call : read["tool_calls"]) {
      if (call.is_object() && !call.contains("type")) call["type"] = "function";
    }
  }
  return read;
}

}  // namespace

OllamaRequest read_ollama_chat(const std::string& text) {
  try {
    const nlohmann::json document = parse_body(text);
    const JsonView request(document, kBodyName);
    const Json ordered = parse_ordered_body(text);
    OllamaRequest read{.body = {{"messages", Json::array()}}};
    const JsonView messages = request["messages"];
    const Json none = Json::array();
    const Json& all = messages.is_null() ? none : ordered["messages"];
    for (size_t i = 0; !messages.is_null() && i < messages.array_size(); ++i)
      read.body["messages"].push_back(read_ollama_message(messages[i], all[i]));
    if (!request["tools"].is_null() && request["tools"].array_size() > 0)
      read.body["tools"] = ordered["tools"];
    for (const char* name : {"logprobs", "top_logprobs"}) {
      if (!request[name].is_null()) read.body[name] = ordered[name];
    }
    read_ollama_common(request, ordered, read.body);
    read.only_loads = read.body["messages"].empty();
    if (read.only_loads) read.body["messages"].push_back({{"role", "user"}, {"content", ""}});
    return read;
  } catch (const Error& error) {
    throw api_error_of(error, kBodyName);
  }
}

OllamaRequest read_ollama_generate(const std::string& text, bool has_template) {
  try {
    const nlohmann::json document = parse_body(text);
    const JsonView request(document, kBodyName);
    const Json ordered = parse_ordered_body(text);
    refuse_images(request["images"]);
    for (const char* name : {"suffix", "template"}) {
      if (!request[name].is_null() && !request[name].string().empty())
        throw request[name].error("not supported by this server, got text");
    }
    if (!request["context"].is_null() && request["context"].array_size() > 0)
      throw request["context"].error(
          "not supported by this server, got tokens; /api/chat takes a conversation");
    const std::string prompt = request["prompt"].is_null() ? "" : request["prompt"].string();
    const JsonView system = request["system"];
    if (!system.is_null()) system.string();  // also where no template takes it
    const bool is_raw = !request["raw"].is_null() && request["raw"].boolean();
    OllamaRequest read;
    if (is_raw || !has_template) {
      read.kind = ApiKind::kCompletion;
      read.body = {{"prompt", prompt}};
    } else {
      Json& messages = read.body["messages"] = Json::array();
      if (!system.is_null()) messages.push_back({{"role", "system"}, {"content", system.string()}});
      messages.push_back({{"role", "user"}, {"content", prompt}});
    }
    read_ollama_common(request, ordered, read.body);
    read.only_loads = prompt.empty();
    if (read.kind == ApiKind::kCompletion) read.body.erase("chat_template_kwargs");
    return read;
  } catch (const Error& error) {
    throw api_error_of(error, kBodyName);
  }
}

}  // namespace soliton
