// HTTP by hand, so that tests can also say what no client should.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace soliton {

struct HttpAnswer {
  int status = 0;  // 0: the server closed the connection without an answer
  std::map<std::string, std::string> headers;
  std::string body;

  nlohmann::json json() const { return nlohmann::json::parse(body); }
  /// The data of server-sent events.
  std::vector<std::string> events() const {
    std::vector<std::string> events;
    for (size_t at = 0; (at = body.find("data: ", at)) != std::string::npos;) {
      const size_t end = body.find("\n\n", at);
      events.push_back(body.substr(at + 6, end - at - 6));
      at = end;
    }
    return events;
  }
};

/// A connection to a server on this machine.
class HttpClient {
 public:
  /// `from`: the address of this machine that the server sees.
  explicit HttpClient(uint16_t port, const std::string& from = "127.0.0.1")
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    ::inet_pton(AF_INET, from.c_str(), &own.sin_addr);
    if (from != "127.0.0.1") ::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof(own));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      throw std::runtime_error("connect failed");
    const timeval limit{.tv_sec = 120, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  HttpClient(HttpClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  HttpClient(const HttpClient&) = delete;
  ~HttpClient() { close(); }

  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  /// Tells the server that nothing follows; what it sends can still be read.
  void send_no_more() { ::shutdown(socket_, SHUT_WR); }
  /// Returns false if the server has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t num_sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (num_sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(num_sent));
    }
    return true;
  }
  void ask(const std::string& method, const std::string& path, const std::string& body = {},
           const std::string& headers = {}) {
    send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  /// The next answer, to its end.
  HttpAnswer answer() {
    HttpAnswer answer;
    const std::string head = read_until("\r\n\r\n");
    if (head.empty()) return answer;
    answer.status = std::stoi(head.substr(head.find(' ') + 1, 3));
    for (size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
      const size_t end = head.find("\r\n", at);
      const size_t colon = head.find(": ", at);
      answer.headers[head.substr(at, colon - at)] = head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    if (answer.status < 200 || answer.status == 204) return answer;
    if (answer.headers["Transfer-Encoding"] == "chunked") {
      for (size_t size = 1; size > 0;) {
        size = std::stoul(read_until("\r\n"), nullptr, 16);
        answer.body += read(size);
        read_until("\r\n");
      }
    } else if (answer.headers.contains("Content-Length")) {
      answer.body = read(std::stoul(answer.headers["Content-Length"]));
    } else {
      while (receive()) {
      }
      answer.body = std::exchange(buffer_, {});
    }
    return answer;
  }
  /// Whether some bytes have come that contain this, before the connection ends.
  bool reads(const std::string& text) {
    while (buffer_.find(text) == std::string::npos) {
      if (!receive()) return false;
    }
    return true;
  }
  /// What has come and nobody has asked for.
  std::string forget() { return std::exchange(buffer_, {}); }
  /// Whether the server has closed the connection, for which it has time.
  bool is_closed() { return !receive(); }

 private:
  bool receive() {
    char bytes[4096];
    const ssize_t num_bytes = ::recv(socket_, bytes, sizeof(bytes), 0);
    if (num_bytes <= 0) return false;
    buffer_.append(bytes, static_cast<size_t>(num_bytes));
    return true;
  }
  std::string read(size_t size) {
    while (buffer_.size() < size && receive()) {
    }
    const std::string bytes = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return bytes;
  }
  std::string read_until(const std::string& end) {
    while (buffer_.find(end) == std::string::npos) {
      if (!receive()) return {};
    }
    return read(buffer_.find(end) + end.size());
  }

  int socket_;
  std::string buffer_;
};

/// One request on a connection of its own.
inline HttpAnswer ask(uint16_t port, const std::string& method, const std::string& path,
                      const std::string& body = {}, const std::string& headers = {}) {
  HttpClient client(port);
  client.ask(method, path, body, headers);
  return client.answer();
}

}  // namespace soliton
