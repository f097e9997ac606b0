// What is asked and answered over HTTP, apart from how it travels.
#pragma once

#include <chrono>
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
  std::string api_key = {};     // x-api-key
  std::string origin;           //
  std::string host;             //
  std::string request_headers;  // Access-Control-Request-Headers
  std::string peer;  // address of the client; of IPv6 its network of 64 bits, of which one has all addresses
  std::shared_ptr<const void> room = {};  // what the body takes of the memory for bodies; goes with it
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
  /// The answer is what another one tells, with all that it has been told already. Nothing may come after it.
  void hand_over(std::shared_ptr<PendingReply> other);
  /// Called once if the client goes away before the end, on the thread that takes; at once if it has gone.
  void on_abandon(std::function<void()> call);
  /// Whether nobody waits for it any more.
  bool is_abandoned() const;

  // ---- Whoever sends

  /// Called, by any thread, whenever there is something to be taken.
  void on_ready(std::function<void()> call);
  /// What there is since the last call.
  struct News {
    std::optional<HttpResponse> response;  // the whole answer, or what stands before its pieces
    bool is_stream = false;
    std::string pieces;
    bool is_complete = false;
    std::shared_ptr<PendingReply> other;  // that tells all the rest
  };
  News take();
  /// Whether so much has not been taken for so long that its client cannot be reading.
  bool is_overrun() const;
  /// The client has gone: nobody takes any more.
  void abandon();

 private:
  void tell();

  static constexpr size_t kMostUntaken = 1 << 20;
  static constexpr std::chrono::seconds kLongestUntaken{2};

  mutable std::mutex mutex_;
  News news_;
  bool is_abandoned_ = false;
  bool is_overrun_ = false;
  std::chrono::steady_clock::time_point last_taken_ = std::chrono::steady_clock::now();
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
