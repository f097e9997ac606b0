#include "runtime/server/chat_messages.h"

#include "runtime/server/api_error.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace soliton
