// What requests to /v1/responses say, as chats say it.
#include <algorithm>

#include "runtime/server/api_request.h"
#include "runtime/server/responses/responses.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

// A reference is short, and may be there a thousand times.
constexpr size_t kMostReferredBytes = size_t{8} << 20;

/// Of a text, or of a list of parts that are.
std::string text_of_parts(const JsonView& content) {
  if (!content.is_array()) return content.string();
  std::string text;
  for (size_t i = 0; i < content.array_size(); ++i) {
    const JsonView type = content[i]["type"];
    const std::string& name = type.string();
    if (name == "refusal") {
      text += content[i]["refusal"].string();
    } else if (name == "input_text" || name == "output_text" || name == "text" || name == "reasoning_text") {
      text += content[i]["text"].string();
    } else {
      throw type.error("expected input_text or output_text, as models here read no more, got {}",
                       type.describe());
    }
  }
  return text;
}

/// Items one after another as messages: what one turn of the assistant consists of is one.
class ItemReader {
 public:
  explicit ItemReader(Json& messages) : messages_(messages) {}

  void read(const JsonView& item) {
    const JsonView type = item["type"];
    const std::string name = type.is_null() ? "message" : type.string();
    if (name == "message") {
      read_message(item);
    } else if (name == "reasoning") {
      if (!item["content"].is_null()) answer()["reasoning_content"] = text_of_parts(item["content"]);
    } else if (name == "function_call") {
      answer()["tool_calls"].push_back(
          {{"id", item["call_id"].string()},
           {"type", "function"},
           {"function", {{"name", item["name"].string()}, {"arguments", item["arguments"].string()}}}});
    } else if (name == "function_call_output") {
      is_answer_ = false;
      messages_.push_back({{"role", "tool"},
                           {"tool_call_id", item["call_id"].string()},
                           {"content", text_of_parts(item["output"])}});
    } else {
      throw type.error(
          "expected message, reasoning, function_call, function_call_output or item_reference, got {}",
          type.describe());
    }
  }

 private:
  void read_message(const JsonView& item) {
    const std::string& role = item["role"].string();
    const std::string text = text_of_parts(item["content"]);
    if (role == "assistant") {
      // Behind calls another turn begins.
      if (is_answer_ && (messages_.back().contains("tool_calls") || messages_.back()["content"] != ""))
        is_answer_ = false;
      answer()["content"] = text;
      return;
    }
    if (role != "user" && role != "system" && role != "developer")
      throw item["role"].error("expected user, assistant, system or developer, got {}",
                               item["role"].describe());
    is_answer_ = false;
    // Templates have one message of the system at the begin.
    const bool goes_on = role != "user" && messages_.size() == 1 && messages_[0]["role"] == "system";
    if (goes_on) {
      messages_[0]["content"].get_ref<std::string&>() += "\n\n" + text;
    } else {
      messages_.push_back(
          {{"role", messages_.empty() && role != "user" ? "system" : role}, {"content", text}});
    }
  }
  /// The turn of the assistant that is being read.
  Json& answer() {
    if (!is_answer_) messages_.push_back({{"role", "assistant"}, {"content", ""}});
    is_answer_ = true;
    return messages_.back();
  }

  Json& messages_;
  bool is_answer_ = false;  // the last message is a turn of the assistant that goes on
};

