// HTTP/1.1 by Boost.Beast: a few threads serve all connections, so that one who reads or writes slowly holds memory and no
// thread. Every wait for a client has a limit, whole requests and not only their bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/server/http.h"
#include "runtime/server/metrics.h"

namespace soliton {

struct HttpLimits {
  size_t header_bytes = 16 << 10;
  size_t body_bytes = 16 << 20;
  size_t connections = 512;                  // further ones are told 503
  std::chrono::milliseconds header{10'000};  // from a request's first byte to the end of its header
  std::chrono::milliseconds body{60'000};    // from there to its end
  std::chrono::milliseconds idle{75'000};    // between two requests of a connection
  std::chrono::milliseconds write{30'000};   // of what a client does not read
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any that is free
  int num_threads = 4;
  HttpLimits limits = {};
};

class HttpServer {
 public:
  /// Any of the server's threads calls it. What it throws is told the client as status 500.
  using Handler = std::function<HttpReply(const HttpRequest&)>;
  /// Of a request that is refused before it is whole: the body of an answer with this status.
  using Refusal = std::function<HttpResponse(int status, const std::string& reason)>;

  /// Listens, and begins to serve. Throws Error (kUsage), naming --host or --port, if that cannot be.
  HttpServer(const HttpServerOptions& options, Handler handler, Refusal refusal, Metrics& metrics);
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
