#include "runtime/chat/one_shot.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "models/error.h"
#include "runtime/chat/console.h"
#include "runtime/chat/generator.h"
#include "runtime/chat/interrupt.h"
#include "runtime/chat/parallel.h"
#include "runtime/program.h"

namespace soliton {
namespace {

/// What all ways to decode are given.
struct Task {
  const Options& options;
  const TextSide& text;
  std::vector<int32_t> prompt;
  int context;
  int num_tokens;  // to generate at most
};

/// What has been decoded: for the statistics, and as JSON without them.
struct Completion {
  Timing timing;
  nlohmann::json json;
  bool was_interrupted = false;
  std::string remark = {};  // at the end of the statistics
};

/// One answer on its way to stdout.
class Stream {
 public:
  explicit Stream(const Task& task)
      : answer_(task.text.tokenizer, task.text.style), shows_(!task.options.json) {}

  /// False if nothing more is wanted.
  bool push(int32_t token) {
    show(answer_.push(token));
    return !answer_.hit_stop() && !interrupted();
  }
  void finish() {
    show(answer_.finish());
    show("\n");
  }
  const AnswerText& answer() const { return answer_; }

 private:
  void show(std::string_view piece) const {
    if (shows_) print_answer(piece);
  }

  AnswerText answer_;
  bool shows_;
};

Completion complete_one(std::unique_ptr<Engine> engine, const Task& task) {
  EngineGenerator generator(std::move(engine), task.context);
  Stream stream(task);
  PromptClock clock;
  const Generated result = generator.generate({.prompt = task.prompt,
                                               .max_tokens = task.num_tokens,
                                               .stop_tokens = task.text.style.stop_tokens,
                                               .sampling = task.text.sampling,
                                               .goes_on = [] { return !interrupted(); }},
                                              [&](int32_t token) {
                                                clock.stop();
                                                return stream.push(token);
                                              });
  stream.finish();
  const FinishReason reason = stream.answer().finish_reason(task.num_tokens);
  Completion completion{.timing = {.prompt_tokens = task.prompt.size(),
                                   .generated = result.tokens.size(),
                                   .first_step = std::min(result.first_step, result.tokens.size()),
                                   .prompt_s = clock.seconds(),
                                   .generation_s = generation_seconds(result.times_ns)},
                        .json = {{"content", stream.answer().text()},
                                 {"finish_reason", name_of(reason)},
                                 {"tokens", result.tokens}},
                        .was_interrupted = reason == FinishReason::kInterrupted,
                        .remark = lookup_remark(result)};
  if (task.options.num_drafts > 0) completion.json["steps"] = result.num_steps;
  if (task.text.sampling.logprobs) {
    completion.json["logprobs"] = result.logprobs;
    if (!task.options.json) print_logprobs(task.text.tokenizer, result.tokens, result.logprobs);
  }
  return completion;
}

/// The tokens of a sample as text, how many of them that took, and why it ended.
struct SampleText {
  std::string text;
  size_t num_tokens;
  FinishReason reason;
};
SampleText text_of(const Sample& sample, const Task& task) {
  AnswerText answer(task.text.tokenizer, task.text.style);
  size_t num_tokens = 0;
  while (num_tokens < sample.tokens.size() && !answer.hit_stop()) answer.push(sample.tokens[num_tokens++]);
  answer.finish();
  return {answer.text(), num_tokens, answer.finish_reason(task.num_tokens)};
}

/// Adds the samples to the completion, and puts each on stdout under a line of its own if text is wanted.
void list_samples(const std::vector<Sample>& samples, const Task& task, Completion& completion) {
  nlohmann::json& list = completion.json["samples"] = nlohmann::json::array();
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    const auto [text, num_tokens, reason] = text_of(sample, task);
    if (!task.options.json) {
      fmt::print("--- sample {} (seed {})\n", i, sample.seed);
      print_answer(text + "\n");
    }
    const std::vector<int32_t> tokens(sample.tokens.begin(),
                                      sample.tokens.begin() + static_cast<ptrdiff_t>(num_tokens));
    list.push_back(
        {{"content", text}, {"finish_reason", name_of(reason)}, {"tokens", tokens}, {"seed", sample.seed}});
    if (reason == FinishReason::kInterrupted) completion.was_interrupted = true;
    if (!task.text.sampling.logprobs) continue;
    const std::vector<float> logprobs(sample.logprobs.begin(),
                                      sample.logprobs.begin() + static_cast<ptrdiff_t>(num_tokens));
    list.back()["logprobs"] = logprobs;
    if (!task.options.json) print_logprobs(task.text.tokenizer, tokens, logprobs);
  }
}

/// Samples go on together until the last one has hit a stop string.
class SampleStops {
 public:
  explicit SampleStops(const Task& task) {
    for (int i = 0; i < task.options.num_samples; ++i)
      answers_.emplace_back(task.text.tokenizer, task.text.style);
  }
  /// False if all have.
  bool push(int sample, int32_t token) {
    AnswerText& answer = answers_[static_cast<size_t>(sample)];
    if (answer.hit_stop()) return num_stopped_ < answers_.size();
    answer.push(token);
    if (answer.hit_stop()) ++num_stopped_;
    return num_stopped_ < answers_.size();
  }

