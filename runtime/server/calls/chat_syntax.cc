#include "runtime/server/calls/chat_syntax.h"

#include "models/error.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kProbeTool = "soliton_probe_tool";

/// Nothing where the template refuses it.
std::optional<std::string> rendered(const Prompter& prompter, const Json& messages, const Json& tools) {
  try {
    return prompter.render(messages, tools, nullptr).text();
  } catch (const Error&) {
    return std::nullopt;
  }
}

Json probe_tools() {
  const Json parameters = {{"type", "object"},
                           {"properties", {{"x", {{"type", "string"}, {"description", "x"}}}}}};
  const Json function = {{"name", kProbeTool}, {"description", "x"}, {"parameters", parameters}};
  return Json::array({{{"type", "function"}, {"function", function}}});
}

/// Whether the function's name stands in a prompt. Where the template refuses all of them, requests are told why.
bool describes_tools(const Prompter& prompter) {
  const Json user = {{"role", "user"}, {"content", "x"}};
  const Json system = {{"role", "system"}, {"content", "x"}};
  bool refuses_all = true;
  for (const Json& messages : {Json::array({user}), Json::array({system, user})}) {
    const auto text = rendered(prompter, messages, probe_tools());
    if (text && text->find(kProbeTool) != std::string::npos) return true;
    refuses_all = refuses_all && !text;
  }
  return refuses_all;
}

/// What the template makes of a call in a conversation, whichever way it takes them.
void find_format(const Prompter& prompter, ChatSyntax& syntax) {
  const Json user = {{"role", "user"}, {"content", "x"}};
  const Json arguments = {{std::string(ProbeCall::kKey), std::string(ProbeCall::kValue)}};
  const Json function = {{"name", std::string(ProbeCall::kName)}, {"arguments", arguments}};
  const Json call = {{"id", "abcdefghi"}, {"type", "function"}, {"function", function}};
  const Json message = {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}};
  const Json result = {{"role", "tool"}, {"content", "x"}, {"tool_call_id", "abcdefghi"}};
  for (const bool has_null_content : {false, true}) {
    for (const bool has_text_arguments : {false, true}) {
      ChatSyntax tried = syntax;
      tried.has_null_content = has_null_content;
      tried.has_text_arguments = has_text_arguments;
      const Json messages = written_for(tried, Json::array({user, message, result}));
      const auto text = rendered(prompter, messages, probe_tools());
      tried.calls = text ? format_written(*text) : nullptr;
      if (tried.calls == nullptr) continue;
      syntax = tried;
      return;
    }
  }
  // What the model is told of calls, else how one is written that no format writes quite so.
  for (const Json& messages : {Json::array({user}), Json::array({user, message, result})}) {
    const auto text = rendered(prompter, messages, probe_tools());
    const CallFormat* const format = text ? format_mentioned(*text) : nullptr;
    if (format == nullptr) continue;
    syntax.calls = format;
    return;
  }
}

}  // namespace

Json written_for(const ChatSyntax& syntax, Json messages) {
  const bool has_thinking = syntax.reasoning && syntax.reasoning->has_messages();
  if (!syntax.has_null_content && !syntax.has_text_arguments && !has_thinking) return messages;
  for (Json& message : messages) {
    if (!message.contains("tool_calls")) continue;
    // What led to calls is told again, by the name that harmony's template has for it, which takes it in place of a content.
    const bool is_silent =
        !message.contains("content") || message["content"].empty() || message["content"] == "";
    if (has_thinking && is_silent && message.contains("reasoning_content") && !message.contains("thinking"))
      message["thinking"] = message["reasoning_content"];
    if (syntax.has_null_content && message["content"] == "") message["content"] = nullptr;
    if (!syntax.has_text_arguments) continue;
    for (Json& call : message["tool_calls"]) {
      Json& arguments = call["function"]["arguments"];
      if (!arguments.is_string()) arguments = arguments.dump();
    }
  }
  return messages;
}

ChatSyntax find_chat_syntax(const Prompter& prompter, const Tokenizer& tokenizer, int vocabulary) {
  ChatSyntax syntax{.calls = &format_of_tokens(tokenizer)};
  if (!prompter.has_template()) return syntax;
  syntax.describes_tools = describes_tools(prompter);
  find_format(prompter, syntax);
  syntax.reasoning = find_reasoning_tags(prompter);
  std::vector<std::string> texts = marks_of(*syntax.calls);
  if (syntax.reasoning) {
    const std::vector<std::string> tags = syntax.reasoning->marks();
    syntax.reasoning_marks = AnswerMarks(tokenizer, vocabulary, tags).tokens();
    texts.insert(texts.end(), tags.begin(), tags.end());
  }
  syntax.marks = AnswerMarks(tokenizer, vocabulary, texts);
  return syntax;
}

}  // namespace soliton