void read_functions(const JsonView& tools, const Json& ordered, Json& chat) {
  if (tools.is_null() || tools.array_size() == 0) return;
  for (size_t i = 0; i < tools.array_size(); ++i) {
    const JsonView type = tools[i]["type"];
    if (type.string() != "function")
      throw type.error("expected function, as this server has no tools of its own, got {}", type.describe());
    Json function = {{"name", tools[i]["name"].string()}};
    for (const char* name : {"description", "parameters", "strict"}) {
      if (!tools[i][name].is_null()) function[name] = ordered[i][name];
    }
    chat["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
  }
}

Json named_function(const JsonView& tool) {
  return {{"type", "function"}, {"function", {{"name", tool["name"].string()}}}};
}

void read_function_choice(const JsonView& choice, const Json& ordered, Json& chat) {
  if (choice.is_null()) return;
  if (!ordered.is_object()) {
    chat["tool_choice"] = choice.string();
    return;
  }
  const std::string& type = choice["type"].string();
  if (type == "function") {
    chat["tool_choice"] = named_function(choice);
  } else if (type == "allowed_tools") {
    Json allowed = {{"mode", choice["mode"].string()}, {"tools", Json::array()}};
    for (size_t i = 0; i < choice["tools"].array_size(); ++i)
      allowed["tools"].push_back(named_function(choice["tools"][i]));
    chat["tool_choice"] = {{"type", "allowed_tools"}, {"allowed_tools", std::move(allowed)}};
  } else {
    throw choice["type"].error("expected function or allowed_tools, got {}", choice["type"].describe());
  }
}

void read_text_format(const JsonView& format, const Json& body, Json& chat) {
  if (format.is_null()) return;
  const std::string& type = format["type"].string();
  if (type != "json_schema") {
    chat["response_format"] = {{"type", type}};
    return;
  }
  format["schema"].object();
  Json schema = body["text"]["format"];
  schema.erase("type");
  chat["response_format"] = {{"type", type}, {"json_schema", std::move(schema)}};
}

void read_included(const JsonView& body, Json& chat) {
  const JsonView include = body["include"];
  for (size_t i = 0; !include.is_null() && i < include.array_size(); ++i) {
    if (include[i].string() == "message.output_text.logprobs") chat["logprobs"] = true;
  }
  if (body["top_logprobs"].is_null()) return;
  chat["logprobs"] = true;
  chat["top_logprobs"] = body["top_logprobs"].integer();
}

void refuse_other_kinds(const JsonView& body) {
  const JsonView is_later = body["background"];
  if (!is_later.is_null() && is_later.boolean())
    throw is_later.error("not supported by this server, got true");
  for (const char* name : {"conversation", "prompt"}) {
    if (!body[name].is_null())
      throw body[name].error("not supported by this server, got {}", body[name].describe());
  }
}

/// With what is so where a request does not say, as clients of types want to read it.
Json settings_of(const JsonView& body, const Json& ordered) {
  Json settings = {{"instructions", nullptr},
                   {"max_output_tokens", nullptr},
                   {"metadata", Json::object()},
                   {"parallel_tool_calls", true},
                   {"previous_response_id", nullptr},
                   {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
                   {"store", true},
                   {"temperature", nullptr},
                   {"text", {{"format", {{"type", "text"}}}}},
                   {"tool_choice", "auto"},
                   {"tools", Json::array()},
                   {"top_p", nullptr},
                   {"truncation", "disabled"},
                   {"user", nullptr}};
  Json told = settings;
  for (auto& [name, value] : told.items()) {
    if (!body[name].is_null()) value = ordered[name];
  }
  // A stream tells them three times: what is large the client knows.
  constexpr size_t kMostBytes = 1 << 20;
  return told.dump().size() > kMostBytes ? settings : told;
}

Json read_input(const JsonView& body, const EarlierResponses& earlier) {
  Json messages = Json::array();
  const JsonView before = body["previous_response_id"];
  if (!before.is_null()) messages = earlier.messages(before.string());
  if (!body["instructions"].is_null()) {
    // Those of an earlier response do not count.
    if (!messages.empty() && messages[0]["role"] == "system") messages.erase(messages.begin());
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", body["instructions"].string()}});
  }
  const JsonView input = body["input"];
  if (!input.is_array()) {
    messages.push_back({{"role", "user"}, {"content", input.string()}});
    return messages;
  }
  ItemReader reader(messages);
  size_t num_bytes = 0;
  for (size_t i = 0; i < input.array_size(); ++i) {
    const JsonView type = input[i]["type"];
    if (type.is_null() || type.string() != "item_reference") {
      reader.read(input[i]);
      continue;
    }
    const std::string item = earlier.item(input[i]["id"].string());
    num_bytes += item.size();
    if (num_bytes > kMostReferredBytes)
      throw input[i].error("expected items of at most {} bytes together, got more", kMostReferredBytes);
    const nlohmann::json document = parse_body(item);
    reader.read(JsonView(document, kBodyName));
  }
  if (messages.empty()) throw input.error("expected at least one item, got none");
  return messages;
}

}  // namespace

ResponseRequest read_response_request(const std::string& text, const EarlierResponses& earlier) {
  try {
    const nlohmann::json document = parse_body(text);
    const JsonView body(document, kBodyName);
    body.object();
    const Json ordered = parse_ordered_body(text);
    refuse_other_kinds(body);
    ResponseRequest request{.chat = {{"messages", read_input(body, earlier)}},
                            .settings = settings_of(body, ordered)};
    Json& chat = request.chat;
    for (const char* name : {"model", "temperature", "top_p", "stream", "parallel_tool_calls", "seed",
                             "cache_salt", "chat_template_kwargs"}) {
      if (!body[name].is_null()) chat[name] = ordered[name];
    }
    const JsonView limit = body["max_output_tokens"];
    if (!limit.is_null()) chat["max_tokens"] = limit.integer(1, std::numeric_limits<int>::max());
    const Json none;
    const auto member = [&](const char* name) -> const Json& {
      return body[name].is_null() ? none : ordered[name];
    };
    read_functions(body["tools"], member("tools"), chat);
    read_function_choice(body["tool_choice"], member("tool_choice"), chat);
    if (!body["text"].is_null()) read_text_format(body["text"]["format"], ordered, chat);
    if (!body["reasoning"].is_null() && !body["reasoning"]["effort"].is_null())
      chat["reasoning_effort"] = body["reasoning"]["effort"].string();
    read_included(body, chat);
    if (!body["store"].is_null()) request.is_kept = body["store"].boolean();
    return request;
  } catch (const Error& error) {
    throw api_error_of(error, kBodyName);
  }
}

}  // namespace soliton
