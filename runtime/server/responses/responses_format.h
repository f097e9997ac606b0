// Answers as /v1/responses tells them: a list of items, each of which streams as events of its own.
#pragma once

#include <functional>

#include "runtime/server/answer_format.h"
#include "runtime/text/tokenizer.h"

namespace soliton {

struct ResponsesFormatOptions {
  std::string model;
  nlohmann::ordered_json settings;  // of the request, that are told
  /// Keeps the response, and the message that the answer is.
  std::function<void(const std::string& id, const nlohmann::ordered_json& response,
                     const nlohmann::ordered_json& message)>
      keep = {};
};

class ResponsesFormat : public AnswerFormat {
 public:
  using Options = ResponsesFormatOptions;

  /// The tokenizer must outlive it.
  ResponsesFormat(const Tokenizer& tokenizer, Options options)
      : tokenizer_(tokenizer), options_(std::move(options)) {}

  const std::string& id() const override { return id_; }
  HttpResponse refuse(const ApiError& error) const override { return error.response(); }
  Json whole(std::span<const AnswerChoice* const> choices, const AnswerUsage& usage) override;
  std::string begin(const AnswerUsage& usage) override;
  std::string progress(const PromptProgress&) override { return {}; }
  std::string begin_choice(size_t, const AnswerChoice&) override { return {}; }
  std::string piece(size_t index, const AnswerPiece& piece) override;
  std::string end_choice(size_t index, const AnswerChoice& choice) override;
  std::string finish(const AnswerUsage& usage) override;
  std::string fail(const ApiError& error) override;

 private:
  Json response(const char* status) const;
  Json completed(const AnswerUsage& usage);
  std::string event(const char* name, Json members);
  std::string item_event(const char* name, Json members);
  std::string open_item(const std::string& type, const char* prefix);
  std::string close_item();
  std::string call_events(const ToldCall& call);
  Json part_of_item() const;
  Json item(const char* status) const;

  const Tokenizer& tokenizer_;
  Options options_;
  std::string id_ = random_id("resp_");
  int64_t created_ = unix_time();
  int num_events_ = 0;
  Json output_ = Json::array();  // items that have ended
  // The item that is being told:
  std::string open_ = {};  // its type; empty: none
  std::string item_id_ = {};
  std::string text_ = {};
  Json logprobs_ = Json::array();
  bool is_cut_ = false;  // the answer, by its length
  Json message_ = {};    // that the answer is
};

}  // namespace soliton
