// An imitation of Hugging Face's hub on the loopback, with what it does on bad days.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/hub/checksum.h"

namespace soliton {

struct HubRequest {
  std::string path;
  std::map<std::string, std::string> headers;  // names in lower case

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  /// The first byte of the range that is asked for; nothing if none is.
  std::optional<size_t> begin() const {
    const std::string range = header("range");
    return range.empty() ? std::nullopt
                         : std::optional<size_t>(std::stoul(range.substr(range.find('=') + 1)));
  }
};

struct HubReply {
  int status = 200;
  std::string body = {};
  std::string headers = {};                // lines with their ends
  std::optional<size_t> cut_after = {};    // bytes of the body, and the connection ends
  std::optional<size_t> stall_after = {};  // the same, and nothing comes any more
};

/// Answers until it goes out of scope, a connection at a time and a request each.
class FakeServer {
 public:
  using Answer = std::function<HubReply(const HubRequest&)>;

  explicit FakeServer(Answer answer)
      : answer_(std::move(answer)), socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    const auto place = reinterpret_cast<sockaddr*>(&address);
    constexpr int kBacklog = 16;
    if (::bind(socket_, place, size) != 0 || ::listen(socket_, kBacklog) != 0 ||
        ::getsockname(socket_, place, &size) != 0) {
      throw std::runtime_error("no server on the loopback");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  FakeServer(const FakeServer&) = delete;
  ~FakeServer() {
    ends_ = true;
    thread_.join();
    ::close(socket_);
  }

  std::string address() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<HubRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  /// How many requests there were whose path contains the text.
  size_t num_requests(const std::string& text = "") const {
    size_t count = 0;
    for (const HubRequest& request : requests())
      count += request.path.find(text) != std::string::npos ? 1 : 0;
    return count;
  }

 private:
  static constexpr int kLookMs = 10;  // between two looks at whether it is to end

  /// Whether something can be read from it, before the server ends.
  bool can_read(int socket) const {
    while (!ends_) {
      pollfd wanted{.fd = socket, .events = POLLIN, .revents = 0};
      if (::poll(&wanted, 1, kLookMs) > 0) return true;
    }
    return false;
  }
  void serve() {
    while (can_read(socket_)) {
      const int connection = ::accept(socket_, nullptr, nullptr);
      if (connection < 0) continue;
      answer(connection);
      ::close(connection);
    }
  }
  void answer(int connection) {
    std::string text;
    while (text.find("\r\n\r\n") == std::string::npos) {
      char bytes[4096];
      if (!can_read(connection)) return;
      const ssize_t got = ::recv(connection, bytes, sizeof(bytes), 0);
      if (got <= 0) return;
      text.append(bytes, static_cast<size_t>(got));
    }
    const HubRequest request = parse(text);
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const HubReply reply = answer_(request);
    send(connection, "HTTP/1.1 " + std::to_string(reply.status) +
                         " Some\r\nConnection: close\r\nContent-Length: " +
                         std::to_string(reply.body.size()) + "\r\n" + reply.headers + "\r\n");
    const size_t sent = std::min(
        {reply.body.size(), reply.cut_after.value_or(SIZE_MAX), reply.stall_after.value_or(SIZE_MAX)});
    send(connection, reply.body.substr(0, sent));
    if (reply.stall_after) can_read(connection);  // until the client has gone
  }
  static HubRequest parse(const std::string& text) {
    HubRequest request;
    const size_t path = text.find(' ') + 1;
    request.path = text.substr(path, text.find(' ', path) - path);
    for (size_t at = text.find("\r\n") + 2; text.compare(at, 2, "\r\n") != 0;
         at = text.find("\r\n", at) + 2) {
      const size_t colon = text.find(": ", at);
      std::string name = text.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      request.headers[name] = text.substr(colon + 2, text.find("\r\n", at) - colon - 2);
    }
    return request;
  }
  static void send(int connection, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  const Answer answer_;
  const int socket_;
  uint16_t port_ = 0;
  std::atomic<bool> ends_ = false;
  mutable std::mutex mutex_;
  std::vector<HubRequest> requests_;
  std::thread thread_;
};

/// One model, org/name, as the hub has it. What a test does with `on` and its members it does before anything is asked for.
class FakeHub {
 public:
  struct File {
    std::string content;
    bool is_large = false;                     // in LFS: on another server, named by its SHA-256
    std::optional<uint64_t> listed_size = {};  // else its content's
    std::optional<std::string> listed_hash = {};
    std::string hash() const {
      hub::Checksum checksum(is_large ? hub::Checksum::Kind::kSha256 : hub::Checksum::Kind::kGitBlob,
                             content.size());
      checksum.add(content);
      return listed_hash.value_or(checksum.finish());
    }
  };
  static constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

  FakeHub()
      : storage([this](const HubRequest& request) { return answer_storage(request); }),
        server([this](const HubRequest& request) { return answer(request); }) {}

  std::map<std::string, File> files;
  std::optional<std::string> listing;  // its text, in place of one of the files
  std::string revision = "main";       // that is known
  /// Asked first.
  std::function<std::optional<HubReply>(const HubRequest&)> on = [](const HubRequest&) {
    return std::nullopt;
  };
  std::function<std::optional<HubReply>(const HubRequest&)> on_storage = on;

  /// A file's content from the byte on that a request asks for, as a good server gives it.
  static HubReply part(const HubRequest& request, const std::string& content) {
    const std::optional<size_t> begin = request.begin();
    if (!begin) return {.body = content};
    const std::string range = "bytes " + std::to_string(*begin) + "-" + std::to_string(content.size() - 1) +
                              "/" + std::to_string(content.size());
    return {.status = 206, .body = content.substr(*begin), .headers = "Content-Range: " + range + "\r\n"};
  }

 private:
  static bool is_of(const HubRequest& request, const std::string& prefix, std::string* rest) {
    const size_t at = request.path.find(prefix);
    if (at == std::string::npos) return false;
    *rest = request.path.substr(at + prefix.size());
    return true;
  }
  HubReply answer(const HubRequest& request) {
    if (const auto special = on(request)) return *special;
    std::string rest;
    if (is_of(request, "/api/models/org/name/revision/", &rest)) {
      if (rest != revision + "?blobs=true" && rest != std::string(kCommit) + "?blobs=true")
        return {.status = 404, .headers = "X-Error-Code: RevisionNotFound\r\n"};
      return {.body = listing.value_or(list())};
    }
    if (!is_of(request, std::string("/org/name/resolve/") + kCommit + "/", &rest) || !files.contains(rest))
      return {.status = 401, .headers = "X-Error-Code: RepoNotFound\r\n"};
    if (!files.at(rest).is_large) return part(request, files.at(rest).content);
    return {.status = 302, .headers = "Location: " + storage.address() + "/stored/" + rest + "\r\n"};
  }
  HubReply answer_storage(const HubRequest& request) {
    if (const auto special = on_storage(request)) return *special;
    std::string name;
    if (!is_of(request, "/stored/", &name)) return {.status = 404};
    return part(request, files.at(name).content);
  }
  std::string list() const {
    nlohmann::json siblings = nlohmann::json::array();
    for (const auto& [name, file] : files) {
      nlohmann::json entry = {{"rfilename", name}, {"size", file.listed_size.value_or(file.content.size())}};
      if (file.is_large) {
        entry["blobId"] = std::string(40, 'a');  // of the pointer
        entry["lfs"] = {{"sha256", file.hash()}, {"size", entry["size"]}, {"pointerSize", 135}};
      } else {
        entry["blobId"] = file.hash();
      }
      siblings.push_back(entry);
    }
    return nlohmann::json{{"id", "org/name"}, {"sha", kCommit}, {"siblings", siblings}}.dump();
  }

 public:
  FakeServer storage;
  FakeServer server;
};

}  // namespace soliton
