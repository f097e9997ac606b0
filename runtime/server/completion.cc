#include "runtime/server/completion.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

namespace soliton {
namespace {

constexpr int kDefaultCompletionTokens = 16;  // as OpenAI's API has it

std::string event(const std::string& data) {
  return "data: " + data + "\n\n";
}

/// Characters, not bytes: text_offset counts them.
size_t num_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

/// Special tokens that mark what is read of an answer.
std::vector<int32_t> shown_marks(const CompletionSetup& setup) {
  if (!setup.request.is_chat) return {};
  return setup.request.tools.callable.empty() ? setup.syntax.reasoning_marks : setup.syntax.marks.tokens();
}

}  // namespace

std::string one_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// As long as the model's template wants it.
std::string Completion::call_id() const {
  const size_t num_characters = setup_.syntax.calls->id_characters;
  return num_characters == 0 ? random_id("call_") : random_id("").substr(0, num_characters);
}

std::string random_id(const std::string& prefix) {
  static thread_local std::random_device device;
  std::string id = prefix;
  for (int i = 0; i < 3; ++i) id += fmt::format("{:08x}", device());
  return id;
}

Completion::Completion(const Tokenizer& tokenizer, CompletionSetup setup)
    : tokenizer_(tokenizer),
      setup_(std::move(setup)),
      id_(random_id(setup_.request.is_chat ? "chatcmpl-" : "cmpl-")),
      created_(std::chrono::duration_cast<std::chrono::seconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count()),
      num_left_(setup_.prompts.size() * static_cast<size_t>(setup_.request.num_choices)) {
  const ApiRequest& request = setup_.request;
  const AnswerStyle style{
      .stop_tokens = request.ignores_stop_tokens ? std::vector<int32_t>() : setup_.stop_tokens,
      .stops = request.stops,
      .skips_special = true,
      .shown = shown_marks(setup_)};
  // Choices have copies that share what the request may have made large.
  const StopFilter filter(style.stops);
  std::optional<ToolCallReader> reader;
  if (!request.tools.callable.empty())
    reader.emplace(*setup_.syntax.calls, std::make_shared<const std::vector<Tool>>(request.tools.callable));
  for (size_t i = 0; i < num_left_; ++i) {
    Choice& choice = choices_.emplace_back(tokenizer, style, filter);
    choice.reader = reader;
    if (setup_.reasoning != ReasoningState::kNone)
      choice.thoughts.emplace(*setup_.syntax.reasoning, setup_.reasoning,
                              request.reasoning == ReasoningFormat::kInText);
  }
  if (request.streams && (setup_.grammar == nullptr || setup_.make_gate)) begin_stream();
}

/// What a grammar makes impossible is told before, as a whole answer.
void Completion::begin_stream() {
  has_begun_stream_ = true;
  HttpResponse head{.content_type = "text/event-stream", .headers = setup_.headers};
  head.headers.push_back({"Cache-Control", "no-cache"});
  head.headers.push_back({"X-Accel-Buffering", "no"});
  reply_->begin_stream(std::move(head));
}

/// Those asked for; else what is left of the context, or for a completion OpenAI's few.
int Completion::max_tokens(size_t prompt) const {
  const int left = setup_.context - static_cast<int>(setup_.prompts[prompt].size()) + 1;
  if (setup_.request.max_tokens) return *setup_.request.max_tokens;
  return std::max(1, setup_.request.is_chat ? left : std::min(left, kDefaultCompletionTokens));
}

Generation Completion::generation(size_t prompt) {
  const ApiRequest& request = setup_.request;
  const size_t first = prompt * static_cast<size_t>(request.num_choices);
  const auto self = shared_from_this();
  return {.prompt = setup_.prompts[prompt],
          .num_samples = request.num_choices,
          .max_tokens = max_tokens(prompt),
          .stop_tokens = request.ignores_stop_tokens ? std::vector<int32_t>() : setup_.stop_tokens,
          .sampling = request.sampling,
          .num_best = request.num_top_logprobs,
          .grammar = setup_.grammar,
          .make_gate = setup_.make_gate,
          .allowed = setup_.allowed,
          .client = setup_.client,
          .cache_scope = setup_.cache_scope,
          .on_token =
              [self, first](int sample, const GeneratedToken& token) {
                bool goes_on = false;
                self->guard([&] { goes_on = self->take(first + static_cast<size_t>(sample), token); });
                return goes_on;
              },
          .on_end =
              [self, first](int sample, const SampleSummary& summary) {
                self->guard([&] { self->end(first + static_cast<size_t>(sample), summary); });
              }};
}

// ---- As tokens come

/// What goes wrong with one answer is told its client, and no matter of the scheduler.
void Completion::guard(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    if (!has_failed_) fail(ApiError(500, error.what()));
  }
}

