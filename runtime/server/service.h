// Who may ask the server for something, and what the APIs have answered: each has a folder of its own, see routes.h.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/answer/model.h"
#include "runtime/server/calls/chat_syntax.h"
#include "runtime/server/completion.h"
#include "runtime/server/page/page.h"
#include "runtime/server/request_pool.h"
#include "runtime/server/responses/response_store.h"
#include "runtime/server/routes.h"
#include "runtime/server/scheduler.h"

namespace soliton {

/// What is asked of a model's text. Its tokenizer and prompter must outlive it.
struct ServedText {
  ServedText(const TextSide& text)
      : tokenizer(text.tokenizer),
        prompter(text.prompter),
        vocabulary(text.config.facts.vocabulary),
        stop_tokens(text.style.stop_tokens),
        sampling(text.sampling) {}
  /// Of a model without text, whose tokens are their own numbers: prompts have to be tokens too.
  ServedText(const Tokenizer& tokenizer, const Prompter& prompter, const Sampling& sampling)
      : tokenizer(tokenizer),
        prompter(prompter),
        vocabulary(tokenizer.vocabulary_size()),
        sampling(sampling),
        reads_text(false) {}

  const Tokenizer& tokenizer;
  const Prompter& prompter;
  int vocabulary;  // of the model
  std::vector<int32_t> stop_tokens;
  Sampling sampling;  // where a request does not say
  bool reads_text = true;
};

struct ServiceOptions {
  std::string model;                    // what it is called
  std::string api_key;                  // that clients must know; empty: none
  std::vector<std::string> origins;     // of web pages that may ask; "*": all
  std::vector<std::string> hosts = {};  // names by which it may be asked: see is_allowed_host()
  bool shares_cache = false;            // with whoever asks, and not only with those of one key or address
  ReasoningFormat reasoning = ReasoningFormat::kApart;  // where a request does not say
  RequestPoolOptions pool = {};                         // of threads that read what is asked
  std::function<void(const RequestRecord&)> log = {};   // what has a body to be read, when it is answered
};

/// A file that is part of the program: of the page, which asks for the key itself. What it may load and run stands in page.html.
HttpResponse page_response(const PageFile& file);

/// Any thread may call it.
class Service {
 public:
  /// All but the text must outlive it, and what that refers to.
  Service(const ServedText& text, Scheduler& scheduler, Metrics& metrics, ServiceOptions options);

  /// Never waits: what has a body to be read is answered later, by threads of the service's own.
  HttpReply answer(HttpRequest request);
  /// The answer to what is refused before it is a whole request, as HttpServer::Refusal.
  static HttpResponse refuse(int status, const std::string& reason);
  /// From now on nothing new is begun (503).
  void end() { ends_ = true; }
  /// Whether no request is being read, or waits for that; what has been begun for them is the scheduler's.
  bool is_idle() const { return pool_.is_idle(); }

  // ---- For the APIs, on the threads of the service

  /// How the answer to a request is told.
  using MakeFormat = std::function<std::unique_ptr<AnswerFormat>(const ApiRequest& request)>;

  const ServedText& text() const { return text_; }
  const ChatSyntax& syntax() const { return syntax_; }
  const std::string& model() const { return options_.model; }
  int64_t created() const { return created_; }  // when, in seconds since 1970
  int context() const { return scheduler_.context(); }
  int max_rows() const { return scheduler_.max_rows(); }
  /// Answers a request that came by HTTP. Throws ApiError and Error.
  HttpReply complete(ApiRequest request, const HttpRequest& http, const HttpHeaders& headers,
                     const MakeFormat& make_format);
  struct Prompt {
    std::vector<int32_t> tokens;
    std::string text;
  };
  /// That of a chat. Throws ApiError.
  Prompt render(const ApiRequest& request) const;
  /// The tokens of a text, and those that stand before all texts if wanted; `parses_special`: special tokens in the text are
  /// tokens, and no text. Throws ApiError where the model reads none.
  std::vector<int32_t> prompt_of(const std::string& text, bool adds_special,
                                 bool parses_special = false) const;
  /// What there is to a request's answer. Throws ApiError.
  CompletionSetup setup(ApiRequest request) const;
  /// Throws ApiError where the model has no chats, or none of functions.
  void check_chat(const ApiRequest& request) const;
  int num_running() const { return static_cast<int>(metrics_.value(Metrics::Gauge::kRunning)); }
  /// Of whoever may find what the request has left: those of its key, or address, and its salt.
  std::string cache_scope(const HttpRequest& request, const std::string& salt) const;
  const std::shared_ptr<ResponseStore>& responses() const { return responses_; }
  HttpResponse health() const;
  HttpResponse metrics() const;

 private:
  HttpReply route(HttpRequest& request, const Route* route, const HttpHeaders& headers);
  HttpReply read_later(const Route& route, HttpRequest request, const HttpHeaders& headers);
  void note(const HttpRequest& request, int status) const noexcept;
  void check_host(const HttpRequest& request) const;
  void check_origin(const HttpRequest& request) const;
  HttpHeaders allowed_origin(const HttpRequest& request) const;
  HttpResponse preflight(const HttpRequest& request) const;
  void check_key(const HttpRequest& request) const;

  void set_up_chat(CompletionSetup& setup) const;
  void add_grammar(CompletionSetup& setup) const;
  std::optional<constrain::Grammar> grammar_of_calls(const ToolRequest& tools, bool may_do_without) const;
  static void check_scored(const CompletionSetup& setup);
  void check_reads_text(const std::string& param) const;
  void check_token(const std::string& param, int32_t token) const;
  std::shared_ptr<const std::vector<uint32_t>> allowed_tokens(const ApiRequest& request) const;
  std::shared_ptr<const LogitAdjustment> adjustment_of(const ApiRequest& request) const;

  ServedText text_;
  Scheduler& scheduler_;
  Metrics& metrics_;
  ServiceOptions options_;
  ChatSyntax syntax_;
  std::shared_ptr<LazyVocabulary> vocabulary_;  // of all grammars, with the marks of the syntax
  const int64_t created_ = unix_time();
  std::atomic<bool> ends_ = false;
  const std::shared_ptr<ResponseStore> responses_ = std::make_shared<ResponseStore>();

  RequestPool pool_;  // ends before all that its threads use
};

}  // namespace soliton
