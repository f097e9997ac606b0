// Bodies of /v1/chat/completions (c), /v1/completions (p), /v1/messages (m), /v1/responses (r), Ollama's /api/chat (o) and
// /api/generate (g), and /tokenize (another first byte), up to the prompt that a template makes of them, and the grammars of
// the calls that they ask for.
#include "runtime/server/api_request.h"

#include "fuzz/expand.h"
#include "runtime/server/anthropic/messages.h"
#include "runtime/server/calls/call_grammar.h"
#include "runtime/server/chat_messages.h"
#include "runtime/server/ollama/ollama.h"
#include "runtime/server/responses/responses.h"
#include "runtime/text/chat_template/chat_template.h"

namespace soliton {
namespace {

void render(const ApiRequest& request) {
  static const ChatTemplate chat_template = ChatTemplate::parse(
      "{% for message in messages %}{{ message.role }}: {{ message.content }}{{ message.tool_calls | tojson "
      "}}\n"
      "{% endfor %}{{ tools | tojson }}",
      "t");
  ChatOptions options;
  options.tools = request.tools.described;
  options.variables = request.variables;
  accepts([&] { chat_template.render(request.messages, options).text(); });
}

void make_grammars(const ToolRequest& tools) {
  static const AnswerMarks none;
  if (tools.callable.empty()) return;
  for (const CallFormat& format : call_formats()) {
    accepts([&] {
      const constrain::Grammar grammar = call_grammar(
          {.format = format, .marks = none, .tools = tools.callable, .may_be_several = tools.may_be_several});
      expect(!grammar.rules.empty(), "calls");
    });
  }
}

const EarlierResponses kNoEarlierResponses = {
    .messages = [](const std::string&) { return nlohmann::ordered_json::array(); },
    .item = [](const std::string&) { return R"({"role": "user", "content": "a"})"; }};

/// Nothing of a body of messages alone.
std::optional<ApiRequest> read_request(char kind, const std::string& body) {
  const auto of_chat = [](const nlohmann::ordered_json& chat) {
    return read_api_request(ApiKind::kChat, chat, {});
  };
  const auto of_ollama = [](const OllamaRequest& read) { return read_api_request(read.kind, read.body, {}); };
  switch (kind) {
    case 'c':
      return parse_api_request(ApiKind::kChat, body, {});
    case 'p':
      return parse_api_request(ApiKind::kCompletion, body, {});
    case 'm':
      return of_chat(chat_of_messages(body, false));
    case 'r':
      return of_chat(read_response_request(body, kNoEarlierResponses).chat);
    case 'o':
      return of_ollama(read_ollama_chat(body));
    case 'g':
      return of_ollama(read_ollama_generate(body, true));
    default:
      return std::nullopt;
  }
}

void read(char kind, const std::string& body) {
  if (const std::optional<ApiRequest> read = read_request(kind, body)) {
    const ApiRequest& request = *read;
    expect(request.is_chat ? !request.messages.empty() : !request.prompts.empty(), "something to answer");
    expect(request.num_told <= request.num_choices && request.stops.size() <= 64,
           "numbers within their limits");
    if (request.is_chat) {
      render(request);
      make_grammars(request.tools);
    }
    return;
  }
  const nlohmann::json document = parse_body(body);
  const JsonView view(document, kBodyName);
  check_messages(view["messages"]);
  ApiRequest request;
  request.messages = read_messages(parse_ordered_body(body)["messages"]);
  render(request);
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  if (size == 0) return 0;
  const std::string body = expanded(as_text(data, size).substr(1));
  const TimeLimit limit;
  accepts([&] {
    try {
      read(static_cast<char>(data[0]), body);
    } catch (const ApiError& error) {
      expect(error.status() == 400 && !error.json().empty(), "a refusal of the request");
    }
  });
  return 0;
}
