// What is asked and answered over HTTP, apart from how it travels.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace soliton {

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // without what follows a question mark
  std::string body;
  std::string authorization;    // the header of this name, as all below; empty if absent
  std::string origin;           //
  std::string host;             //
  std::string request_headers;  // Access-Control-Request-Headers
  std::string peer;             // address of the client
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// An answer that is made by other threads while the client waits: as a whole, or piece by piece. One thread takes what
/// the others put in.
class PendingReply {
 public:
  // ---- Whoever answers

  /// The whole answer. Nothing may come after it.
  void finish(HttpResponse response);
  /// From now on the answer comes in pieces, behind a response without body. Before the first piece.
  void begin_stream(HttpResponse head);
  void put(std::string_view piece);
  /// The last piece has come.
  void close();
  /// Called once if the client goes away before the end, on the thread that takes; at once if it has gone.
  void on_abandon(std::function<void()> call);

  // ---- Whoever sends

  /// Called, by any thread, whenever there is something to be taken.
  void on_ready(std::function<void()> call);
  /// What there is since the last call.
  struct News {
    std::optional<HttpResponse> response;  // the whole answer, or what stands before its pieces
    bool is_stream = false;
    std::string pieces;
    bool is_complete = false;
  };
  News take();
  /// The client has gone: nobody takes any more.
  void abandon();

 private:
  void tell();

  std::mutex mutex_;
  News news_;
  bool is_abandoned_ = false;
  std::function<void()> on_ready_;
  std::function<void()> on_abandon_;
};

/// An answer, or one that is to come.
struct HttpReply {
  HttpReply(HttpResponse now) : response(std::move(now)) {}
  HttpReply(std::shared_ptr<PendingReply> later) : pending(std::move(later)) {}

  HttpResponse response;
  std::shared_ptr<PendingReply> pending;
  std::string route = {};  // the path if it is one that there is: metrics are kept of it
};

}  // namespace soliton
