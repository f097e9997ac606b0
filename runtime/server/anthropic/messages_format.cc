#include "runtime/server/anthropic/messages_format.h"

#include "models/strict_json.h"
#include "runtime/server/anthropic/messages.h"

namespace soliton {
namespace {

using Json = AnswerFormat::Json;

const char* error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

Json message_error(const ApiError& error) {
  return {{"type", "error"}, {"error", {{"type", error_type(error.status())}, {"message", error.what()}}}};
}

/// What was cached is no input.
Json message_usage(const AnswerUsage& usage) {
  return {{"input_tokens", usage.num_prompt - usage.num_cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.num_cached},
          {"output_tokens", usage.num_generated}};
}

Json message_end(const AnswerChoice& choice) {
  const bool is_text = choice.end == AnswerEnd::kStopText;
  const char* const reason = choice.end == AnswerEnd::kCalls    ? "tool_use"
                             : choice.end == AnswerEnd::kLength ? "max_tokens"
                             : is_text                          ? "stop_sequence"
                                                                : "end_turn";
  return {{"stop_reason", reason}, {"stop_sequence", is_text ? Json(choice.stop_text) : Json()}};
}

/// The arguments of a call as an object.
Json input_of(const ToldCall& call) {
  try {
    const std::optional<Json> input = parse_if_json(call.arguments, "arguments");
    if (input && input->is_object()) return *input;
  } catch (const Error&) {  // that nest too deep, which nobody can have meant
  }
  return Json::object();
}

}  // namespace

HttpResponse anthropic_error(const ApiError& error) {
  return {.status = error.status(), .body = one_line(message_error(error))};
}

HttpResponse MessagesFormat::refuse(const ApiError& error) const {
  return anthropic_error(error);
}

Json MessagesFormat::frame() const {
  return {{"id", id_},
          {"type", "message"},
          {"role", "assistant"},
          {"model", model_},
          {"content", Json::array()},
          {"stop_reason", nullptr},
          {"stop_sequence", nullptr}};
}

Json MessagesFormat::whole(std::span<const AnswerChoice* const> choices, const AnswerUsage& usage) {
  const AnswerChoice& choice = *choices.front();
  Json message = frame();
  Json& content = message["content"];
  if (!choice.reasoning.empty())
    content.push_back({{"type", "thinking"}, {"thinking", choice.reasoning}, {"signature", ""}});
  if (!choice.content.empty()) content.push_back({{"type", "text"}, {"text", choice.content}});
  for (const ToldCall& call : choice.calls)
    content.push_back(
        {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input_of(call)}});
  message.update(message_end(choice));
  message["usage"] = message_usage(usage);
  return message;
}

// ---- Streams

std::string MessagesFormat::begin(const AnswerUsage& usage) {
  Json message = frame();
  message["usage"] = message_usage(usage);
  return server_event("message_start", {{"type", "message_start"}, {"message", std::move(message)}});
}

/// A sign of life, with what llama.cpp's streams say.
std::string MessagesFormat::progress(const PromptProgress& progress) {
  constexpr double kMsPerS = 1e3;
  return server_event("ping", {{"type", "ping"},
                               {"prompt_progress",
                                {{"total", progress.num_tokens},
                                 {"cache", progress.num_cached},
                                 {"processed", progress.num_fed},
                                 {"time_ms", static_cast<int64_t>(progress.seconds * kMsPerS)}}}});
}

/// Unless one of this type is open.
std::string MessagesFormat::open_block(const std::string& type, Json block) {
  if (open_ == type && type != "tool_use") return {};
  std::string text = close_block();
  open_ = type;
  block["type"] = type;
  text += server_event(
      "content_block_start",
      {{"type", "content_block_start"}, {"index", num_blocks_}, {"content_block", std::move(block)}});
  ++num_blocks_;
  return text;
}

std::string MessagesFormat::delta(const char* type, const char* member, const std::string& text) const {
  return server_event("content_block_delta", {{"type", "content_block_delta"},
                                              {"index", num_blocks_ - 1},
                                              {"delta", {{"type", type}, {member, text}}}});
}

std::string MessagesFormat::close_block() {
  if (open_.empty()) return {};
  std::string text;
  if (open_ == "thinking") text = delta("signature_delta", "signature", "");
  open_.clear();
  return text +
         server_event("content_block_stop", {{"type", "content_block_stop"}, {"index", num_blocks_ - 1}});
}

std::string MessagesFormat::piece(size_t, const AnswerPiece& piece) {
  std::string text;
  if (!piece.reasoning.empty()) {
    text += open_block("thinking", {{"type", ""}, {"thinking", ""}, {"signature", ""}});
    text += delta("thinking_delta", "thinking", piece.reasoning);
  }
  if (!piece.content.empty()) {
    text += open_block("text", {{"type", ""}, {"text", ""}});
    text += delta("text_delta", "text", piece.content);
  }
  return text;
}

std::string MessagesFormat::end_choice(size_t, const AnswerChoice& choice) {
  std::string text;
  for (const ToldCall& call : choice.calls) {
    text += open_block("tool_use",
                       {{"type", ""}, {"id", call.id}, {"name", call.name}, {"input", Json::object()}});
    text += delta("input_json_delta", "partial_json", call.arguments);
  }
  text += close_block();
  end_ = message_end(choice);
  return text;
}

std::string MessagesFormat::finish(const AnswerUsage& usage) {
  return server_event("message_delta",
                      {{"type", "message_delta"}, {"delta", end_}, {"usage", message_usage(usage)}}) +
         server_event("message_stop", {{"type", "message_stop"}});
}

std::string MessagesFormat::fail(const ApiError& error) {
  return server_event("error", message_error(error));
}

}  // namespace soliton
