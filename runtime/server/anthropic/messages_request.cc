// What Anthropic's requests say, as chats of OpenAI's API say it.
#include <algorithm>

#include "runtime/server/anthropic/messages.h"
#include "runtime/server/api_request.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

/// Of a text, or of a list of blocks of text.
std::string text_of_blocks(const JsonView& content) {
  if (!content.is_array()) return content.string();
  std::string text;
  for (size_t i = 0; i < content.array_size(); ++i) {
    const JsonView type = content[i]["type"];
    if (type.string() != "text")
      throw type.error("expected text, the only kind that models here read, got {}", type.describe());
    text += content[i]["text"].string();
  }
  return text;
}

/// Adds what the blocks of one message are as messages: results of functions have one each.
class MessageReader {
 public:
  MessageReader(Json& messages, const std::string& role) : messages_(messages), role_(role) {}

  void read(const JsonView& block, const Json& ordered) {
    const JsonView type = block["type"];
    const std::string& name = type.string();
    const bool is_answer = role_ == "assistant";
    if (name == "text") {
      text_ += block["text"].string();
      has_text_ = true;
    } else if (name == "tool_result" && !is_answer) {
      flush();
      read_result(block);
    } else if (name == "tool_use" && is_answer) {
      calls_.push_back(
          {{"id", block["id"].string()},
           {"type", "function"},
           {"function", {{"name", block["name"].string()}, {"arguments", input(block, ordered)}}}});
    } else if (name == "thinking" && is_answer) {
      reasoning_ += block["thinking"].string();
    } else if (name != "redacted_thinking" || !is_answer) {
      throw type.error(
          "expected {}, got {}",
          is_answer ? "text, thinking or tool_use" : "text or tool_result, as models here read no more",
          type.describe());
    }
  }
  void flush() {
    if (!has_text_ && calls_.empty() && reasoning_.empty()) return;
    Json message = {{"role", role_}, {"content", text_}};
    if (!reasoning_.empty()) message["reasoning_content"] = reasoning_;
    if (!calls_.empty()) message["tool_calls"] = calls_;
    messages_.push_back(std::move(message));
    text_.clear();
    reasoning_.clear();
    calls_ = Json::array();
    has_text_ = false;
  }

 private:
  static Json input(const JsonView& block, const Json& ordered) {
    block["input"].object();
    return ordered["input"];
  }
  void read_result(const JsonView& block) {
    const JsonView content = block["content"];
    std::string text = content.is_null() ? "" : text_of_blocks(content);
    if (!block["is_error"].is_null() && block["is_error"].boolean()) text = "Error: " + text;
    messages_.push_back(
        {{"role", "tool"}, {"tool_call_id", block["tool_use_id"].string()}, {"content", std::move(text)}});
  }

  Json& messages_;
  std::string role_;
  std::string text_ = {};
  std::string reasoning_ = {};
  Json calls_ = Json::array();
  bool has_text_ = false;
};

Json read_conversation(const JsonView& body, const Json& ordered) {
  Json messages = Json::array();
  if (!body["system"].is_null())
    messages.push_back({{"role", "system"}, {"content", text_of_blocks(body["system"])}});
  const JsonView list = body["messages"];
  if (list.array_size() == 0) throw list.error("expected at least one message, got none");
  const Json& all = ordered["messages"];
  for (size_t i = 0; i < list.array_size(); ++i) {
    const std::string& role = list[i]["role"].string();
    if (role != "user" && role != "assistant" && role != "system")
      throw list[i]["role"].error("expected user or assistant, got {}", list[i]["role"].describe());
    const JsonView content = list[i]["content"];
    if (!content.is_array()) {
      messages.push_back({{"role", role}, {"content", content.string()}});
      continue;
    }
    MessageReader reader(messages, role);
    const Json& blocks = all[i]["content"];
    for (size_t j = 0; j < content.array_size(); ++j) reader.read(content[j], blocks[j]);
    reader.flush();
  }
  if (messages.empty()) throw list.error("expected some content, got none");
  return messages;
}