/// And notes it.
Completion::Piece Completion::piece_of(Choice& choice, std::string text, bool is_last) const {
  Piece piece{.reasoning = {}, .content = std::move(text)};
  if (choice.thoughts) {
    ReasoningReader::Piece read = choice.thoughts->push(piece.content);
    piece = {.reasoning = std::move(read.reasoning), .content = std::move(read.content)};
    if (is_last) {
      read = choice.thoughts->finish();
      piece.reasoning += read.reasoning;
      piece.content += read.content;
    }
  }
  if (choice.reader && is_last) {
    ToolCallReader::Rest rest = choice.reader->finish(piece.content);
    piece.content = std::move(rest.text);
    choice.calls = std::move(rest.calls);
    if (!setup_.request.tools.may_be_several && choice.calls.size() > 1)
      choice.calls.erase(choice.calls.begin() + 1, choice.calls.end());
  } else if (choice.reader) {
    piece.content = choice.reader->push(piece.content);
  }
  if (setup_.request.reasoning == ReasoningFormat::kInText) piece.content.insert(0, piece.reasoning);
  if (setup_.request.reasoning != ReasoningFormat::kApart) piece.reasoning.clear();
  choice.reasoning += piece.reasoning;
  choice.content += piece.content;
  return piece;
}

bool Completion::take(size_t index, const GeneratedToken& token) {
  if (has_failed_) return false;
  Choice& choice = choices_[index];
  choice.tokens.push_back(token);
  if (choice.thoughts && choice.thoughts->is_inside()) ++choice.num_reasoning;
  const Piece piece = piece_of(choice, choice.text.push(token.id), false);
  const Json logprobs = new_logprobs(choice, num_settled(choice, nullptr));
  if (setup_.request.streams) tell_text(index, piece, logprobs);
  return !choice.text.hit_stop();
}

void Completion::end(size_t index, const SampleSummary& summary) {
  if (has_failed_) return;
  if (summary.end == SampleEnd::kFailed) return fail(ApiError(503, summary.failure, {}, "kernel_failed"));
  if (summary.end == SampleEnd::kAmbiguous)
    return fail(ApiError(400, summary.failure, setup_.grammar->name()));
  if (summary.end == SampleEnd::kShutdown)
    return fail(ApiError(503, "the server has been told to end", {}, "shutdown"));
  Choice& choice = choices_[index];
  const Piece piece = piece_of(choice, choice.text.finish(), true);
  const Json logprobs = new_logprobs(choice, num_settled(choice, &summary));
  choice.finish_reason = !choice.calls.empty()               ? "tool_calls"
                         : summary.end == SampleEnd::kLength ? "length"
                                                             : "stop";
  if (index % static_cast<size_t>(setup_.request.num_choices) == 0) num_cached_ += summary.num_cached;
  if (setup_.request.streams) {
    tell_text(index, piece, logprobs);
    tell_calls(index);
    tell_end(index);
  }
  if (--num_left_ == 0) finish();
}

void Completion::finish() {
  if (setup_.request.streams) {
    if (setup_.request.includes_usage) {
      Json last = frame(setup_.request.is_chat ? "chat.completion.chunk" : "text_completion");
      last["choices"] = Json::array();
      last["usage"] = usage();
      tell(last);
    }
    reply_->put(event("[DONE]"));
    reply_->close();
    return;
  }
  Json whole = frame(setup_.request.is_chat ? "chat.completion" : "text_completion");
  Json& choices = whole["choices"] = Json::array();
  for (size_t prompt = 0; prompt < setup_.prompts.size(); ++prompt) {
    for (const size_t index : told_choices(prompt)) {
      choices.push_back(whole_choice(index));
      choices.back()["index"] = choices.size() - 1;
    }
  }
  whole["usage"] = usage();
  reply_->finish({.body = one_line(whole), .headers = setup_.headers});
}

