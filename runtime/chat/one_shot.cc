#include "runtime/chat/one_shot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "models/error.h"
#include "models/model_config.h"
#include "runtime/chat/answer_grammar.h"
#include "runtime/chat/answer_stream.h"
#include "runtime/chat/beam_search.h"
#include "runtime/chat/console.h"
#include "runtime/chat/generator.h"
#include "runtime/chat/interrupt.h"
#include "runtime/chat/open_draft.h"
#include "runtime/chat/parallel.h"
#include "runtime/program.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

/// What all ways to decode are given.
struct Task {
  const Options& options;
  const TextSide& text;
  std::vector<int32_t> prompt;
  int context;
  int num_tokens;                         // to generate at most
  std::shared_ptr<TokenGrammar> grammar;  // of the answer; null: any text
};

/// What has been decoded: for the statistics, and as JSON.
struct Completion {
  Timing timing;
  size_t num_generated = 0;  // until each answer ended
  Json json;                 // without statistics
  bool was_interrupted = false;
  std::string remark = {};  // at the end of the statistics
};

bool shows_text(const Options& options) {
  return !options.json && !options.jsonl;
}

AnswerStream stream_of(const Task& task, std::optional<size_t> sample = {}) {
  const bool shows_at_once = !sample && shows_text(task.options);  // samples would be mixed
  const Shown shown = task.options.jsonl ? Shown::kTokens : (shows_at_once ? Shown::kText : Shown::kNothing);
  return AnswerStream(task.text.tokenizer, task.text.style, shown, sample);
}

/// The answer as JSON, of whose tokens lines of their own may have told already.
Json json_of(const AnswerStream& stream, const Task& task) {
  Json json;
  const bool is_told = task.options.jsonl;
  if (!is_told) json["content"] = stream.text();
  json["finish_reason"] = name_of(stream.finish_reason(task.num_tokens));
  if (!is_told) json["tokens"] = stream.tokens();
  if (is_told || !task.text.sampling.logprobs) return json;
  Json& logprobs = json["logprobs"] = Json::array();
  for (const float logprob : stream.logprobs()) logprobs.push_back(json_logprob(logprob));
  return json;
}

/// Notes the logprobs, if they are wanted, where there is no JSON to hold them.
void note_logprobs(const AnswerStream& stream, const Task& task) {
  if (shows_text(task.options)) print_logprobs(task.text.tokenizer, stream.tokens(), stream.logprobs());
}

bool was_interrupted(const AnswerStream& stream, const Task& task) {
  return stream.finish_reason(task.num_tokens) == FinishReason::kInterrupted;
}

Completion complete_one(std::unique_ptr<Engine> engine, const Task& task) {
  std::unique_ptr<Drafter> draft_model = open_draft_model(task.options, task.text, task.context, *engine);
  EngineGenerator generator(std::move(engine), task.context, task.grammar, std::move(draft_model));
  AnswerStream stream = stream_of(task);
  PromptClock clock;
  const Generated result = generator.generate({.prompt = task.prompt,
                                               .max_tokens = task.num_tokens,
                                               .stop_tokens = task.text.style.stop_tokens,
                                               .sampling = task.text.sampling,
                                               .goes_on = [] { return !interrupted(); }},
                                              [&](const ChosenToken& token) {
                                                clock.stop();
                                                stream.push(token);
                                                return !stream.hit_stop() && !interrupted();
                                              });
  stream.finish();
  note_logprobs(stream, task);
  Completion completion{.timing = {.prompt_tokens = task.prompt.size(),
                                   .generated = result.tokens.size(),
                                   .first_step = std::min(result.first_step, result.tokens.size()),
                                   .prompt_s = clock.seconds(),
                                   .generation_s = generation_seconds(result.times_ns)},
                        .num_generated = stream.num_generated(),
                        .json = json_of(stream, task),
                        .was_interrupted = was_interrupted(stream, task),
                        .remark = drafts_remark(result)};
  if (task.options.num_drafts > 0) completion.json["steps"] = result.num_steps;
  return completion;
}

