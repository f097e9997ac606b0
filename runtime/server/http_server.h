// HTTP/1.1 by Boost.Beast: a few threads serve all connections, so that one who reads or writes slowly holds memory and no
// thread. Every wait for a client has a limit, whole requests and not only their bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/server/http.h"
#include "runtime/server/http_limits.h"
#include "runtime/server/metrics.h"

namespace soliton {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any that is free
  int num_threads = 4;
  HttpLimits limits = {};
};

/// A port that is the server's from now on, though nobody is let in yet: clients wait in the system's queue.
class HttpListener {
 public:
  /// Throws Error (kUsage), naming --host or --port, if that cannot be.
  explicit HttpListener(const HttpServerOptions& options);
  HttpListener(HttpListener&& other) noexcept;
  HttpListener(const HttpListener&) = delete;
  ~HttpListener();

  struct State;  // of the implementation

 private:
  friend class HttpServer;
  std::unique_ptr<State> state_;
};

class HttpServer {
 public:
  /// Any of the server's threads calls it, which others wait for meanwhile: what takes long is answered later. What it
  /// throws is told the client as status 500.
  using Handler = std::function<HttpReply(HttpRequest)>;
  /// Of a request that is refused before it is whole: the body of an answer with this status.
  using Refusal = std::function<HttpResponse(int status, const std::string& reason)>;

  /// Begins to serve.
  HttpServer(HttpListener listener, const HttpServerOptions& options, Handler handler, Refusal refusal,
             Metrics& metrics);
  /// The same with a port of its own. Throws what HttpListener does.
  HttpServer(const HttpServerOptions& options, Handler handler, Refusal refusal, Metrics& metrics)
      : HttpServer(HttpListener(options), options, std::move(handler), std::move(refusal), metrics) {}
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  /// Closes all connections.
  ~HttpServer();

  uint16_t port() const;
  /// No connection is accepted any more, and those there are end with the answer under way.
  void stop_listening();
  /// Waits until nobody waits for an answer any more, but no longer. Returns whether nobody does.
  bool drain(std::chrono::milliseconds limit);

  struct State;  // of the implementation

 private:
  std::unique_ptr<State> state_;
};

}  // namespace soliton
