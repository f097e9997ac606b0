#include "runtime/server/ollama/ollama_format.h"

#include "models/strict_json.h"
#include "runtime/server/ollama/ollama.h"
#include "runtime/server/openai/logprobs.h"
#include "runtime/server/timestamp.h"

namespace soliton {
namespace {

using Json = AnswerFormat::Json;

int64_t nanoseconds(double seconds) {
  constexpr double kPerSecond = 1e9;
  return static_cast<int64_t>(seconds * kPerSecond);
}

Json arguments_of(const ToldCall& call) {
  try {
    const std::optional<Json> arguments = parse_if_json(call.arguments, "arguments");
    if (arguments && arguments->is_object()) return *arguments;
  } catch (const Error&) {  // that nest too deep, which nobody can have meant
  }
  return Json::object();
}

}  // namespace

HttpResponse ollama_error(const ApiError& error) {
  return {.status = error.status(), .body = one_line({{"error", error.what()}})};
}

HttpResponse OllamaFormat::refuse(const ApiError& error) const {
  return ollama_error(error);
}

Json OllamaFormat::object(const std::string& content, const std::string& reasoning,
                          std::span<const ToldCall> calls, std::span<const ToldToken> tokens) const {
  Json object = {{"model", model_}, {"created_at", timestamp_now()}};
  Json told = Json::object();
  if (is_chat_) told["role"] = "assistant";
  told[is_chat_ ? "content" : "response"] = content;
  if (!reasoning.empty()) told["thinking"] = reasoning;
  for (const ToldCall& call : calls)
    told["tool_calls"].push_back(
        {{"id", call.id}, {"function", {{"name", call.name}, {"arguments", arguments_of(call)}}}});
  if (is_chat_) {
    object["message"] = std::move(told);
  } else {
    object.update(told);
  }
  object["done"] = false;
  for (const ToldToken& token : tokens) object["logprobs"].push_back(logprob_entry(tokenizer_, token));
  return object;
}

/// Makes it the last one.
void OllamaFormat::end(Json& last, const AnswerUsage& usage) const {
  last["done"] = true;
  last["done_reason"] = is_cut_ ? "length" : "stop";
  last["total_duration"] = nanoseconds(usage.prompt_s + usage.generation_s);
  last["load_duration"] = 0;
  last["prompt_eval_count"] = usage.num_prompt;
  last["prompt_eval_duration"] = nanoseconds(usage.prompt_s);
  last["eval_count"] = usage.num_generated;
  last["eval_duration"] = nanoseconds(usage.generation_s);
}

Json OllamaFormat::whole(std::span<const AnswerChoice* const> choices, const AnswerUsage& usage) {
  const AnswerChoice& choice = *choices.front();
  is_cut_ = choice.end == AnswerEnd::kLength;
  Json whole = object(choice.content, choice.reasoning, choice.calls, choice.tokens);
  end(whole, usage);
  return whole;
}

std::string OllamaFormat::piece(size_t, const AnswerPiece& piece) {
  return one_line(object(piece.content, piece.reasoning, {}, piece.tokens)) + "\n";
}

std::string OllamaFormat::end_choice(size_t, const AnswerChoice& choice) {
  is_cut_ = choice.end == AnswerEnd::kLength;
  return choice.calls.empty() ? "" : one_line(object("", "", choice.calls, {})) + "\n";
}

std::string OllamaFormat::finish(const AnswerUsage& usage) {
  Json last = object("", "", {}, {});
  end(last, usage);
  return one_line(last) + "\n";
}

std::string OllamaFormat::fail(const ApiError& error) {
  return one_line({{"error", error.what()}}) + "\n";
}

}  // namespace soliton