/// Ends the samples and adds them to the completion; puts each on stdout under a line of its own if text is wanted.
void finish_samples(std::vector<AnswerStream>& streams, const Task& task, Completion& completion) {
  Json& list = completion.json["samples"] = Json::array();
  for (size_t i = 0; i < streams.size(); ++i) {
    AnswerStream& stream = streams[i];
    const uint32_t seed = task.text.sampling.seed + static_cast<uint32_t>(i);
    stream.finish();
    if (shows_text(task.options)) {
      fmt::print("--- sample {} (seed {})\n", i, seed);
      print_answer(stream.text() + "\n");
    }
    note_logprobs(stream, task);
    Json json = json_of(stream, task);
    json["seed"] = seed;
    list.push_back(std::move(json));
    completion.num_generated += stream.num_generated();
    if (was_interrupted(stream, task)) completion.was_interrupted = true;
  }
}

/// Several samples, which go on together until the last one has ended.
Completion complete_samples(std::unique_ptr<Engine> engine, const Task& task) {
  const auto num_samples = static_cast<size_t>(task.options.num_samples);
  std::vector<AnswerStream> streams;
  for (size_t i = 0; i < num_samples; ++i) streams.push_back(stream_of(task, i));
  PromptClock clock;
  const auto take = [&](int sample, const ChosenToken& token) {
    clock.stop();
    streams[static_cast<size_t>(sample)].push(token);
    return !interrupted() &&
           !std::all_of(streams.begin(), streams.end(), std::mem_fn(&AnswerStream::hit_stop));
  };
  const ParallelResult result = decode_parallel(*engine,
                                                {.prompt = task.prompt,
                                                 .num_samples = task.options.num_samples,
                                                 .max_tokens = task.num_tokens,
                                                 .sampling = task.text.sampling,
                                                 .stop_tokens = task.text.style.stop_tokens},
                                                take);
  Completion completion{.timing = {.prompt_tokens = task.prompt.size(),
                                   .generated = result.num_tokens(),
                                   .first_step = result.samples.size(),
                                   .prompt_s = clock.seconds(),
                                   .generation_s = generation_seconds(result.times_ns)},
                        .json = {},
                        .remark = fmt::format(" | {} samples", num_samples)};
  finish_samples(streams, task, completion);
  return completion;
}

/// The best of several beams is the answer; JSON has them all.
Completion complete_beams(std::unique_ptr<Engine> engine, const Task& task) {
  PromptClock clock;
  const BeamResult result = decode_beams(*engine,
                                         {.prompt = task.prompt,
                                          .num_beams = task.options.num_beams,
                                          .max_tokens = task.num_tokens,
                                          .length_penalty = task.options.length_penalty,
                                          .stop_tokens = task.text.style.stop_tokens},
                                         [] { return !interrupted(); });
  clock.stop();
  const double generation_s = generation_seconds(result.times_ns);
  Completion completion{
      .timing = {.prompt_tokens = task.prompt.size(),
                 .first_step = 1,
                 .prompt_s = clock.seconds() - generation_s,
                 .generation_s = generation_s},
      .json = {},
      .was_interrupted = result.was_interrupted,
      .remark = fmt::format(" | {} beams, {} steps", task.options.num_beams, result.times_ns.size())};
  Json beams = Json::array();
  for (const Beam& beam : result.beams) {
    AnswerStream stream = stream_of(task, beams.size());
    for (const int32_t token : beam.tokens) stream.push({token});
    stream.finish();
    if (beams.empty()) {
      if (shows_text(task.options)) print_answer(stream.text() + "\n");
      completion.json = json_of(stream, task);
      completion.num_generated = stream.num_generated();
      completion.timing.generated = beam.tokens.size();
    }
    Json json = json_of(stream, task);
    json["score"] = json_logprob(beam.score);
    beams.push_back(std::move(json));
  }
  completion.json["beams"] = std::move(beams);
  return completion;
}

