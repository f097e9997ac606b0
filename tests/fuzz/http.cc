// Bytes that a client sends, in pieces that end with \xfe: whatever they are, what comes back are answers of HTTP/1.x, and
// the server goes on. Half of the inputs say that no more follows, the others close.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "fuzz/fuzz_target.h"
#include "runtime/server/http_server.h"

namespace soliton {
namespace {

constexpr char kEndOfPiece = '\xfe';
constexpr int kInputsBetweenLooks = 64;

/// Answers at once, and to /stream piece by piece; the body's size is the answer's.
HttpReply answer(HttpRequest request) {
  if (request.path != "/stream") return HttpResponse{.body = fmt::format("{}", request.body.size())};
  auto reply = std::make_shared<PendingReply>();
  reply->begin_stream({});
  reply->put(request.method);
  reply->close();
  return reply;
}

class Server {
 public:
  uint16_t port() const { return server_.port(); }

 private:
  static HttpServerOptions options() {
    HttpServerOptions options;
    options.num_threads = 1;
    options.limits.body_bytes = 1 << 16;
    options.limits.header = options.limits.body = options.limits.idle = std::chrono::milliseconds(50);
    return options;
  }

  Metrics metrics_;
  HttpServer server_{
      options(), answer,
      [](int status, const std::string& reason) { return HttpResponse{.status = status, .body = reason}; },
      metrics_};
};

class Client {
 public:
  Client() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    static const Server server;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    expect(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
           "a server that takes connections");
  }
  Client(const Client&) = delete;
  ~Client() { ::close(socket_); }

  /// False once the server takes no more.
  bool send(std::string_view bytes) const {
    return bytes.empty() || ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0;
  }
  void end() const { ::shutdown(socket_, SHUT_WR); }

  /// All that comes until the server closes.
  std::string read() const {
    constexpr int kMostMs = 10'000;
    std::string all;
    char bytes[4096];
    for (;;) {
      pollfd ready{.fd = socket_, .events = POLLIN, .revents = 0};
      int num_ready = 0;
      do {  // it alone is interrupted all the same
        num_ready = ::poll(&ready, 1, kMostMs);
      } while (num_ready < 0 && errno == EINTR);
      expect(num_ready == 1, "an answer or an end in time");
      const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
      if (count <= 0) return all;
      all.append(bytes, static_cast<size_t>(count));
    }
  }

 private:
  int socket_;
};

/// The fuzzer's own clock would end calls that wait.
bool restart_after_alarms() {
  struct sigaction action {};
  if (::sigaction(SIGALRM, nullptr, &action) != 0) return false;
  action.sa_flags |= SA_RESTART;
  return ::sigaction(SIGALRM, &action, nullptr) == 0;
}

void expect_alive() {
  const Client client;
  client.send("GET /ok HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  expect(client.read().starts_with("HTTP/1.1 200 "), "a server that goes on");
}

void talk(std::string_view input) {
  const bool is_half_closed = !input.empty() && input[0] % 2 == 0;
  const Client client;
  while (!input.empty()) {
    const size_t end = std::min(input.find(kEndOfPiece), input.size());
    if (!client.send(input.substr(0, end))) break;
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  if (!is_half_closed) return;
  client.end();
  const std::string answers = client.read();
  expect(answers.empty() || answers.starts_with("HTTP/1."), "answers of HTTP");
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static int num_inputs = 0;
  static const bool restarts = soliton::restart_after_alarms();
  soliton::expect(restarts, "calls that the fuzzer's clock does not end");
  soliton::talk(soliton::as_text(data, size));
  if (++num_inputs % soliton::kInputsBetweenLooks == 0) soliton::expect_alive();
  return 0;
}
