// What the server answers at which path: OpenAI's API, and what looks after a server asks for.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/chat/model.h"
#include "runtime/server/completion.h"
#include "runtime/server/scheduler.h"

namespace soliton {

struct ServiceOptions {
  std::string model;                 // what it is called
  std::string api_key;               // that clients must know; empty: none
  std::vector<std::string> origins;  // of web pages that may ask; "*": all
};

/// Any thread may call it.
class Service {
 public:
  /// All must outlive it.
  Service(const TextSide& text, Scheduler& scheduler, Metrics& metrics, ServiceOptions options);

  HttpReply answer(const HttpRequest& request);
  /// The answer to what is refused before it is a whole request, as HttpServer::Refusal.
  static HttpResponse refuse(int status, const std::string& reason);
  /// From now on nothing new is begun (503).
  void end() { ends_ = true; }

 private:
  using Json = nlohmann::ordered_json;
  using Headers = std::vector<std::pair<std::string, std::string>>;

  /// A path that there is.
  struct Route {
    std::string_view method;
    std::string_view path;
    HttpReply (*answer)(Service& service, const HttpRequest& request, const Headers& headers);
  };
  static const std::array<Route, 7> kRoutes;

  HttpReply answer_or_refuse(const HttpRequest& request, const Headers& headers);
  HttpReply route(const HttpRequest& request, const Headers& headers);
  void check_origin(const HttpRequest& request) const;
  Headers allowed_origin(const HttpRequest& request) const;
  HttpResponse preflight(const HttpRequest& request) const;
  void check_key(const HttpRequest& request) const;

  HttpReply complete(ApiKind kind, const HttpRequest& request, const Headers& headers);
  CompletionSetup setup(ApiRequest request) const;
  std::shared_ptr<TokenGrammar> ready(const constrain::Grammar& grammar);
  HttpResponse models() const;
  HttpResponse model(const std::string& name) const;
  HttpResponse health() const;
  HttpResponse tokenize(const std::string& body) const;
  HttpResponse detokenize(const std::string& body) const;
  std::vector<int32_t> prompt_of(const std::string& text) const;
  Json model_object() const;

  const TextSide& text_;
  Scheduler& scheduler_;
  Metrics& metrics_;
  ServiceOptions options_;
  ToolSyntax tool_syntax_;
  int64_t created_;
  std::atomic<bool> ends_ = false;
  std::once_flag needs_vocabulary_;
  std::shared_ptr<const constrain::Vocabulary> vocabulary_;  // of the first grammar and all that follow
};

}  // namespace soliton