/// A time or rate with the digits that mean something.
double json_number(double value, double per_unit) {
  return std::round(value * per_unit) / per_unit;
}

/// The completion between what it is of and what it took.
Json json_of(const Completion& completion, const Task& task) {
  constexpr double kMsPerS = 1e3;
  constexpr double kThousandths = 1e3;
  constexpr double kHundredths = 1e2;
  const Timing& timing = completion.timing;
  Json json = {{"model", model_name_of(task.options.model)}};
  json.update(completion.json);
  json.update({{"usage",
                {{"prompt_tokens", timing.prompt_tokens},
                 {"completion_tokens", completion.num_generated},
                 {"total_tokens", timing.prompt_tokens + completion.num_generated}}},
               {"prompt_n", timing.prompt_tokens},
               {"prompt_ms", json_number(timing.prompt_s * kMsPerS, kThousandths)},
               {"predicted_n", timing.generated},
               {"predicted_ms", json_number(timing.generation_s * kMsPerS, kThousandths)},
               {"predicted_per_second", json_number(timing.generation_rate(), kHundredths)}});
  return json;
}

/// How many tokens are generated at most: those asked for, else kDefaultTokens, or for one answer by a chat
/// template, and where it is asked for, as many as the context takes. Throws Error (kOutOfMemory) if prompt and tokens do not fit.
int choose_num_tokens(const Options& options, const TextSide& text, size_t prompt_tokens, int context) {
  const auto model_limit = static_cast<size_t>(text.config.facts.max_context);
  const auto cache_limit = static_cast<size_t>(context);
  const bool is_one = options.num_samples == 1 && options.num_beams == 1;
  const bool takes_all = options.fills_context || (text.prompter.has_template() && is_one);
  if (!options.num_tokens && takes_all && prompt_tokens <= cache_limit) {
    return static_cast<int>(cache_limit - prompt_tokens) + 1;  // the last is not fed
  }
  const int num_tokens = options.num_tokens.value_or(takes_all ? 1 : Options::kDefaultTokens);
  const size_t needed = prompt_tokens + static_cast<size_t>(num_tokens) - 1;
  if (needed > model_limit) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("--prompt and --predict: expected at most {}, got {} and {}",
                            show_context_limit(text.config), prompt_tokens, num_tokens));
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

int answer_once(const Options& options, const TextSide& text, const Conversation& question) {
  if (!options.messages_file.empty() && !text.prompter.has_template()) {
    throw Error(
        ExitCode::kUsage,
        fmt::format("--messages: expected a model with a chat template, got {} (--chat-template takes one)",
                    options.model));
  }
  Task task{.options = options,
            .text = text,
            .prompt = text.prompter.prompt(question),
            .context = choose_context(options, text.config),
            .num_tokens = 0,
            .grammar = open_answer_grammar(options, text)};
  task.num_tokens = choose_num_tokens(options, text, task.prompt.size(), task.context);
  auto complete = complete_one;
  int64_t pool_tokens = 0;
  if (options.num_samples > 1) {
    complete = complete_samples;
    pool_tokens = parallel_pool_tokens(task.prompt.size(), options.num_samples, task.num_tokens);
  } else if (options.num_beams > 1) {
    complete = complete_beams;
    pool_tokens = beam_pool_tokens(task.prompt.size(), options.num_beams, task.num_tokens);
  }
  std::unique_ptr<Engine> engine = open_engine(options, text.config, task.context, pool_tokens);

  catch_interrupts();  // until here the first one ends the program
  const InterruptsEnd second_interrupt_ends;
  const Completion completion = complete(std::move(engine), task);
  if (!shows_text(options)) print_json(json_of(completion, task));
  flush_stdout();
  print_note(statistics(completion.timing, completion.remark));
  if (!completion.was_interrupted) return 0;
  print_note(kStoppedNote);
  return kInterruptedStatus;
}

}  // namespace soliton
