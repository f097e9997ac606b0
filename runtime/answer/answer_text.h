// The text of an answer as its tokens come.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/answer/stop_filter.h"
#include "runtime/text/tokenizer.h"

namespace soliton {

/// Why an answer ended.
enum class FinishReason {
  kStop,        // a stop token
  kStopText,    // a stop string
  kLength,      // as many tokens as were allowed
  kInterrupted  // the user wanted no more
};
/// "stop", "stop_text", "length" or "interrupted".
std::string_view name_of(FinishReason reason);

/// How the text of an answer ends and what of it is shown.
struct AnswerStyle {
  std::vector<int32_t> stop_tokens;  // end the answer and are not shown
  std::vector<std::string> stops;    // the same for text
  bool skips_special = false;        // other special tokens are not shown either,
  std::vector<int32_t> shown = {};   // but for these
};

/// Turns tokens into whole characters, up to a stop token or stop string. The Tokenizer must outlive it.
class AnswerText {
 public:
  AnswerText(const Tokenizer& tokenizer, const AnswerStyle& style)
      : AnswerText(tokenizer, style, StopFilter(style.stops)) {}
  /// With a filter of the style's stop strings, of which many answers may have copies.
  AnswerText(const Tokenizer& tokenizer, const AnswerStyle& style, StopFilter filter);

  /// The text that the token completes.
  std::string push(int32_t token);
  /// What was held back.
  std::string finish();
  /// Whether a stop string has come, after which nothing more does.
  bool hit_stop() const { return filter_.stopped(); }
  /// Which one; empty before.
  std::string stop_text() const { return filter_.stop_text(); }
  /// All text so far.
  const std::string& text() const { return text_; }
  /// How many tokens text() is made of: while the answer comes, those whose text has come whole; where a stop string
  /// has cut it, those up to the one that gave its last character; else, after finish(), all.
  size_t num_tokens() const;
  /// The text that one of these tokens completes; empty where a later one does, or there is none.
  std::string_view text_of_token(size_t index) const;
  /// Why it ended, once nothing more comes; `max_tokens` were allowed.
  FinishReason finish_reason(int max_tokens) const;

 private:
  std::string add(std::string piece);
  size_t tokens_of(size_t num_bytes) const;

  std::string decode(int32_t token);

  const Tokenizer& tokenizer_;
  std::vector<int32_t> stop_tokens_;
  std::vector<int32_t> shown_;
  StreamDecoder decoder_;
  StopFilter filter_;
  std::string text_;
  size_t num_decoded_ = 0;    // bytes, some of which the filter may hold back
  std::vector<size_t> ends_;  // [tokens]: num_decoded_ behind each
  bool hit_stop_token_ = false;
  bool finished_ = false;
};

/// A logprob with the digits that a float has.
double json_logprob(float logprob);

}  // namespace soliton
