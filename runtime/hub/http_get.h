// GET over HTTP by libcurl, of which this is all that sees it. Redirections are followed here, one at a time, so that the
// token of a user goes to the hub alone and never to the servers that files are stored on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace soliton::hub {

/// How long a connection may take, and how long nothing may come.
struct Patience {
  std::chrono::milliseconds connect{15'000};
  std::chrono::seconds stall{30};
};

/// What an answer says before its body.
struct AnswerHead {
  int status = 0;
  std::string host = {};                     // that gave it, for messages
  std::optional<uint64_t> range_begin = {};  // of 206
  std::optional<std::chrono::seconds> retry_after = {};
  std::string error_code = {};  // the hub's: GatedRepo, RepoNotFound, ...
  std::string error_message = {};
};

/// A connection that failed: what libcurl says of it, in one line. Another attempt may succeed if `is_transient`.
class ConnectionFailed : public std::runtime_error {
 public:
  ConnectionFailed(const std::string& what, bool is_transient)
      : std::runtime_error(what), is_transient_(is_transient) {}
  bool is_transient() const { return is_transient_; }

 private:
  bool is_transient_;
};

class HttpGet {
 public:
  /// The token, if there is one, goes to `endpoint` alone, and only if that is reached by https or lies on this machine.
  HttpGet(const std::string& endpoint, std::string token, Patience patience);
  HttpGet(const HttpGet&) = delete;
  HttpGet& operator=(const HttpGet&) = delete;
  ~HttpGet();

  /// Whether the token would go to the endpoint.
  bool sends_token() const { return sends_token_; }

  struct Receiver {
    /// Told the head of an answer with a body that counts (200, 206), once, before the body.
    std::function<void(const AnswerHead&)> begin = [](const AnswerHead&) {};
    /// Takes the next bytes of it.
    std::function<void(std::string_view)> add;
  };
  /// Asks for `url`, from byte `from` on. Returns the head of the last answer, whose body has been received if it counts.
  /// Throws what the receiver throws, and ConnectionFailed.
  AnswerHead get(const std::string& url, uint64_t from, const Receiver& receiver);

 private:
  struct Curl;
  struct Exchange;
  AnswerHead perform(const std::string& url, uint64_t from, const Receiver& receiver, std::string& location);

  std::unique_ptr<Curl> curl_;
  std::string endpoint_;
  std::string token_;
  bool sends_token_ = false;
};

/// A part of a URL's path, or all of it: other characters than letters, digits and -._~ as %XX, and slashes too unless kept.
std::string escaped(std::string_view text, bool keeps_slashes);

}  // namespace soliton::hub
