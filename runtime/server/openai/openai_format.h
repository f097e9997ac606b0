// Answers as OpenAI's API for chats and completions tells them.
#pragma once

#include <set>

#include "runtime/server/answer_format.h"
#include "runtime/text/tokenizer.h"

namespace soliton {

struct OpenAiFormatOptions {
  std::string model;  // what answers call it
  bool is_chat = false;
  bool tells_logprobs = false;
  bool tells_ids = false;       // of the tokens of prompts and answers
  bool names_ids = false;       // tokens with logprobs by their ids
  bool includes_usage = false;  // in the last piece of a stream
};

class OpenAiFormat : public AnswerFormat {
 public:
  using Options = OpenAiFormatOptions;

  /// The tokenizer must outlive it.
  OpenAiFormat(const Tokenizer& tokenizer, Options options);

  const std::string& id() const override { return id_; }
  HttpResponse refuse(const ApiError& error) const override { return error.response(); }
  Json whole(std::span<const AnswerChoice* const> choices, const AnswerUsage& usage) override;
  std::string begin(const AnswerUsage&) override { return {}; }
  std::string progress(const PromptProgress& progress) override;
  std::string begin_choice(size_t index, const AnswerChoice& choice) override;
  std::string piece(size_t index, const AnswerPiece& piece) override;
  std::string end_choice(size_t index, const AnswerChoice& choice) override;
  std::string finish(const AnswerUsage& usage) override;
  std::string fail(const ApiError& error) override;

 private:
  /// Of a chunk or a choice, as vLLM tells them; null: no part of it.
  struct TokenIds {
    const std::vector<int32_t>* prompt = nullptr;
    const std::vector<int32_t>* answer = nullptr;
  };

  Json frame(const char* object) const;
  std::string chunk(size_t index, Json members, const Json& logprobs, const Json& finish_reason,
                    const TokenIds& ids) const;
  void add_ids(const TokenIds& ids, Json& whole, Json& choice) const;
  std::string token_name(int32_t id) const;
  Json logprobs(std::span<const ToldToken> tokens) const;
  Json message(const AnswerChoice& choice) const;

  const Tokenizer& tokenizer_;
  Options options_;
  std::string id_;
  int64_t created_ = unix_time();
};

}  // namespace soliton
