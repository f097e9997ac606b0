// Answers as Ollama tells them: one object, or a line for each piece.
#pragma once

#include "runtime/server/answer_format.h"
#include "runtime/text/tokenizer.h"

namespace soliton {

class OllamaFormat : public AnswerFormat {
 public:
  /// Of /api/chat, else of /api/generate. The tokenizer must outlive it.
  OllamaFormat(const Tokenizer& tokenizer, std::string model, bool is_chat)
      : tokenizer_(tokenizer), model_(std::move(model)), is_chat_(is_chat) {}

  const std::string& id() const override { return id_; }
  HttpResponse refuse(const ApiError& error) const override;
  Json whole(std::span<const AnswerChoice* const> choices, const AnswerUsage& usage) override;
  std::string stream_type() const override { return "application/x-ndjson"; }
  std::string begin(const AnswerUsage&) override { return {}; }
  std::string progress(const PromptProgress&) override { return {}; }
  std::string begin_choice(size_t, const AnswerChoice&) override { return {}; }
  std::string piece(size_t index, const AnswerPiece& piece) override;
  std::string end_choice(size_t index, const AnswerChoice& choice) override;
  std::string finish(const AnswerUsage& usage) override;
  std::string fail(const ApiError& error) override;

 private:
  Json object(const std::string& content, const std::string& reasoning, std::span<const ToldCall> calls,
              std::span<const ToldToken> tokens) const;
  void end(Json& last, const AnswerUsage& usage) const;

  const Tokenizer& tokenizer_;
  std::string model_;
  std::string id_ = random_id("ollama-");  // which no client is told
  bool is_chat_;
  bool is_cut_ = false;  // by its length
};

}  // namespace soliton
