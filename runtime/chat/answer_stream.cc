#include "runtime/chat/answer_stream.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "models/printing.h"
#include "runtime/chat/console.h"

namespace soliton {

void AnswerStream::push(const ChosenToken& token) {
  if (hit_stop()) return;
  tokens_.push_back(token);
  show(answer_.push(token.id));
}

void AnswerStream::finish() {
  show(answer_.finish());
  if (shown_ == Shown::kText) print_answer("\n");
}

std::vector<int32_t> AnswerStream::tokens() const {
  std::vector<int32_t> ids;
  for (const ChosenToken& token : settled()) ids.push_back(token.id);
  return ids;
}

std::vector<float> AnswerStream::logprobs() const {
  std::vector<float> logprobs;
  for (const ChosenToken& token : settled()) {
    if (token.logprob) logprobs.push_back(*token.logprob);
  }
  return logprobs;
}

/// Shows what is new: the text, or the tokens that have become part of it.
void AnswerStream::show(std::string_view piece) {
  if (shown_ == Shown::kText) print_answer(piece);
  if (shown_ != Shown::kTokens) return;
  for (const size_t num_settled = answer_.num_tokens(); num_shown_ < num_settled; ++num_shown_)
    show_token(num_shown_);
}

void AnswerStream::show_token(size_t index) const {
  const ChosenToken& token = tokens_[index];
  nlohmann::ordered_json object = {{"text", answer_.text_of_token(index)}, {"token", token.id}};
  if (token.logprob) object["logprob"] = json_logprob(*token.logprob);
  if (index_) object["index"] = *index_;
  print_json(object);
}

void print_json(const nlohmann::ordered_json& object) {
  constexpr int kOneLine = -1;
  print(object.dump(kOneLine, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  std::fflush(stdout);
}

}  // namespace soliton
