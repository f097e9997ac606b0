#include "runtime/server/responses/responses_format.h"

#include "runtime/server/openai/logprobs.h"

namespace soliton {
namespace {

using Json = AnswerFormat::Json;

constexpr const char* kReasoning = "reasoning";
constexpr const char* kMessage = "message";

Json response_usage(const AnswerUsage& usage) {
  return {{"input_tokens", usage.num_prompt},
          {"input_tokens_details", {{"cached_tokens", usage.num_cached}}},
          {"output_tokens", usage.num_generated},
          {"output_tokens_details", {{"reasoning_tokens", usage.num_reasoning.value_or(0)}}},
          {"total_tokens", usage.num_prompt + usage.num_generated}};
}

/// As the next request of the conversation has it.
Json kept_message(const AnswerChoice& choice) {
  Json message = {{"role", "assistant"}, {"content", choice.content}};
  if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
  for (const ToldCall& call : choice.calls) {
    message["tool_calls"].push_back({{"id", call.id},
                                     {"type", "function"},
                                     {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return message;
}

Json call_item(const ToldCall& call, const std::string& id, const char* status,
               const std::string& arguments) {
  return {{"id", id},           {"type", "function_call"}, {"status", status}, {"arguments", arguments},
          {"call_id", call.id}, {"name", call.name}};
}

}  // namespace

Json ResponsesFormat::response(const char* status) const {
  Json response = {
      {"id", id_},        {"object", "response"},          {"created_at", created_},  {"status", status},
      {"error", nullptr}, {"incomplete_details", nullptr}, {"model", options_.model}, {"output", output_}};
  response.update(options_.settings);
  response["usage"] = nullptr;
  return response;
}

/// The response at its end, which is kept if wanted.
Json ResponsesFormat::completed(const AnswerUsage& usage) {
  Json whole = response(is_cut_ ? "incomplete" : "completed");
  if (is_cut_) whole["incomplete_details"] = {{"reason", "max_output_tokens"}};
  whole["usage"] = response_usage(usage);
  if (options_.keep) options_.keep(id_, whole, message_);
  return whole;
}

/// The events of a stream that nobody sees put the items together.
Json ResponsesFormat::whole(std::span<const AnswerChoice* const> choices, const AnswerUsage& usage) {
  const AnswerChoice& choice = *choices.front();
  piece(0, {.reasoning = choice.reasoning, .content = choice.content, .tokens = choice.tokens});
  end_choice(0, choice);
  return completed(usage);
}

// ---- Events

std::string ResponsesFormat::event(const char* name, Json members) {
  Json data = {{"type", name}, {"sequence_number", num_events_++}};
  data.update(members);
  return server_event(name, data);
}

/// Of the item that is being told.
std::string ResponsesFormat::item_event(const char* name, Json members) {
  Json data = {{"item_id", item_id_}, {"output_index", output_.size()}, {"content_index", 0}};
  data.update(members);
  return event(name, std::move(data));
}

std::string ResponsesFormat::begin(const AnswerUsage&) {
  std::string text = event("response.created", {{"response", response("in_progress")}});
  return text += event("response.in_progress", {{"response", response("in_progress")}});
}

/// What there is in the item: one part.
Json ResponsesFormat::part_of_item() const {
  if (open_ == kReasoning) return {{"type", "reasoning_text"}, {"text", text_}};
  return {{"type", "output_text"}, {"text", text_}, {"annotations", Json::array()}, {"logprobs", logprobs_}};
}

Json ResponsesFormat::item(const char* status) const {
  Json item = {{"id", item_id_}, {"type", open_}, {"status", status}};
  if (open_ == kReasoning) {
    item["summary"] = Json::array();
  } else {
    item["role"] = "assistant";
  }
  const bool has_ended = std::string_view(status) != "in_progress";
  item["content"] = has_ended ? Json::array({part_of_item()}) : Json::array();
  return item;
}

/// Unless it is open.
std::string ResponsesFormat::open_item(const std::string& type, const char* prefix) {
  if (open_ == type) return {};
  std::string text = close_item();
  open_ = type;
  item_id_ = random_id(prefix);
  text_.clear();
  logprobs_ = Json::array();
  text +=
      event("response.output_item.added", {{"output_index", output_.size()}, {"item", item("in_progress")}});
  return text + item_event("response.content_part.added", {{"part", part_of_item()}});
}

std::string ResponsesFormat::close_item() {
  if (open_.empty()) return {};
  std::string text;
  if (open_ == kReasoning) {
    text = item_event("response.reasoning_text.done", {{"text", text_}});
  } else {
    text = item_event("response.output_text.done", {{"text", text_}, {"logprobs", logprobs_}});
  }
  text += item_event("response.content_part.done", {{"part", part_of_item()}});
  Json ended = item(is_cut_ ? "incomplete" : "completed");
  text += event("response.output_item.done", {{"output_index", output_.size()}, {"item", ended}});
  output_.push_back(std::move(ended));
  open_.clear();
  return text;
}

std::string ResponsesFormat::piece(size_t, const AnswerPiece& piece) {
  std::string text;
  if (!piece.reasoning.empty()) {
    text += open_item(kReasoning, "rs_");
    text_ += piece.reasoning;
    text += item_event("response.reasoning_text.delta", {{"delta", piece.reasoning}});
  }
  if (piece.content.empty()) return text;
  text += open_item(kMessage, "msg_");
  text_ += piece.content;
  Json logprobs = Json::array();
  for (const ToldToken& told : piece.tokens) logprobs.push_back(logprob_entry(tokenizer_, told));
  logprobs_.insert(logprobs_.end(), logprobs.begin(), logprobs.end());
  return text + item_event("response.output_text.delta", {{"delta", piece.content}, {"logprobs", logprobs}});
}

std::string ResponsesFormat::call_events(const ToldCall& call) {
  item_id_ = random_id("fc_");
  const size_t index = output_.size();
  const auto event_of = [&](const char* name, Json members) {
    Json data = {{"item_id", item_id_}, {"output_index", index}};
    data.update(members);
    return event(name, std::move(data));
  };
  std::string text = event("response.output_item.added",
                           {{"output_index", index}, {"item", call_item(call, item_id_, "in_progress", "")}});
  text += event_of("response.function_call_arguments.delta", {{"delta", call.arguments}});
  text +=
      event_of("response.function_call_arguments.done", {{"arguments", call.arguments}, {"name", call.name}});
  Json ended = call_item(call, item_id_, "completed", call.arguments);
  text += event("response.output_item.done", {{"output_index", index}, {"item", ended}});
  output_.push_back(std::move(ended));
  return text;
}

std::string ResponsesFormat::end_choice(size_t, const AnswerChoice& choice) {
  is_cut_ = choice.end == AnswerEnd::kLength;
  std::string text = close_item();
  for (const ToldCall& call : choice.calls) text += call_events(call);
  message_ = kept_message(choice);
  return text;
}

std::string ResponsesFormat::finish(const AnswerUsage& usage) {
  const char* const name = is_cut_ ? "response.incomplete" : "response.completed";
  return event(name, {{"response", completed(usage)}});
}

std::string ResponsesFormat::fail(const ApiError& error) {
  Json failed = response("failed");
  failed["error"] = {{"code", error.status() < 500 ? "invalid_prompt" : "server_error"},
                     {"message", error.what()}};
  return event("response.failed", {{"response", std::move(failed)}});
}

}  // namespace soliton
