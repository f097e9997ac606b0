#include "runtime/chat/answer_text.h"

#include <algorithm>

namespace soliton {

AnswerText::AnswerText(const Tokenizer& tokenizer, const AnswerStyle& style)
    : stop_tokens_(style.stop_tokens), decoder_(tokenizer, style.skips_special), filter_(style.stops) {}

std::string AnswerText::push(int32_t token) {
  if (std::find(stop_tokens_.begin(), stop_tokens_.end(), token) != stop_tokens_.end()) return {};
  return add(filter_.push(decoder_.push(token)));
}

std::string AnswerText::finish() {
  std::string rest = filter_.push(decoder_.finish());
  return add(rest + filter_.finish());
}

std::string AnswerText::add(std::string piece) {
  text_ += piece;
  return piece;
}

}  // namespace soliton