Json read_message_tools(const JsonView& tools, const Json& ordered) {
  Json read = Json::array();
  for (size_t i = 0; i < tools.array_size(); ++i) {
    const JsonView type = tools[i]["type"];
    if (!type.is_null() && type.string() != "custom")
      throw type.error("expected custom, as this server has no tools of its own, got {}", type.describe());
    Json function = {{"name", tools[i]["name"].string()}};
    if (!tools[i]["description"].is_null()) function["description"] = tools[i]["description"].string();
    tools[i]["input_schema"].object();
    function["parameters"] = ordered[i]["input_schema"];
    if (!tools[i]["strict"].is_null()) function["strict"] = tools[i]["strict"].boolean();
    read.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return read;
}

void read_message_choice(const JsonView& choice, Json& chat) {
  if (choice.is_null()) return;
  const std::string& type = choice["type"].string();
  if (type == "tool") {
    chat["tool_choice"] = {{"type", "function"}, {"function", {{"name", choice["name"].string()}}}};
  } else if (type == "auto" || type == "none") {
    chat["tool_choice"] = type;
  } else if (type == "any") {
    chat["tool_choice"] = "required";
  } else {
    throw choice["type"].error("expected auto, any, none or tool, got {}", choice["type"].describe());
  }
  const JsonView is_single = choice["disable_parallel_tool_use"];
  if (!is_single.is_null()) chat["parallel_tool_calls"] = !is_single.boolean();
}

/// As variables of templates that can do without reasoning. How much there may be of it is for the model to know.
void read_thinking(const JsonView& thinking, Json& chat) {
  if (thinking.is_null()) return;
  const JsonView type = thinking["type"];
  const bool thinks = type.string() != "disabled";
  if (thinks && type.string() != "enabled" && type.string() != "adaptive")
    throw type.error("expected enabled, adaptive or disabled, got {}", type.describe());
  if (!thinking["budget_tokens"].is_null())
    thinking["budget_tokens"].integer(0, std::numeric_limits<int>::max());
  chat["chat_template_kwargs"] = {{"enable_thinking", thinks}, {"thinking", thinks}};
}

/// {"type": "json_schema", "schema": ...}, by its older name or its newer one.
void read_output_format(const JsonView& body, const Json& ordered, Json& chat) {
  const bool is_new = !body["output_config"].is_null();
  const JsonView format = is_new ? body["output_config"]["format"] : body["output_format"];
  if (is_new && !body["output_config"]["effort"].is_null())
    chat["reasoning_effort"] = body["output_config"]["effort"].string();
  if (format.is_null()) return;
  if (format["type"].string() != "json_schema")
    throw format["type"].error("expected json_schema, got {}", format["type"].describe());
  format["schema"].object();
  const Json& schema = (is_new ? ordered["output_config"]["format"] : ordered["output_format"])["schema"];
  chat["response_format"] = {{"type", "json_schema"},
                             {"json_schema", {{"name", "output"}, {"schema", schema}}}};
}

}  // namespace

Json chat_of_messages(const std::string& text, bool wants_limit) {
  try {
    const nlohmann::json document = parse_body(text);
    const JsonView body(document, kBodyName);
    const Json ordered = parse_ordered_body(text);
    Json chat = {{"messages", read_conversation(body, ordered)}};
    if (wants_limit) chat["max_tokens"] = body["max_tokens"].integer(0, std::numeric_limits<int>::max());
    for (const char* name : {"model", "temperature", "top_p", "top_k", "stream", "return_progress",
                             "reasoning_format", "cache_salt", "seed"}) {
      if (!body[name].is_null()) chat[name] = ordered[name];
    }
    const JsonView stops = body["stop_sequences"];
    if (!stops.is_null() && stops.array_size() > 0) chat["stop"] = ordered["stop_sequences"];
    if (!body["tools"].is_null() && body["tools"].array_size() > 0)
      chat["tools"] = read_message_tools(body["tools"], ordered["tools"]);
    if (!body["mcp_servers"].is_null() && body["mcp_servers"].array_size() > 0)
      throw body["mcp_servers"].error("not supported by this server, got some");
    read_message_choice(body["tool_choice"], chat);
    read_thinking(body["thinking"], chat);
    read_output_format(body, ordered, chat);
    const Json& last = chat["messages"].back();
    const bool is_prefix =
        last["role"] == "assistant" && !last.contains("tool_calls") && last["content"] != "";
    if (is_prefix) chat["continue_final_message"] = true;
    return chat;
  } catch (const Error& error) {
    throw api_error_of(error, kBodyName);
  }
}

}  // namespace soliton
