// What the server answers at which path: OpenAI's API, and what looks after a server asks for.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/answer/model.h"
#include "runtime/server/calls/chat_syntax.h"
#include "runtime/server/completion.h"
#include "runtime/server/request_pool.h"
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
};

/// Any thread may call it.
class Service {
 public:
  /// All but the text must outlive it, and what that refers to.
  Service(const ServedText& text, Scheduler& scheduler, Metrics& metrics, ServiceOptions options);

  /// Never waits: what has a body to be read is answered later, by threads of the service's own.
  HttpReply answer(HttpRequest request);
  /// The answer to what is refused before it is a whole request, as HttpServer::Refusal.
  static HttpResponse refuse(int status, const std::string& reason);
  /// All that there are, but the page's; where one ends with a slash, something follows.
  static std::vector<std::string_view> paths();
  /// From now on nothing new is begun (503).
  void end() { ends_ = true; }
  /// Whether no request is being read, or waits for that; what has been begun for them is the scheduler's.
  bool is_idle() const { return pool_.is_idle(); }

 private:
  using Json = nlohmann::ordered_json;
  using Headers = std::vector<std::pair<std::string, std::string>>;

  /// A path that there is, and what answers it: at once, or later where there is a body to be read.
  struct Route {
    std::string_view method;
    std::string_view path;  // where it ends with a slash, also what goes on behind it
    HttpResponse (*answer)(Service& service, const HttpRequest& request);
    HttpReply (*answer_later)(Service& service, const HttpRequest& request, const Headers& headers);
  };
  static const std::array<Route, 9> kRoutes;
  static const Route* find_route(std::string_view path);

  HttpReply route(HttpRequest& request, const Headers& headers);
  HttpReply read_later(const Route& route, HttpRequest request, const Headers& headers);
  void check_host(const HttpRequest& request) const;
  void check_origin(const HttpRequest& request) const;
  Headers allowed_origin(const HttpRequest& request) const;
  HttpResponse preflight(const HttpRequest& request) const;
  void check_key(const HttpRequest& request) const;

  HttpReply complete(ApiKind kind, const HttpRequest& request, const Headers& headers);
  std::string cache_scope(const HttpRequest& request, const std::string& salt) const;
  struct Prompt {
    std::vector<int32_t> tokens;
    std::string text;
  };
  Prompt render(const ApiRequest& request) const;
  void set_up_chat(CompletionSetup& setup) const;
  void add_grammar(CompletionSetup& setup) const;
  std::optional<constrain::Grammar> grammar_of_calls(const ToolRequest& tools, bool may_do_without) const;
  CompletionSetup setup(ApiRequest request) const;
  static void check_scored(const CompletionSetup& setup);
  HttpResponse models() const;
  HttpResponse model(const std::string& name) const;
  HttpResponse health() const;
  HttpResponse tokenize(const std::string& body) const;
  HttpResponse detokenize(const std::string& body) const;
  void check_reads_text(const std::string& param) const;
  void check_token(const std::string& param, int32_t token) const;
  std::vector<int32_t> prompt_of(const std::string& text, bool adds_special) const;
  Json model_object() const;

  ServedText text_;
  Scheduler& scheduler_;
  Metrics& metrics_;
  ServiceOptions options_;
  ChatSyntax syntax_;
  std::shared_ptr<LazyVocabulary> vocabulary_;  // of all grammars, with the marks of the syntax
  int64_t created_;
  std::atomic<bool> ends_ = false;
  std::shared_ptr<const std::vector<uint32_t>> allowed_tokens(const ApiRequest& request) const;

  RequestPool pool_;  // ends before all that its threads use
};

}  // namespace soliton
