// Answers as Anthropic's API tells them: one message of blocks.
#pragma once

#include "runtime/server/answer_format.h"

namespace soliton {

class MessagesFormat : public AnswerFormat {
 public:
  explicit MessagesFormat(std::string model) : model_(std::move(model)) {}

  const std::string& id() const override { return id_; }
  HttpResponse refuse(const ApiError& error) const override;
  Json whole(std::span<const AnswerChoice* const> choices, const AnswerUsage& usage) override;
  std::string begin(const AnswerUsage& usage) override;
  std::string progress(const PromptProgress& progress) override;
  std::string begin_choice(size_t, const AnswerChoice&) override { return {}; }
  std::string piece(size_t index, const AnswerPiece& piece) override;
  std::string end_choice(size_t index, const AnswerChoice& choice) override;
  std::string finish(const AnswerUsage& usage) override;
  std::string fail(const ApiError& error) override;

 private:
  Json frame() const;
  std::string open_block(const std::string& type, Json block);
  std::string delta(const char* type, const char* member, const std::string& text) const;
  std::string close_block();

  std::string model_;
  std::string id_ = random_id("msg_");
  size_t num_blocks_ = 0;  // of a stream, that have begun
  std::string open_ = {};  // type of the one that has not ended
  Json end_ = nullptr;     // why it ended
};

}  // namespace soliton
