#include "runtime/chat/answer_text.h"

#include <algorithm>

namespace soliton {

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kStopText:
      return "stop_text";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kInterrupted:
      return "interrupted";
  }
  return {};
}

AnswerText::AnswerText(const Tokenizer& tokenizer, const AnswerStyle& style)
    : stop_tokens_(style.stop_tokens), decoder_(tokenizer, style.skips_special), filter_(style.stops) {}

std::string AnswerText::push(int32_t token) {
  ++num_tokens_;
  hit_stop_token_ = std::find(stop_tokens_.begin(), stop_tokens_.end(), token) != stop_tokens_.end();
  if (hit_stop_token_) return {};
  return add(filter_.push(decoder_.push(token)));
}

std::string AnswerText::finish() {
  std::string rest = filter_.push(decoder_.finish());
  return add(rest + filter_.finish());
}

FinishReason AnswerText::finish_reason(int max_tokens) const {
  if (hit_stop()) return FinishReason::kStopText;
  if (hit_stop_token_) return FinishReason::kStop;
  return num_tokens_ < max_tokens ? FinishReason::kInterrupted : FinishReason::kLength;
}

std::string AnswerText::add(std::string piece) {
  text_ += piece;
  return piece;
}

}  // namespace soliton