/// Those of a prompt, or the best of them where not all are told.
std::vector<size_t> Completion::told_choices(size_t prompt) const {
  const auto num_choices = static_cast<size_t>(setup_.request.num_choices);
  std::vector<size_t> indices(num_choices);
  std::iota(indices.begin(), indices.end(), prompt * num_choices);
  const auto num_told = static_cast<size_t>(setup_.request.num_told);
  if (num_told == num_choices) return indices;
  const auto mean_logprob = [&](size_t index) {
    const std::vector<GeneratedToken>& tokens = choices_[index].tokens;
    double sum = 0;
    for (const GeneratedToken& token : tokens) sum += token.logprob.value_or(0);
    return tokens.empty() ? -std::numeric_limits<double>::infinity() : sum / std::ssize(tokens);
  };
  std::ranges::stable_sort(indices, std::greater(), mean_logprob);
  indices.resize(num_told);
  return indices;
}

/// Tells why nothing more comes.
void Completion::fail(const ApiError& error) {
  has_failed_ = true;
  if (!has_begun_stream_) {
    HttpResponse response = error.response();
    response.headers = setup_.headers;
    reply_->finish(std::move(response));
    return;
  }
  reply_->put(event(error.json()));
  reply_->put(event("[DONE]"));
  reply_->close();
}

// ---- Logprobs

/// How many tokens the text so far is made of; of an answer that has ended, all but the stop token.
size_t Completion::num_settled(const Choice& choice, const SampleSummary* summary) const {
  const size_t num_tokens = choice.text.num_tokens();
  const bool has_stop_token = summary != nullptr && summary->end == SampleEnd::kStopToken;
  return std::min(num_tokens, choice.tokens.size() - (has_stop_token ? 1 : 0));
}

std::string Completion::token_text(int32_t id) const {
  const std::vector<int> ids = {id};
  const std::string& piece = tokenizer_.piece(id);
  return tokenizer_.is_special(id) || piece.empty() ? tokenizer_.decode(ids) : piece;
}

Completion::Json Completion::logprob_entry(const GeneratedToken& token) const {
  const auto entry = [&](int32_t id, float logprob) {
    const std::string text = token_text(id);
    Json bytes = Json::array();
    for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
    return Json{{"token", text}, {"logprob", json_logprob(logprob)}, {"bytes", bytes}};
  };
  Json object = entry(token.id, token.logprob.value_or(0));
  Json& best = object["top_logprobs"] = Json::array();
  for (const RankedToken& ranked : token.best) best.push_back(entry(ranked.id, ranked.logprob));
  return object;
}

/// Of the tokens that have become part of the text since the last call; null if they are not wanted or there are none.
Completion::Json Completion::new_logprobs(Choice& choice, size_t num_settled) const {
  if (!setup_.request.logprobs || choice.num_told >= num_settled) return nullptr;
  Json logprobs;
  if (setup_.request.is_chat) logprobs["content"] = Json::array();
  for (; choice.num_told < num_settled; ++choice.num_told) {
    const GeneratedToken& token = choice.tokens[choice.num_told];
    if (setup_.request.is_chat) {
      logprobs["content"].push_back(logprob_entry(token));
      continue;
    }
    logprobs["tokens"].push_back(token_text(token.id));
    logprobs["token_logprobs"].push_back(json_logprob(token.logprob.value_or(0)));
    Json best = token.best.empty() ? Json() : Json::object();
    for (const RankedToken& ranked : token.best) best[token_text(ranked.id)] = json_logprob(ranked.logprob);
    logprobs["top_logprobs"].push_back(std::move(best));
    logprobs["text_offset"].push_back(choice.text_offset);
    choice.text_offset += num_characters(choice.text.text_of_token(choice.num_told));
  }
  append_logprobs(choice, logprobs);
  return logprobs;
}

/// Adds them to those of the whole answer.
void Completion::append_logprobs(Choice& choice, const Json& logprobs) const {
  if (setup_.request.streams) return;
  for (const auto& [member, list] : logprobs.items()) {
    Json& all = choice.logprobs[member];
    for (const Json& value : list) all.push_back(value);
  }
}

// ---- What the client gets

Completion::Json Completion::frame(const char* object) const {
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", setup_.model}};
}

