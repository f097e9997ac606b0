#include "runtime/answer/answer_text.h"

#include <algorithm>
#include <utility>

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

AnswerText::AnswerText(const Tokenizer& tokenizer, const AnswerStyle& style, StopFilter filter)
    : tokenizer_(tokenizer),
      stop_tokens_(style.stop_tokens),
      shown_(style.shown),
      decoder_(tokenizer, style.skips_special),
      filter_(std::move(filter)) {}

std::string AnswerText::decode(int32_t token) {
  if (std::find(shown_.begin(), shown_.end(), token) == shown_.end()) return decoder_.push(token);
  return decoder_.finish() + tokenizer_.piece(token);
}

std::string AnswerText::push(int32_t token) {
  ends_.push_back(num_decoded_);
  hit_stop_token_ = std::find(stop_tokens_.begin(), stop_tokens_.end(), token) != stop_tokens_.end();
  if (hit_stop_token_) return {};
  const std::string piece = decode(token);
  ends_.back() = num_decoded_ += piece.size();
  return add(filter_.push(piece));
}

std::string AnswerText::finish() {
  const std::string piece = decoder_.finish();
  num_decoded_ += piece.size();
  if (!ends_.empty()) ends_.back() = num_decoded_;
  finished_ = true;
  const std::string rest = filter_.push(piece);
  return add(rest + filter_.finish());
}

/// The fewest first tokens that give so many bytes.
size_t AnswerText::tokens_of(size_t num_bytes) const {
  if (num_bytes == 0) return 0;
  return static_cast<size_t>(std::lower_bound(ends_.begin(), ends_.end(), num_bytes) - ends_.begin()) + 1;
}

size_t AnswerText::num_tokens() const {
  if (hit_stop()) return tokens_of(text_.size());
  if (finished_) return ends_.size();
  const auto behind = std::upper_bound(ends_.begin(), ends_.end(), text_.size());
  return behind == ends_.begin() ? 0 : tokens_of(behind[-1]);
}

std::string_view AnswerText::text_of_token(size_t index) const {
  const size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(text_).substr(begin, ends_[index] - begin);
}

FinishReason AnswerText::finish_reason(int max_tokens) const {
  if (hit_stop()) return FinishReason::kStopText;
  if (hit_stop_token_) return FinishReason::kStop;
  return ends_.size() < static_cast<size_t>(max_tokens) ? FinishReason::kInterrupted : FinishReason::kLength;
}

std::string AnswerText::add(std::string piece) {
  text_ += piece;
  return piece;
}

double json_logprob(float logprob) {
  constexpr double kPerUnit = 1e6;
  return std::round(static_cast<double>(logprob) * kPerUnit) / kPerUnit + 0.0;  // no negative zero
}

}  // namespace soliton
