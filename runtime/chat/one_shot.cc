#include "runtime/chat/one_shot.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "models/error.h"
#include "models/printing.h"
#include "runtime/answer/beam_search.h"
#include "runtime/answer/generator.h"
#include "runtime/chat/answer_grammar.h"
#include "runtime/chat/answer_report.h"
#include "runtime/chat/console.h"
#include "runtime/chat/interrupt.h"
#include "runtime/chat/open_generator.h"
#include "runtime/chat/parallel.h"
#include "runtime/chat/prompt_bar.h"

namespace soliton {
namespace {

/// What all ways to decode are given.
struct Task {
  const Options& options;
  const TextSide& text;
  std::vector<int32_t> prompt;
  int context;
  int num_tokens;                         // to generate at most
  std::shared_ptr<TokenGrammar> grammar;  // of the answer; null: any text
};

bool was_interrupted(const AnswerStream& stream, const Task& task) {
  return stream.finish_reason(task.num_tokens) == FinishReason::kInterrupted;
}

/// Shows how much of the prompt is read.
std::function<void(size_t)> shown_by(PromptBar& bar, const Task& task) {
  return [&bar, num_tokens = task.prompt.size()](size_t num_read) { bar.show(num_read, num_tokens); };
}

AnswerReport complete_one(std::unique_ptr<Engine> engine, const Task& task) {
  const std::unique_ptr<Generator> generator =
      open_generator(task.options, task.text, std::move(engine), task.context, task.grammar);
  AnswerStream stream = open_stream(task.options, task.text);
  PromptBar bar;
  PromptClock clock;
  const Generated result = generator->generate({.prompt = task.prompt,
                                                .max_tokens = task.num_tokens,
                                                .stop_tokens = task.text.style.stop_tokens,
                                                .sampling = task.text.sampling,
                                                .goes_on = wants_answer,
                                                .on_fed = shown_by(bar, task)},
                                               [&](const ChosenToken& token) {
                                                 bar.clear();
                                                 clock.stop();
                                                 stream.push(token);
                                                 return !stream.hit_stop() && wants_answer();
                                               });
  bar.clear();
  stream.finish();
  note_logprobs(stream, task.options, task.text);
  AnswerReport report{.timing = {.prompt_tokens = task.prompt.size(),
                                 .generated = result.tokens.size(),
                                 .first_step = std::min(result.first_step, result.tokens.size()),
                                 .prompt_s = clock.seconds(),
                                 .generation_s = generation_seconds(result.times_ns)},
                      .num_generated = stream.num_generated(),
                      .json = json_of(stream, task.options, task.text, task.num_tokens),
                      .was_interrupted = was_interrupted(stream, task),
                      .remark = drafts_remark(result)};
  if (task.options.num_drafts > 0) report.json["steps"] = result.num_steps;
  return report;
}

/// Ends the samples and adds them to the report; puts each on stdout under a line of its own if text is wanted.
void finish_samples(std::vector<AnswerStream>& streams, const Task& task, AnswerReport& report) {
  Json& list = report.json["samples"] = Json::array();
  for (size_t i = 0; i < streams.size(); ++i) {
    AnswerStream& stream = streams[i];
    const uint32_t seed = task.text.sampling.seed + static_cast<uint32_t>(i);
    stream.finish();
    if (shows_text(task.options)) {
      print(fmt::format("--- sample {} (seed {})\n", i, seed));
      print_answer(stream.text() + "\n");
    }
    note_logprobs(stream, task.options, task.text);
    Json json = json_of(stream, task.options, task.text, task.num_tokens);
    json["seed"] = seed;
    list.push_back(std::move(json));
    report.num_generated += stream.num_generated();
    if (was_interrupted(stream, task)) report.was_interrupted = true;
  }
}

/// Several samples, which go on together until the last one has ended.
AnswerReport complete_samples(std::unique_ptr<Engine> engine, const Task& task) {
  const auto num_samples = static_cast<size_t>(task.options.num_samples);
  std::vector<AnswerStream> streams;
  for (size_t i = 0; i < num_samples; ++i) streams.push_back(open_stream(task.options, task.text, i));
  PromptBar bar;
  PromptClock clock;
  const auto take = [&](int sample, const ChosenToken& token) {
    bar.clear();
    clock.stop();
    streams[static_cast<size_t>(sample)].push(token);
    return wants_answer() &&
           !std::all_of(streams.begin(), streams.end(), std::mem_fn(&AnswerStream::hit_stop));
  };
  const ParallelResult result = decode_parallel(*engine,
                                                {.prompt = task.prompt,
                                                 .num_samples = task.options.num_samples,
                                                 .max_tokens = task.num_tokens,
                                                 .sampling = task.text.sampling,
                                                 .stop_tokens = task.text.style.stop_tokens,
                                                 .prompt_watch = {wants_answer, shown_by(bar, task)}},
                                                take);
  bar.clear();
  AnswerReport report{.timing = {.prompt_tokens = task.prompt.size(),
                                 .generated = result.num_tokens(),
                                 .first_step = result.samples.size(),
                                 .prompt_s = clock.seconds(),
                                 .generation_s = generation_seconds(result.times_ns)},
                      .json = {},
                      .remark = fmt::format(" | {} samples", num_samples)};
  finish_samples(streams, task, report);
  return report;
}

/// The best of several beams is the answer; JSON has them all.
AnswerReport complete_beams(std::unique_ptr<Engine> engine, const Task& task) {
  PromptBar bar;
  PromptClock clock;
  const BeamResult result = decode_beams(*engine,
                                         {.prompt = task.prompt,
                                          .num_beams = task.options.num_beams,
                                          .max_tokens = task.num_tokens,
                                          .length_penalty = task.options.length_penalty,
                                          .stop_tokens = task.text.style.stop_tokens,
                                          .on_fed = shown_by(bar, task)},
                                         wants_answer);
  bar.clear();
  clock.stop();
  const double generation_s = generation_seconds(result.times_ns);
  AnswerReport report{
      .timing = {.prompt_tokens = task.prompt.size(),
                 .first_step = 1,
                 .prompt_s = clock.seconds() - generation_s,
                 .generation_s = generation_s},
      .json = {},
      .was_interrupted = result.was_interrupted,
      .remark = fmt::format(" | {} beams, {} steps", task.options.num_beams, result.times_ns.size())};
  Json beams = Json::array();
  for (const Beam& beam : result.beams) {
    AnswerStream stream = open_stream(task.options, task.text, beams.size());
    for (const int32_t token : beam.tokens) stream.push({token});
    stream.finish();
    if (beams.empty()) {
      if (shows_text(task.options)) print_answer(stream.text() + "\n");
      report.json = json_of(stream, task.options, task.text, task.num_tokens);
      report.num_generated = stream.num_generated();
      report.timing.generated = beam.tokens.size();
    }
    Json json = json_of(stream, task.options, task.text, task.num_tokens);
    json["score"] = json_logprob(beam.score);
    beams.push_back(std::move(json));
  }
  report.json["beams"] = std::move(beams);
  return report;
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
  return print_report(complete(std::move(engine), task), options);
}

}  // namespace soliton