void Completion::tell(const Json& object) {
  if (!has_begun_stream_) begin_stream();
  reply_->put(event(one_line(object)));
}

Completion::Json Completion::chunk(size_t index, Json members, const Json& logprobs,
                                   const Json& finish_reason) const {
  const bool is_chat = setup_.request.is_chat;
  Json object = frame(is_chat ? "chat.completion.chunk" : "text_completion");
  Json choice = {{"index", index}};
  if (is_chat) {
    choice["delta"] = std::move(members);
  } else {
    choice.update(members);
  }
  choice["logprobs"] = logprobs;
  choice["finish_reason"] = finish_reason;
  object["choices"] = Json::array({std::move(choice)});
  if (setup_.request.includes_usage) object["usage"] = nullptr;
  return object;
}

void Completion::tell_text(size_t index, const Piece& piece, const Json& logprobs) {
  Choice& choice = choices_[index];
  const bool is_chat = setup_.request.is_chat;
  if (!choice.has_begun) {
    choice.has_begun = true;
    if (is_chat) tell(chunk(index, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr));
    if (!setup_.echoes.empty()) tell(chunk(index, {{"text", echo_of(index)}}, nullptr, nullptr));
  }
  // By both names that clients look for.
  if (!piece.reasoning.empty()) {
    tell(chunk(index, {{"reasoning_content", piece.reasoning}, {"reasoning", piece.reasoning}},
               piece.content.empty() ? logprobs : Json(), nullptr));
    if (piece.content.empty()) return;
  }
  if (piece.content.empty() && logprobs.is_null()) return;
  tell(chunk(index, {{is_chat ? "content" : "text", piece.content}}, logprobs, nullptr));
}

void Completion::tell_calls(size_t index) {
  const std::vector<ToolCall>& calls = choices_[index].calls;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Json function = {{"name", calls[i].name}, {"arguments", calls[i].arguments}};
    const Json call = {{"index", i}, {"id", call_id()}, {"type", "function"}, {"function", function}};
    tell(chunk(index, {{"tool_calls", Json::array({call})}}, nullptr, nullptr));
  }
}

void Completion::tell_end(size_t index) {
  const Json members = setup_.request.is_chat ? Json::object() : Json{{"text", ""}};
  tell(chunk(index, members, nullptr, choices_[index].finish_reason));
}

/// The prompt that stands before a choice, where one is wanted.
std::string Completion::echo_of(size_t index) const {
  return setup_.echoes.empty() ? "" : setup_.echoes[index / static_cast<size_t>(setup_.request.num_choices)];
}

Completion::Json Completion::whole_choice(size_t index) const {
  const Choice& choice = choices_[index];
  Json object = {{"index", index}};
  if (setup_.request.is_chat) {
    Json message = {{"role", "assistant"}, {"content", choice.content}};
    if (!choice.reasoning.empty()) {
      message["reasoning_content"] = choice.reasoning;
      message["reasoning"] = choice.reasoning;
    }
    if (!choice.calls.empty()) {
      if (choice.content.empty()) message["content"] = nullptr;
      for (const ToolCall& call : choice.calls) {
        message["tool_calls"].push_back({{"id", call_id()},
                                         {"type", "function"},
                                         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
      }
    }
    object["message"] = std::move(message);
  } else {
    object["text"] = echo_of(index) + choice.content;
  }
  object["logprobs"] = choice.logprobs;
  object["finish_reason"] = choice.finish_reason;
  return object;
}

Completion::Json Completion::usage() const {
  size_t num_prompt = 0;
  for (const std::vector<int32_t>& prompt : setup_.prompts) num_prompt += prompt.size();
  size_t num_generated = 0;
  size_t num_reasoning = 0;
  for (const Choice& choice : choices_) {
    num_generated += choice.tokens.size();
    num_reasoning += choice.num_reasoning;
  }
  Json usage = {{"prompt_tokens", num_prompt},
                {"completion_tokens", num_generated},
                {"total_tokens", num_prompt + num_generated},
                {"prompt_tokens_details",
                 {{"cached_tokens", std::min<int64_t>(num_cached_, static_cast<int64_t>(num_prompt))}}}};
  if (setup_.reasoning != ReasoningState::kNone)
    usage["completion_tokens_details"] = {{"reasoning_tokens", num_reasoning}};
  return usage;
}

}  // namespace soliton
