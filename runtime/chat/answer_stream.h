// One answer to a prompt on its way to stdout: as text, as a JSON object for each token, or as nothing until it is
// complete.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/answer/answer_text.h"
#include "runtime/engine/chosen_token.h"

namespace soliton {

/// What is shown of an answer while it comes.
enum class Shown { kNothing, kText, kTokens };

/// With a stop string in sight, text and tokens are held back until it is known that they belong to the answer.
class AnswerStream {
 public:
  /// `index` is that of the sample, if there are several. The Tokenizer must outlive it.
  AnswerStream(const Tokenizer& tokenizer, const AnswerStyle& style, Shown shown,
               std::optional<size_t> index = {})
      : answer_(tokenizer, style), shown_(shown), index_(index) {}

  /// Once a stop string has come nothing more belongs to the answer.
  void push(const ChosenToken& token);
  void finish();

  bool hit_stop() const { return answer_.hit_stop(); }
  const std::string& text() const { return answer_.text(); }
  /// What text() is made of.
  std::vector<int32_t> tokens() const;
  /// Of these; empty if they were not asked for.
  std::vector<float> logprobs() const;
  /// Tokens that were generated for it, a stop string's too.
  size_t num_generated() const { return tokens_.size(); }
  /// Why it ended, after finish(); `max_tokens` were allowed.
  FinishReason finish_reason(int max_tokens) const { return answer_.finish_reason(max_tokens); }

 private:
  std::span<const ChosenToken> settled() const { return std::span(tokens_).first(answer_.num_tokens()); }
  void show(std::string_view piece);
  void show_token(size_t index) const;

  AnswerText answer_;
  Shown shown_;
  std::optional<size_t> index_;
  std::vector<ChosenToken> tokens_;
  size_t num_shown_ = 0;  // tokens
};

/// Writes a JSON object as one line to stdout at once.
void print_json(const nlohmann::ordered_json& object);

}  // namespace soliton