 private:
  std::vector<AnswerText> answers_;
  size_t num_stopped_ = 0;
};

/// Several samples, listed at the end.
Completion complete_samples(std::unique_ptr<Engine> engine, const Task& task) {
  const Options& options = task.options;
  SampleStops stops(task);
  PromptClock clock;
  const ParallelResult result = decode_parallel(*engine,
                                                {.prompt = task.prompt,
                                                 .num_samples = options.num_samples,
                                                 .max_tokens = task.num_tokens,
                                                 .sampling = task.text.sampling,
                                                 .stop_tokens = task.text.style.stop_tokens},
                                                [&](int sample, int32_t token) {
                                                  clock.stop();
                                                  return stops.push(sample, token) && !interrupted();
                                                });
  Completion completion{.timing = {.prompt_tokens = task.prompt.size(),
                                   .generated = result.num_tokens(),
                                   .first_step = result.samples.size(),
                                   .prompt_s = clock.seconds(),
                                   .generation_s = generation_seconds(result.times_ns)},
                        .json = {},
                        .remark = fmt::format(" | {} samples", result.samples.size())};
  list_samples(result.samples, task, completion);
  return completion;
}

void print_json(nlohmann::json json, const Timing& timing) {
  json.update({{"prompt_n", timing.prompt_tokens},
               {"prompt_ms", timing.prompt_s * 1e3},
               {"predicted_n", timing.generated},
               {"predicted_ms", timing.generation_s * 1e3},
               {"predicted_per_second", timing.generation_rate()}});
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// How many tokens are generated at most: those asked for, else kDefaultTokens, or for one answer by a chat
/// template as many as the context takes. Throws Error (kOutOfMemory) if prompt and tokens do not fit.
int choose_num_tokens(const Options& options, const TextSide& text, size_t prompt_tokens, int context) {
  const auto model_limit = static_cast<size_t>(text.config.facts.max_context);
  const auto cache_limit = static_cast<size_t>(context);
  const bool ends_by_itself = text.prompter.has_template() && options.num_samples == 1;
  if (!options.num_tokens && ends_by_itself && prompt_tokens <= cache_limit) {
    return static_cast<int>(cache_limit - prompt_tokens) + 1;  // the last is not fed
  }
  const int num_tokens = options.num_tokens.value_or(ends_by_itself ? 1 : Options::kDefaultTokens);
  const size_t needed = prompt_tokens + static_cast<size_t>(num_tokens) - 1;
  if (needed > model_limit) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("--prompt and --predict: expected at most the model's {} tokens, got {} and {}",
                            model_limit, prompt_tokens, num_tokens));
  }
  if (needed > cache_limit) {
    throw Error(
        ExitCode::kOutOfMemory,
        fmt::format("--ctx-size: expected at least {} ({} tokens of the prompt, {} to generate), got {}",
                    needed, prompt_tokens, num_tokens, context));
  }
  return num_tokens;
}

}  // namespace

int answer_once(const Options& options, const TextSide& text, const std::string& prompt) {
  Conversation conversation{.system = options.system, .turns = {prompt}};
  Task task{.options = options,
            .text = text,
            .prompt = text.prompter.prompt(conversation),
            .context = choose_context(options, text.config.facts),
            .num_tokens = 0};
  task.num_tokens = choose_num_tokens(options, text, task.prompt.size(), task.context);
  const int64_t pool_tokens =
      options.num_samples > 1 ? parallel_pool_tokens(task.prompt.size(), options.num_samples, task.num_tokens)
                              : 0;
  std::unique_ptr<Engine> engine = open_engine(options, text.config, task.context, pool_tokens);

  catch_interrupts();  // until here the first one ends the program
  const InterruptsEnd second_interrupt_ends;
  const Completion completion =
      (options.num_samples > 1 ? complete_samples : complete_one)(std::move(engine), task);
  if (options.json) print_json(completion.json, completion.timing);
  flush_stdout();
  print_note(statistics(completion.timing, completion.remark));
  if (!completion.was_interrupted) return 0;
  print_note(kStoppedNote);
  return kInterruptedStatus;
}

}  // namespace soliton
