// What is said at the end of answers that were asked for once: JSON on stdout if it is wanted, and statistics on stderr.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "runtime/answer/model.h"
#include "runtime/answer/timing.h"
#include "runtime/chat/answer_stream.h"
#include "runtime/chat/options.h"

namespace soliton {

using Json = nlohmann::ordered_json;

/// What has been decoded: for the statistics, and as JSON.
struct AnswerReport {
  Timing timing;
  size_t num_generated = 0;  // until each answer ended
  Json json;                 // without statistics
  bool was_interrupted = false;
  std::string remark = {};  // at the end of the statistics
};

/// Whether answers are text on stdout, and not JSON.
bool shows_text(const Options& options);

/// An answer as the flags want it shown; several, which have an index, are not shown as text before they end.
AnswerStream open_stream(const Options& options, const TextSide& text, std::optional<size_t> index = {});

/// An answer that has ended as JSON, of whose tokens lines of their own may have told already.
Json json_of(const AnswerStream& stream, const Options& options, const TextSide& text, int max_tokens);

/// Notes the logprobs, if they are wanted, where there is no JSON to hold them.
void note_logprobs(const AnswerStream& stream, const Options& options, const TextSide& text);

/// Ends the output. Returns the exit status: 0, or kInterruptedStatus.
int print_report(const AnswerReport& report, const Options& options);

}  // namespace soliton
