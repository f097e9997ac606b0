#include "runtime/chat/session.h"

#include <algorithm>

#include "models/error.h"

namespace soliton {
namespace {

/// With one more message of the user, as it will have when it goes on.
Conversation going_on(Conversation conversation) {
  conversation.turns.push_back("x");
  return conversation;
}

AnswerEnd end_of(const Generated& generated, const AnswerText& text, bool wanted, bool fills_context) {
  if (generated.hit_stop_token || text.hit_stop()) return AnswerEnd::kDone;
  if (generated.tokens.empty() || (!wanted && text.text().empty())) return AnswerEnd::kNothing;
  if (!wanted) return AnswerEnd::kInterrupted;
  return fills_context ? AnswerEnd::kContext : AnswerEnd::kNumTokens;
}

}  // namespace

Session::Session(const Tokenizer& tokenizer, const Prompter& prompter, Generator& generator, Setup setup)
    : tokenizer_(tokenizer),
      prompter_(prompter),
      generator_(generator),
      style_(std::move(setup.style)),
      settings_(std::move(setup.settings)),
      reasoning_tags_(find_reasoning_tags(prompter)) {
  generator_.check(settings_.sampling);
  if (setup.system) set_system(*setup.system);
}

/// Throws unless an answer of one token fits behind it.
std::vector<int32_t> Session::prompt_of(const Conversation& conversation) const {
  if (conversation.system && !prompter_.has_template()) {
    throw Error(ExitCode::kUsage, "system prompt: expected a model with a chat template, got one without");
  }
  std::vector<int32_t> prompt = prompter_.prompt(conversation);
  if (prompt.size() > static_cast<size_t>(context())) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("context: expected a conversation of at most {} tokens (see -c), got {}",
                            context(), prompt.size()));
  }
  return prompt;
}

Answer Session::ask(const std::string& message, const OnText& on_text, const OnRead& on_read) {
  Conversation asked = conversation_;
  asked.turns.push_back(message);
  num_repeats_ = 0;
  return answer(std::move(asked), on_text, on_read);
}

Answer Session::answer_again(const OnText& on_text, const OnRead& on_read) {
  if (conversation_.turns.empty()) {
    throw Error(ExitCode::kUsage, "/regen: expected an answer before it, got none");
  }
  Conversation asked = conversation_;
  asked.turns.pop_back();
  ++num_repeats_;
  return answer(std::move(asked), on_text, on_read);
}

Answer Session::answer(Conversation asked, const OnText& on_text, const OnRead& on_read) {
  const std::vector<int32_t> prompt = prompt_of(asked);
  const int room = context() - static_cast<int>(prompt.size()) + 1;  // the last token is not fed
  const int max_tokens = std::min(settings_.num_tokens.value_or(room), room);
  Sampling sampling = settings_.sampling;
  sampling.seed += num_repeats_;

  if (reasoning_tags_) {
    constexpr size_t kMostTagTokens = 32;  // that a prompt may end with
    const size_t num_last = std::min(prompt.size(), kMostTagTokens);
    reasoning_ = reasoning_state(*reasoning_tags_, tokenizer_.decode(std::span(prompt).last(num_last)));
  }
  AnswerText text(tokenizer_, style_);
  std::vector<float> logprobs;
  bool wanted = true;
  PromptClock clock;
  const Generated generated = generator_.generate({.prompt = prompt,
                                                   .max_tokens = max_tokens,
                                                   .stop_tokens = style_.stop_tokens,
                                                   .sampling = sampling,
                                                   .goes_on = [&] { return wanted = on_text({}); },
                                                   .on_fed =
                                                       [&](size_t num_fed) {
                                                         if (on_read) on_read(num_fed, prompt.size());
                                                       }},
                                                  [&](const ChosenToken& token) {
                                                    clock.stop();
                                                    if (token.logprob) logprobs.push_back(*token.logprob);
                                                    wanted = on_text(text.push(token.id));
                                                    return wanted && !text.hit_stop();
                                                  });
  on_text(text.finish());
  Answer answer{.text = text.text(),
                .end = end_of(generated, text, wanted, max_tokens == room),
                .timing = {.prompt_tokens = prompt.size(),
                           .cached_tokens = generated.num_cached,
                           .generated = generated.tokens.size(),
                           .first_step = generated.first_step,
                           .prompt_s = clock.seconds(),
                           .generation_s = generation_seconds(generated.times_ns)},
                .tokens = generated.tokens,
                .logprobs = std::move(logprobs),
                .remark = drafts_remark(generated)};
  answer.tokens.resize(text.num_tokens());
  answer.logprobs.resize(std::min(answer.logprobs.size(), text.num_tokens()));
  if (answer.end == AnswerEnd::kNothing) return answer;
  asked.turns.push_back(kept_answer(reasoning_tags_, answer.text));
  conversation_ = std::move(asked);
  last_ = answer.timing;
  return answer;
}

std::optional<ReasoningReader> Session::reasoning_reader() const {
  constexpr bool kKeepsTags = true;
  if (reasoning_ == ReasoningState::kNone) return std::nullopt;
  return ReasoningReader(*reasoning_tags_, reasoning_, kKeepsTags);
}

void Session::clear() {
  conversation_.turns.clear();
}

void Session::set_system(const std::string& text) {
  Conversation changed = conversation_;
  changed.system = text.empty() ? std::nullopt : std::optional(text);
  prompt_of(going_on(changed));  // throws
  conversation_ = std::move(changed);
}

void Session::set(const std::string& name, const std::string& value) {
  Settings changed = settings_;
  changed.set(name, value);
  generator_.check(changed.sampling);
  settings_ = changed;
}

void Session::save(const std::filesystem::path& path) const {
  save_conversation(conversation_, path);
}

void Session::load(const std::filesystem::path& path) {
  Conversation loaded = load_conversation(path);
  prompt_of(going_on(loaded));  // throws
  conversation_ = std::move(loaded);
}

std::vector<std::string> Session::statistics_lines() const {
  const size_t num_turns = conversation_.turns.size();
  std::vector<std::string> lines = {fmt::format("conversation: {} question{} and answer{}{}", num_turns / 2,
                                                num_turns == 2 ? "" : "s", num_turns == 2 ? "" : "s",
                                                conversation_.system ? " behind a system prompt" : "")};
  if (!last_) return lines;
  constexpr double kMsPerS = 1e3;
  lines.push_back(fmt::format(
      "context: {} {}", last_->prompt_tokens + last_->generated,
      context() == Generator::kNoEnd ? "tokens, without end" : fmt::format("of {} tokens", context())));
  lines.push_back(
      fmt::format("last answer: prompt of {} tokens, {} of them kept, in {:.0f} ms; {} tokens in {:.0f} ms",
                  last_->prompt_tokens, last_->cached_tokens, last_->prompt_s * kMsPerS, last_->generated,
                  last_->generation_s * kMsPerS));
  return lines;
}

}  // namespace soliton
