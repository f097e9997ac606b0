#include "runtime/server/completion.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "runtime/server/seconds.h"

namespace soliton {
namespace {

constexpr int kDefaultCompletionTokens = 16;  // as OpenAI's API has it
constexpr std::chrono::milliseconds kBetweenProgress{50};

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

/// A prompt's tokens, none of which is likely yet, with where their texts begin in the whole.
std::vector<ToldToken> tokens_of_prompt(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt) {
  AnswerText text(tokenizer, {.stop_tokens = {}, .stops = {}, .skips_special = true});
  for (const int32_t token : prompt) text.push(token);
  text.finish();
  std::vector<ToldToken> tokens;
  size_t offset = 0;
  for (size_t i = 0; i < prompt.size(); ++i) {
    tokens.push_back({{{prompt[i]}}, offset});
    if (i < text.num_tokens()) offset += num_characters(text.text_of_token(i));
  }
  return tokens;
}

/// The model's, unless answers go on behind them, and the request's.
std::vector<int32_t> stop_tokens_of(const CompletionSetup& setup) {
  std::vector<int32_t> tokens =
      setup.request.ignores_stop_tokens ? std::vector<int32_t>() : setup.stop_tokens;
  tokens.insert(tokens.end(), setup.request.stop_tokens.begin(), setup.request.stop_tokens.end());
  return tokens;
}

}  // namespace

/// As long as the model's template wants it.
std::string Completion::call_id() const {
  const size_t num_characters = setup_.syntax.calls->id_characters;
  return num_characters == 0 ? random_id("call_") : random_id("").substr(0, num_characters);
}

Completion::Completion(const Tokenizer& tokenizer, CompletionSetup setup,
                       std::unique_ptr<AnswerFormat> format)
    : setup_(std::move(setup)),
      format_(std::move(format)),
      num_left_(setup_.prompts.size() * static_cast<size_t>(setup_.request.num_choices)),
      num_fed_(setup_.prompts.size()),
      num_scored_(setup_.prompts.size()),
      num_cached_(setup_.prompts.size()) {
  const ApiRequest& request = setup_.request;
  const AnswerStyle style{.stop_tokens = stop_tokens_of(setup_),
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
  for (size_t prompt = 0; request.echoes && prompt < setup_.prompts.size(); ++prompt) {
    AnswerChoice& told = choices_[first_choice(prompt)].told;
    if (request.logprobs) told.prompt_tokens = tokens_of_prompt(tokenizer, setup_.prompts[prompt]);
    for (size_t i = 0; i < static_cast<size_t>(request.num_choices); ++i) {
      Choice& choice = choices_[first_choice(prompt) + i];
      choice.told.prompt = setup_.prompt_texts[prompt];
      choice.text_offset = num_characters(choice.told.prompt);
    }
  }
  for (size_t i = 0; request.token_ids && i < choices_.size(); ++i)
    choices_[i].told.prompt_ids = setup_.prompts[i / static_cast<size_t>(request.num_choices)];
  if (request.streams && (setup_.grammar == nullptr || setup_.make_gate)) begin_stream();
}

/// What a grammar makes impossible is told before, as a whole answer.
void Completion::begin_stream() {
  has_begun_stream_ = true;
  HttpResponse head{.content_type = format_->stream_type(), .headers = setup_.headers};
  head.headers.push_back({"Cache-Control", "no-cache"});
  head.headers.push_back({"X-Accel-Buffering", "no"});
  reply_->begin_stream(std::move(head));
  tell(format_->begin(usage()));
}

/// Those asked for; else what is left of the context, or for a completion OpenAI's few.
int Completion::max_tokens(size_t prompt) const {
  const int left = setup_.context - static_cast<int>(setup_.prompts[prompt].size()) + 1;
  const std::optional<int>& wanted = setup_.request.max_tokens;
  if (wanted && *wanted != kAllTokens) return *wanted;
  return std::max(1, setup_.request.is_chat || wanted ? left : std::min(left, kDefaultCompletionTokens));
}

Generation Completion::generation(size_t prompt) {
  const ApiRequest& request = setup_.request;
  const size_t first = first_choice(prompt);
  const auto self = shared_from_this();
  Generation generation{
      .prompt = setup_.prompts[prompt],
      .num_samples = request.num_choices,
      .max_tokens = max_tokens(prompt),
      .stop_tokens = stop_tokens_of(setup_),
      .sampling = request.sampling,
      .num_best = request.num_top_logprobs,
      .allowed = setup_.allowed,
      .adjustment = setup_.adjustment,
      .client = setup_.client,
      .cache_scope = setup_.cache_scope,
      .on_fed = [self, prompt](
                    int num_fed,
                    int num_cached) { self->guard([&] { self->take_fed(prompt, num_fed, num_cached); }); },
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
  if (generation.max_tokens > 0) {  // else there is no answer that a grammar could be of
    generation.grammar = setup_.grammar;
    generation.make_gate = setup_.make_gate;
  }
  if (!choices_[first].told.prompt_tokens.empty()) {
    generation.on_prompt_token = [self, prompt](const GeneratedToken& token) {
      self->guard([&] { self->take_prompt_token(prompt, token); });
    };
  }
  return generation;
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

/// The first token of a prompt has no logprob; the others come in their order.
void Completion::take_prompt_token(size_t prompt, const GeneratedToken& token) {
  std::vector<ToldToken>& tokens = choices_[first_choice(prompt)].told.prompt_tokens;
  tokens.at(++num_scored_[prompt]).token = token;
}

void Completion::take_fed(size_t prompt, int num_fed, int num_cached) {
  if (has_failed_) return;
  num_cached_[prompt] = static_cast<size_t>(num_cached);
  num_fed_[prompt] = static_cast<size_t>(num_fed);
  if (!setup_.request.streams || !setup_.request.tells_progress) return;
  const Clock::time_point now = Clock::now();
  const bool is_first = num_fed == num_cached;
  const bool is_last = num_fed_[prompt] + 1 >= setup_.prompts[prompt].size();
  if (!is_first && !is_last && now - told_progress_ < kBetweenProgress) return;
  told_progress_ = now;
  PromptProgress progress{.seconds = seconds_between(asked_, now)};
  for (size_t i = 0; i < setup_.prompts.size(); ++i) {
    progress.num_tokens += setup_.prompts[i].size();
    progress.num_cached += num_cached_[i];
    progress.num_fed += num_fed_[i];
  }
  tell(format_->progress(progress));
}

/// And notes it.
AnswerPiece Completion::piece_of(Choice& choice, std::string text, bool is_last) const {
  AnswerPiece piece{.content = std::move(text)};
  if (choice.thoughts) {
    ReasoningReader::Piece read = choice.thoughts->push(piece.content);
    piece.reasoning = std::move(read.reasoning);
    piece.content = std::move(read.content);
    if (is_last) {
      read = choice.thoughts->finish();
      piece.reasoning += read.reasoning;
      piece.content += read.content;
    }
  }
  if (choice.reader && is_last) {
    read_calls(choice, piece);
  } else if (choice.reader) {
    piece.content = choice.reader->push(piece.content);
  }
  if (setup_.request.reasoning == ReasoningFormat::kInText) piece.content.insert(0, piece.reasoning);
  if (setup_.request.reasoning != ReasoningFormat::kApart) piece.reasoning.clear();
  choice.told.reasoning += piece.reasoning;
  choice.told.content += piece.content;
  return piece;
}

/// Of the last piece.
void Completion::read_calls(Choice& choice, AnswerPiece& piece) const {
  ToolCallReader::Rest rest = choice.reader->finish(piece.content);
  piece.content = std::move(rest.text);
  if (!setup_.request.tools.may_be_several && rest.calls.size() > 1)
    rest.calls.erase(rest.calls.begin() + 1, rest.calls.end());
  for (ToolCall& call : rest.calls) choice.told.calls.push_back({std::move(call), call_id()});
}

bool Completion::take(size_t index, const GeneratedToken& token) {
  if (has_failed_) return false;
  if (!first_token_) first_token_ = Clock::now();
  Choice& choice = choices_[index];
  choice.tokens.push_back(token);
  if (choice.thoughts && choice.thoughts->is_inside()) ++choice.num_reasoning;
  AnswerPiece piece = piece_of(choice, choice.text.push(token.id), false);
  piece.tokens = new_tokens(choice, num_settled(choice, nullptr));
  if (setup_.request.streams) tell_piece(index, std::move(piece));
  return !choice.text.hit_stop();
}

/// Why there is no answer.
std::optional<ApiError> Completion::error_of(const SampleSummary& summary) const {
  if (summary.end == SampleEnd::kFailed) return ApiError(503, summary.failure, {}, "kernel_failed");
  if (summary.end == SampleEnd::kAmbiguous) return ApiError(400, summary.failure, setup_.grammar->name());
  if (summary.end == SampleEnd::kShutdown)
    return ApiError(503, "the server has been told to end", {}, "shutdown");
  return std::nullopt;
}

AnswerEnd Completion::end_of(const Choice& choice, const SampleSummary& summary) const {
  if (!choice.told.calls.empty()) return AnswerEnd::kCalls;
  if (choice.text.hit_stop()) return AnswerEnd::kStopText;
  return summary.end == SampleEnd::kLength ? AnswerEnd::kLength : AnswerEnd::kStop;
}

void Completion::end(size_t index, const SampleSummary& summary) {
  if (has_failed_) return;
  if (const std::optional<ApiError> error = error_of(summary)) return fail(*error);
  is_cancelled_ = is_cancelled_ || summary.end == SampleEnd::kCancelled;
  Choice& choice = choices_[index];
  AnswerPiece piece = piece_of(choice, choice.text.finish(), true);
  piece.tokens = new_tokens(choice, num_settled(choice, &summary));
  choice.told.end = end_of(choice, summary);
  choice.told.stop_text = choice.text.stop_text();
  const auto num_choices = static_cast<size_t>(setup_.request.num_choices);
  if (index % num_choices == 0) num_cached_[index / num_choices] = static_cast<size_t>(summary.num_cached);
  if (setup_.request.streams) {
    tell_piece(index, std::move(piece));
    choice.told.token_ids = new_ids(choice);
    tell(format_->end_choice(index, choice.told));
  } else {
    choice.told.token_ids = new_ids(choice);
  }
  if (--num_left_ == 0) finish();
}

/// For the log, for want of whose memory no answer fails.
void Completion::note(int status, std::string_view end) const noexcept {
  if (!setup_.on_answered) return;
  try {
    setup_.on_answered({.id = format_->id(),
                        .client = setup_.client,
                        .path = {},
                        .status = status,
                        .end = std::string(end),
                        .usage = usage()});
  } catch (...) {
  }
}

void Completion::finish() {
  note(200, is_cancelled_ ? "cancelled" : name_of(choices_.front().told.end));
  if (setup_.request.streams) {
    tell(format_->finish(usage()));
    reply_->close();
    return;
  }
  std::vector<const AnswerChoice*> told;
  for (size_t prompt = 0; prompt < setup_.prompts.size(); ++prompt) {
    const AnswerChoice& first = choices_[first_choice(prompt)].told;
    for (const size_t index : told_choices(prompt)) {
      if (index != first_choice(prompt)) choices_[index].told.prompt_tokens = first.prompt_tokens;
      told.push_back(&choices_[index].told);
    }
  }
  reply_->finish({.body = one_line(format_->whole(told, usage())), .headers = setup_.headers});
}

/// Those of a prompt, or the best of them where not all are told.
std::vector<size_t> Completion::told_choices(size_t prompt) const {
  const auto num_choices = static_cast<size_t>(setup_.request.num_choices);
  std::vector<size_t> indices(num_choices);
  std::iota(indices.begin(), indices.end(), first_choice(prompt));
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
  note(has_begun_stream_ ? 200 : error.status(), "failed");
  if (!has_begun_stream_) {
    HttpResponse response = format_->refuse(error);
    response.headers = setup_.headers;
    reply_->finish(std::move(response));
    return;
  }
  tell(format_->fail(error));
  reply_->close();
}

// ---- What the client gets

/// How many tokens the text so far is made of; of an answer that has ended, all but the stop token.
size_t Completion::num_settled(const Choice& choice, const SampleSummary* summary) const {
  const size_t num_tokens = choice.text.num_tokens();
  const bool has_stop_token = summary != nullptr && summary->end == SampleEnd::kStopToken;
  return std::min(num_tokens, choice.tokens.size() - (has_stop_token ? 1 : 0));
}

/// Those that have become part of the text since the last call, if their logprobs are wanted.
std::vector<ToldToken> Completion::new_tokens(Choice& choice, size_t num_settled) const {
  std::vector<ToldToken> tokens;
  if (!setup_.request.logprobs) return tokens;
  for (; choice.num_told < num_settled; ++choice.num_told) {
    tokens.push_back({choice.tokens[choice.num_told], choice.text_offset});
    choice.text_offset += num_characters(choice.text.text_of_token(choice.num_told));
  }
  if (!setup_.request.streams)
    choice.told.tokens.insert(choice.told.tokens.end(), tokens.begin(), tokens.end());
  return tokens;
}

/// Of the tokens that have come since the last call, if their ids are wanted.
std::vector<int32_t> Completion::new_ids(Choice& choice) const {
  std::vector<int32_t> ids;
  for (; setup_.request.token_ids && choice.num_ids < choice.tokens.size(); ++choice.num_ids)
    ids.push_back(choice.tokens[choice.num_ids].id);
  return ids;
}

void Completion::tell(const std::string& bytes) {
  if (!has_begun_stream_) begin_stream();
  if (!bytes.empty()) reply_->put(bytes);
}

void Completion::tell_piece(size_t index, AnswerPiece piece) {
  Choice& choice = choices_[index];
  if (!choice.has_begun) tell(format_->begin_choice(index, choice.told));
  choice.has_begun = true;
  if (piece.reasoning.empty() && piece.content.empty() && piece.tokens.empty()) return;
  piece.token_ids = new_ids(choice);
  tell(format_->piece(index, piece));
}

AnswerUsage Completion::usage() const {
  AnswerUsage usage;
  for (const std::vector<int32_t>& prompt : setup_.prompts) usage.num_prompt += prompt.size();
  size_t num_reasoning = 0;
  for (const Choice& choice : choices_) {
    usage.num_generated += choice.tokens.size();
    num_reasoning += choice.num_reasoning;
  }
  if (setup_.reasoning != ReasoningState::kNone) usage.num_reasoning = num_reasoning;
  usage.num_cached =
      std::min(std::accumulate(num_cached_.begin(), num_cached_.end(), size_t{0}), usage.num_prompt);
  const Clock::time_point now = Clock::now();
  usage.prompt_s = seconds_between(asked_, first_token_.value_or(now));
  usage.generation_s = seconds_between(first_token_.value_or(now), now);
  return usage;
}

}  // namespace soliton
