#include "runtime/chat/answer_report.h"

#include <cmath>

#include "models/model_config.h"
#include "runtime/chat/console.h"
#include "runtime/chat/interrupt.h"
#include "runtime/program/program.h"

namespace soliton {
namespace {

/// A time or rate with the digits that mean something.
double json_number(double value, double per_unit) {
  return std::round(value * per_unit) / per_unit;
}

/// The answers between what they are of and what they took.
Json json_of(const AnswerReport& report, const Options& options) {
  constexpr double kMsPerS = 1e3;
  constexpr double kThousandths = 1e3;
  constexpr double kHundredths = 1e2;
  const Timing& timing = report.timing;
  Json usage = {{"prompt_tokens", timing.prompt_tokens},
                {"completion_tokens", report.num_generated},
                {"total_tokens", timing.prompt_tokens + report.num_generated}};
  if (timing.cached_tokens > 0) usage["prompt_tokens_details"] = {{"cached_tokens", timing.cached_tokens}};
  Json json = {{"model", model_name_of(options.model)}};
  json.update(report.json);
  json.update({{"usage", std::move(usage)},
               {"prompt_n", timing.prompt_tokens - timing.cached_tokens},
               {"prompt_ms", json_number(timing.prompt_s * kMsPerS, kThousandths)},
               {"predicted_n", timing.generated},
               {"predicted_ms", json_number(timing.generation_s * kMsPerS, kThousandths)},
               {"predicted_per_second", json_number(timing.generation_rate(), kHundredths)}});
  return json;
}

}  // namespace

bool shows_text(const Options& options) {
  return !options.json && !options.jsonl;
}

AnswerStream open_stream(const Options& options, const TextSide& text, std::optional<size_t> index) {
  const bool shows_at_once = !index && shows_text(options);  // several would be mixed
  const Shown shown = options.jsonl ? Shown::kTokens : (shows_at_once ? Shown::kText : Shown::kNothing);
  return AnswerStream(text.tokenizer, text.style, shown, index);
}

Json json_of(const AnswerStream& stream, const Options& options, const TextSide& text, int max_tokens) {
  Json json;
  const bool is_told = options.jsonl;
  if (!is_told) json["content"] = stream.text();
  json["finish_reason"] = name_of(stream.finish_reason(max_tokens));
  if (!is_told) json["tokens"] = stream.tokens();
  if (is_told || !text.sampling.logprobs) return json;
  Json& logprobs = json["logprobs"] = Json::array();
  for (const float logprob : stream.logprobs()) logprobs.push_back(json_logprob(logprob));
  return json;
}

void note_logprobs(const AnswerStream& stream, const Options& options, const TextSide& text) {
  if (shows_text(options)) print_logprobs(text.tokenizer, stream.tokens(), stream.logprobs());
}

int print_report(const AnswerReport& report, const Options& options) {
  if (!shows_text(options)) print_json(json_of(report, options));
  flush_stdout();
  print_note(statistics(report.timing, report.remark));
  if (!report.was_interrupted) return 0;
  print_note(kStoppedNote);
  return kInterruptedStatus;
}

}  // namespace soliton
