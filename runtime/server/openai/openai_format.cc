#include "runtime/server/openai/openai_format.h"

#include "runtime/answer/answer_text.h"
#include "runtime/server/openai/logprobs.h"
#include "runtime/text/chat_template/text.h"

namespace soliton {
namespace {

using Json = AnswerFormat::Json;

Json usage_object(const AnswerUsage& usage) {
  Json object = {{"prompt_tokens", usage.num_prompt},
                 {"completion_tokens", usage.num_generated},
                 {"total_tokens", usage.num_prompt + usage.num_generated},
                 {"prompt_tokens_details", {{"cached_tokens", usage.num_cached}}}};
  if (usage.num_reasoning) object["completion_tokens_details"] = {{"reasoning_tokens", *usage.num_reasoning}};
  return object;
}

Json function_object(const ToldCall& call) {
  return {{"name", call.name}, {"arguments", call.arguments}};
}

Json logprob_of(const ToldToken& told) {
  return told.token.logprob ? Json(json_logprob(*told.token.logprob)) : Json();
}

}  // namespace

OpenAiFormat::OpenAiFormat(const Tokenizer& tokenizer, Options options)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      id_(random_id(options_.is_chat ? "chatcmpl-" : "cmpl-")) {}

// ---- Logprobs

/// As a key: what is no text by itself is told by its bytes, so that no two such are the same.
std::string OpenAiFormat::token_name(int32_t id) const {
  if (options_.names_ids) return id_name(id);
  const std::string text = token_text(tokenizer_, id);
  if (jinja::is_valid_utf8(text)) return text;
  std::string name = "bytes:";
  for (const char byte : text) name += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return name;
}

/// Null if there are none.
Json OpenAiFormat::logprobs(std::span<const ToldToken> tokens) const {
  if (!options_.tells_logprobs || tokens.empty()) return nullptr;
  Json logprobs;
  if (options_.is_chat) {
    for (const ToldToken& told : tokens)
      logprobs["content"].push_back(logprob_entry(tokenizer_, told, options_.names_ids));
    return logprobs;
  }
  for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
    logprobs[name] = Json::array();
  for (const ToldToken& told : tokens) {
    logprobs["tokens"].push_back(options_.names_ids ? id_name(told.token.id)
                                                    : token_text(tokenizer_, told.token.id));
    logprobs["token_logprobs"].push_back(logprob_of(told));
    Json best = told.token.best.empty() ? Json() : Json::object();
    // Of two tokens of one name the better one comes first, and stays.
    for (const RankedToken& ranked : told.token.best)
      best.emplace(token_name(ranked.id), json_logprob(ranked.logprob));
    logprobs["top_logprobs"].push_back(std::move(best));
    logprobs["text_offset"].push_back(told.text_offset);
  }
  return logprobs;
}

// ---- Whole answers

Json OpenAiFormat::frame(const char* object) const {
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", options_.model}};
}

Json OpenAiFormat::message(const AnswerChoice& choice) const {
  Json message = {{"role", "assistant"}, {"content", choice.content}};
  if (!choice.reasoning.empty()) {
    message["reasoning_content"] = choice.reasoning;
    message["reasoning"] = choice.reasoning;
  }
  if (choice.calls.empty()) return message;
  if (choice.content.empty()) message["content"] = nullptr;
  for (const ToldCall& call : choice.calls)
    message["tool_calls"].push_back(
        {{"id", call.id}, {"type", "function"}, {"function", function_object(call)}});
  return message;
}

Json OpenAiFormat::whole(std::span<const AnswerChoice* const> choices, const AnswerUsage& usage) {
  Json whole = frame(options_.is_chat ? "chat.completion" : "text_completion");
  whole["choices"] = Json::array();
  for (const AnswerChoice* const choice : choices) {
    Json object = {{"index", whole["choices"].size()}};
    if (options_.is_chat) {
      object["message"] = message(*choice);
    } else {
      object["text"] = choice->prompt + choice->content;
    }
    std::vector<ToldToken> tokens = choice->prompt_tokens;
    tokens.insert(tokens.end(), choice->tokens.begin(), choice->tokens.end());
    object["logprobs"] = logprobs(tokens);
    object["finish_reason"] = name_of(choice->end);
    add_ids({&choice->prompt_ids, &choice->token_ids}, whole, object);
    whole["choices"].push_back(std::move(object));
  }
  whole["usage"] = usage_object(usage);
  return whole;
}

// ---- Streams

/// Of chats the prompt's stand beside the choices, which have it in common.
void OpenAiFormat::add_ids(const TokenIds& ids, Json& whole, Json& choice) const {
  if (!options_.tells_ids) return;
  if (ids.prompt != nullptr) (options_.is_chat ? whole : choice)["prompt_token_ids"] = *ids.prompt;
  if (ids.answer != nullptr) choice["token_ids"] = *ids.answer;
}

std::string OpenAiFormat::chunk(size_t index, Json members, const Json& logprobs, const Json& finish_reason,
                                const TokenIds& ids) const {
  Json object = frame(options_.is_chat ? "chat.completion.chunk" : "text_completion");
  Json choice = {{"index", index}};
  if (options_.is_chat) {
    choice["delta"] = std::move(members);
  } else {
    choice.update(members);
  }
  choice["logprobs"] = logprobs;
  choice["finish_reason"] = finish_reason;
  add_ids(ids, object, choice);
  object["choices"] = Json::array({std::move(choice)});
  if (options_.includes_usage) object["usage"] = nullptr;
  return server_event(one_line(object));
}

/// As llama.cpp tells it.
std::string OpenAiFormat::progress(const PromptProgress& progress) {
  constexpr double kMsPerS = 1000;
  Json object = frame(options_.is_chat ? "chat.completion.chunk" : "text_completion");
  object["choices"] = Json::array();
  object["prompt_progress"] = {{"total", progress.num_tokens},
                               {"cache", progress.num_cached},
                               {"processed", progress.num_fed},
                               {"time_ms", static_cast<int64_t>(progress.seconds * kMsPerS)}};
  if (options_.includes_usage) object["usage"] = nullptr;
  return server_event(one_line(object));
}

std::string OpenAiFormat::begin_choice(size_t index, const AnswerChoice& choice) {
  const TokenIds ids{.prompt = &choice.prompt_ids};
  if (options_.is_chat) return chunk(index, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr, ids);
  if (choice.prompt.empty() && choice.prompt_tokens.empty() && !options_.tells_ids) return {};
  return chunk(index, {{"text", choice.prompt}}, logprobs(choice.prompt_tokens), nullptr, ids);
}

std::string OpenAiFormat::piece(size_t index, const AnswerPiece& piece) {
  std::string text;
  const Json told = logprobs(piece.tokens);
  const TokenIds ids{.answer = &piece.token_ids};
  // By both names that clients look for.
  if (!piece.reasoning.empty()) {
    text = chunk(index, {{"reasoning_content", piece.reasoning}, {"reasoning", piece.reasoning}},
                 piece.content.empty() ? told : Json(), nullptr, piece.content.empty() ? ids : TokenIds{});
    if (piece.content.empty()) return text;
  }
  if (piece.content.empty() && told.is_null()) return text;
  return text + chunk(index, {{options_.is_chat ? "content" : "text", piece.content}}, told, nullptr, ids);
}

std::string OpenAiFormat::end_choice(size_t index, const AnswerChoice& choice) {
  std::string text;
  for (size_t i = 0; i < choice.calls.size(); ++i) {
    const Json call = {{"index", i},
                       {"id", choice.calls[i].id},
                       {"type", "function"},
                       {"function", function_object(choice.calls[i])}};
    text += chunk(index, {{"tool_calls", Json::array({call})}}, nullptr, nullptr, {});
  }
  const Json members = options_.is_chat ? Json::object() : Json{{"text", ""}};
  return text + chunk(index, members, nullptr, name_of(choice.end), {.answer = &choice.token_ids});
}

std::string OpenAiFormat::finish(const AnswerUsage& usage) {
  std::string text;
  if (options_.includes_usage) {
    Json last = frame(options_.is_chat ? "chat.completion.chunk" : "text_completion");
    last["choices"] = Json::array();
    last["usage"] = usage_object(usage);
    text = server_event(one_line(last));
  }
  return text + server_event("[DONE]");
}

std::string OpenAiFormat::fail(const ApiError& error) {
  return server_event(error.json()) + server_event("[DONE]");
}

}  // namespace soliton
