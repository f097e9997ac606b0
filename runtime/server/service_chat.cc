// Chats of a Service: their prompts, and what their answers may be.
#include <algorithm>

#include "runtime/server/calls/call_gate.h"
#include "runtime/server/service.h"

namespace soliton {
namespace {

/// Drops what the template writes behind the last message. Throws where that does not stand as it was given.
void cut_behind(RenderedChat& chat, std::string content) {
  constexpr std::string_view kBlank = " \t\r\n";
  content.erase(content.find_last_not_of(kBlank) + 1);
  const auto piece = std::find_if(chat.pieces.rbegin(), chat.pieces.rend(),
                                  [](const TextPiece& each) { return each.from_message; });
  const std::string_view text =
      piece == chat.pieces.rend() ? std::string_view() : std::string_view(piece->text);
  const std::string_view written = text.substr(0, text.find_last_not_of(kBlank) + 1);
  if (content.empty() || !written.ends_with(content)) {
    throw Error(
        ExitCode::kMismatch,
        "expected a template that writes the last message as it is, so that an answer can continue it");
  }
  chat.pieces.erase(piece.base(), chat.pieces.end());
}

/// Where a template does not know the newer name.
void make_system(nlohmann::ordered_json& messages) {
  for (nlohmann::ordered_json& message : messages) {
    if (message["role"] == "developer") message["role"] = "system";
  }
}

}  // namespace

/// The prompt that the chat template makes of a conversation. What the template says against it goes to the client, but
/// not where its file lies.
Service::Prompt Service::render(const ApiRequest& request) const {
  try {
    nlohmann::ordered_json messages = written_for(syntax_, request.messages);
    if (!text_.prompter.mentions("developer")) make_system(messages);
    RenderedChat chat =
        text_.prompter.render(messages, request.tools.described, request.variables, request.begins_answer);
    if (request.continues_last) cut_behind(chat, request.messages.back()["content"].get<std::string>());
    return {text_.prompter.encode(chat), chat.text()};
  } catch (const Error& error) {
    std::string text = error.what();
    const std::string& name = text_.prompter.template_name();
    const std::string shown = "chat template";
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += shown.size())
      text.replace(at, name.size(), shown);
    throw ApiError(400, "messages: expected what the chat template takes, got: " + text, "messages");
  }
}

void Service::check_chat(const ApiRequest& request) const {
  check_reads_text("messages");
  if (!text_.prompter.has_template()) {
    throw ApiError(400,
                   "messages: expected a model with a chat template, got " + options_.model +
                       "; /v1/completions goes without, --chat-template gives one",
                   "messages");
  }
  if (!request.tools.described.is_null() && !syntax_.describes_tools) {
    throw ApiError(
        400,
        "tools: expected none, as the model's chat template does not tell the model of functions, got "
        "some; --chat-template gives another one, and tool_choice none leaves them out",
        "tools", "unsupported");
  }
}

void Service::set_up_chat(CompletionSetup& setup) const {
  check_chat(setup.request);
  Prompt prompt = render(setup.request);
  setup.prompts.push_back(std::move(prompt.tokens));
  if (syntax_.reasoning) setup.reasoning = reasoning_state(*syntax_.reasoning, prompt.text);
  if (setup.request.continues_last && setup.reasoning == ReasoningState::kMay)
    setup.reasoning = ReasoningState::kNone;
  setup.request.reasoning = setup.request.reasoning.value_or(options_.reasoning);
}

/// Nothing where they are more than a grammar holds and the answer `may_do_without`.
std::optional<constrain::Grammar> Service::grammar_of_calls(const ToolRequest& tools,
                                                            bool may_do_without) const {
  try {
    return call_grammar({.format = *syntax_.calls,
                         .marks = syntax_.marks,
                         .tools = tools.callable,
                         .may_be_several = tools.may_be_several});
  } catch (const Error& error) {
    const auto is_strict = [](const Tool& tool) { return tool.is_strict; };
    if (may_do_without && error.code() == ExitCode::kOutOfMemory &&
        std::none_of(tools.callable.begin(), tools.callable.end(), is_strict))
      return std::nullopt;
    throw ApiError(400, error.what(), "tools", error.code() == ExitCode::kMismatch ? "unsupported" : "");
  }
}

/// What the answer may be: calls, or texts of the request's own grammar, behind the model's reasoning. An answer that may be
/// any text or calls is free up to the first of these.
void Service::add_grammar(CompletionSetup& setup) const {
  const ToolRequest& tools = setup.request.tools;
  std::optional<constrain::Grammar> grammar = std::move(setup.request.grammar);
  std::optional<ReasoningMarks> reasoning;
  // Texts of the request's grammar are those of a message, after its header.
  if (grammar && setup.request.is_chat && syntax_.reasoning && syntax_.reasoning->has_messages() &&
      !setup.request.continues_last) {
    grammar = behind_header(std::move(*grammar), syntax_.marks.encoded(syntax_.reasoning->headers[0]));
  }
  // In the text itself the grammar holds from the start, unless the prompt has begun the reasoning.
  const bool is_in_text = grammar && setup.request.reasoning == ReasoningFormat::kInText;
  if (setup.reasoning == ReasoningState::kInside ||
      (setup.reasoning == ReasoningState::kMay && !is_in_text)) {
    reasoning = {.open = syntax_.marks.encoded(syntax_.reasoning->open),
                 .close = syntax_.marks.encoded(syntax_.reasoning->close),
                 .has_begun = setup.reasoning == ReasoningState::kInside};
  }
  if (!tools.callable.empty()) {
    const bool may_be_text = !tools.is_required && !grammar;
    // logit_bias of what is text alone holds in all of the answer.
    if (may_be_text && setup.allowed != nullptr) return;
    std::optional<constrain::Grammar> calls = grammar_of_calls(tools, may_be_text);
    if (!calls) return;
    if (may_be_text) {
      const auto gate = std::make_shared<CallGateSetup>(CallGateSetup{
          .format = *syntax_.calls, .names = {}, .marks = syntax_.marks, .reasoning = reasoning});
      for (const Tool& tool : tools.callable) gate->names.push_back(tool.name);
      setup.make_gate = [&tokenizer = text_.tokenizer, gate] { return make_call_gate(tokenizer, gate); };
    }
    grammar =
        grammar && !tools.is_required ? either(std::move(*calls), std::move(*grammar)) : std::move(calls);
  }
  if (!grammar) return;
  if (reasoning && setup.make_gate == nullptr) grammar = behind_reasoning(std::move(*grammar), *reasoning);
  setup.grammar = std::make_shared<RequestGrammar>(std::move(*grammar), vocabulary_);
}

}  // namespace soliton
