#include "runtime/server/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <condition_variable>
#include <thread>
#include <utility>
#include <vector>

#include "models/error.h"

namespace soliton {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

/// What a request is refused with before it is whole; 0: the connection just ends.
int status_of(const ErrorCode& error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) return 431;
  if (error == http::error::body_limit) return 413;
  if (error == beast::error::timeout) return 0;
  return error.category() == make_error_code(http::error::bad_method).category() &&
                 error != http::error::end_of_stream && error != http::error::partial_message
             ? 400
             : 0;
}

}  // namespace

/// What all connections share. The coroutines of those that are open end with `io`, and count themselves out then.
struct HttpServer::State {
  State(const HttpServerOptions& options, Handler handler, Refusal refusal, Metrics& metrics)
      : options(options),
        handler(std::move(handler)),
        refusal(std::move(refusal)),
        metrics(metrics),
        acceptor(io) {}

  HttpServerOptions options;
  Handler handler;
  Refusal refusal;
  Metrics& metrics;
  std::atomic<bool> ends = false;
  std::mutex mutex;
  std::condition_variable left;
  size_t num_connections = 0;  // guarded by the mutex, as are
  size_t num_answering = 0;    // those of them that have asked something
  asio::io_context io;
  tcp::acceptor acceptor;
  std::vector<std::thread> threads;

  void count(int change) {
    const std::lock_guard lock(mutex);
    num_connections = static_cast<size_t>(static_cast<long>(num_connections) + change);
    metrics.set(Metrics::Gauge::kConnections, static_cast<double>(num_connections));
  }
  void count_answering(int change) {
    const std::lock_guard lock(mutex);
    num_answering = static_cast<size_t>(static_cast<long>(num_answering) + change);
    left.notify_all();
  }
};

namespace {

// Of what a coroutine waits for, all arguments have names: g++ 12 ends temporaries of a ?: there twice.

/// One connection: reads requests and sends what the handler says, one after the other.
class Connection {
 public:
  Connection(HttpServer::State& state, tcp::socket socket)
      : state_(&state),
        stream_(std::move(socket)),
        news_(stream_.get_executor(), asio::steady_timer::time_point::max()) {
    state_->count(1);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { state_->count(-1); }

  asio::awaitable<void> run(bool is_one_too_many) {
    ErrorCode ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    if (is_one_too_many) {
      const std::string reason = "too many connections";
      co_await refuse(503, reason);
    } else {
      while (co_await serve()) {
      }
    }
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

 private:
  using Parser = http::request_parser<http::string_body>;

  /// While it lives somebody waits for an answer.
  struct Answering {
    explicit Answering(HttpServer::State& state) : state(state) { state.count_answering(1); }
    Answering(const Answering&) = delete;
    ~Answering() { state.count_answering(-1); }
    HttpServer::State& state;
  };

  /// Ends with the coroutine, be it that the server ends.
  struct Listening {
    PendingReply& reply;
    ~Listening() { reply.abandon(); }
  };

  const HttpLimits& limits() const { return state_->options.limits; }

  /// One request. Returns whether another may come.
  asio::awaitable<bool> serve() {
    if (!co_await wait_for_request()) co_return false;
    Parser parser;
    parser.header_limit(static_cast<uint32_t>(limits().header_bytes));
    parser.body_limit(limits().body_bytes);
    if (!co_await read(parser)) co_return false;
    const Answering answering(*state_);
    const HttpRequest request = take(parser.get());
    keeps_alive_ = parser.get().keep_alive();
    version_ = parser.get().version();
    is_head_ = parser.get().method() == http::verb::head;
    HttpReply reply = answer(request);
    bool is_sent = false;
    if (reply.pending == nullptr) {
      state_->metrics.count_answer(reply.route, reply.response.status);
      is_sent = co_await send(reply.response);
    } else {
      is_sent = co_await send(*reply.pending, reply.route);
    }
    const bool goes_on = is_sent && keeps_alive_ && !state_->ends;
    co_return goes_on;
  }

  /// Until its first byte has come, which may take longer than the rest of it.
  asio::awaitable<bool> wait_for_request() {
    if (buffer_.size() > 0) co_return true;
    ErrorCode error;
    stream_.expires_after(limits().idle);
    const size_t num_bytes = co_await stream_.async_read_some(
        buffer_.prepare(4096), asio::redirect_error(asio::use_awaitable, error));
    buffer_.commit(num_bytes);
    co_return !error && num_bytes > 0;
  }

  asio::awaitable<bool> read(Parser& parser) {
    ErrorCode error;
    stream_.expires_after(limits().header);
    co_await http::async_read_header(stream_, buffer_, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
    if (!error && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      http::response<http::empty_body> go_on(http::status::continue_, parser.get().version());
      co_await http::async_write(stream_, go_on, asio::redirect_error(asio::use_awaitable, error));
    }
    if (!error) {
      stream_.expires_after(limits().body);
      co_await http::async_read(stream_, buffer_, parser, asio::redirect_error(asio::use_awaitable, error));
    }
    if (!error) co_return true;
    if (const int status = status_of(error); status != 0) {
      const std::string reason = reason_of(status, error);
      co_await refuse(status, reason);
    }
    co_return false;
  }

  std::string reason_of(int status, const ErrorCode& error) const {
    if (status == 413) return fmt::format("expected a body of at most {} bytes", limits().body_bytes);
    if (status == 431) return fmt::format("expected a header of at most {} bytes", limits().header_bytes);
    return "expected an HTTP request, got: " + error.message();
  }

  HttpRequest take(http::request<http::string_body>& message) {
    const auto header = [&](auto name) { return std::string(message[name]); };
    const std::string_view target(message.target().data(), message.target().size());
    ErrorCode ignored;
    return {.method = std::string(message.method_string()),
            .path = std::string(target.substr(0, target.find('?'))),
            .body = std::move(message.body()),
            .authorization = header(http::field::authorization),
            .origin = header(http::field::origin),
            .host = header(http::field::host),
            .request_headers = header(http::field::access_control_request_headers),
            .peer = stream_.socket().remote_endpoint(ignored).address().to_string()};
  }

  HttpReply answer(const HttpRequest& request) {
    try {
      return state_->handler(request);
    } catch (const std::exception& error) {
      return state_->refusal(500, error.what());
    }
  }

  /// Tells why the connection ends; then takes what the client is still sending for a while, as it would not read the
  /// answer otherwise.
  asio::awaitable<void> refuse(int status, const std::string& reason) {
    constexpr size_t kMostBytes = 64 << 20;
    constexpr std::chrono::seconds kMostTime{5};
    keeps_alive_ = false;
    state_->metrics.count_answer("", status);
    const HttpResponse response = state_->refusal(status, reason);
    if (!co_await send(response)) co_return;
    ErrorCode error;
    stream_.socket().shutdown(tcp::socket::shutdown_send, error);
    stream_.expires_after(kMostTime);
    std::vector<char> dropped(64 << 10);
    for (size_t num_bytes = 0; num_bytes < kMostBytes && !error;) {
      num_bytes += co_await stream_.async_read_some(asio::buffer(dropped),
                                                    asio::redirect_error(asio::use_awaitable, error));
    }
  }

  // ---- Answers

  template <class Message>
  void put_head(const HttpResponse& response, Message& message) {
    message.version(version_);
    message.result(static_cast<unsigned>(response.status));
    message.set(http::field::server, "soliton");
    if (!response.content_type.empty()) message.set(http::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(keeps_alive_ && !state_->ends);
  }

  asio::awaitable<bool> send(const HttpResponse& response) {
    http::response<http::string_body> message;
    put_head(response, message);
    message.body() = response.body;
    message.prepare_payload();
    if (is_head_) message.body().clear();
    ErrorCode error;
    stream_.expires_after(limits().write);
    co_await http::async_write(stream_, message, asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
  }

  /// An answer that comes from other threads. Returns false if the client has gone.
  asio::awaitable<bool> send(PendingReply& reply, const std::string& route) {
    // Whoever answers calls this as long as the coroutine lives.
    const Listening listening{reply};
    reply.on_ready([this, executor = stream_.get_executor()] {
      asio::post(executor, [news = std::weak_ptr(alive_), this] {
        if (!news.expired()) news_.cancel();
      });
    });
    watch();
    bool is_sent = true;
    bool has_head = false;
    for (bool is_complete = false; is_sent && !is_complete;) {
      PendingReply::News news = reply.take();
      is_complete = news.is_complete;
      // Whatever comes while something is sent wakes nobody: there is another look before the wait.
      const bool has_news = news.response || !news.pieces.empty();
      if (news.response) state_->metrics.count_answer(route, news.response->status);
      if (news.response && !news.is_stream) {
        is_sent = co_await send(*news.response);
        continue;
      }
      if (news.response) is_sent = co_await send_stream_head(*news.response);
      has_head = has_head || news.is_stream;
      if (is_sent && !news.pieces.empty()) is_sent = co_await send_piece(news.pieces);
      if (is_sent && is_complete && has_head) is_sent = co_await send_stream_end();
      if (is_complete || !is_sent || has_news) continue;
      ErrorCode woken;
      if (!has_gone_) co_await news_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      if (has_gone_) is_sent = false;
    }
    unwatch();
    co_return is_sent;
  }

  asio::awaitable<bool> send_stream_head(const HttpResponse& head) {
    http::response<http::empty_body> message;
    if (version_ < 11) keeps_alive_ = false;  // the end of the connection is that of the stream
    put_head(head, message);
    message.chunked(version_ >= 11);
    http::response_serializer<http::empty_body> serializer(message);
    ErrorCode error;
    stream_.expires_after(limits().write);
    co_await http::async_write_header(stream_, serializer, asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
  }

  asio::awaitable<bool> send_piece(const std::string& piece) {
    ErrorCode error;
    stream_.expires_after(limits().write);
    if (version_ < 11) {
      co_await asio::async_write(stream_, asio::buffer(piece),
                                 asio::redirect_error(asio::use_awaitable, error));
    } else {
      co_await asio::async_write(stream_, http::make_chunk(asio::const_buffer(piece.data(), piece.size())),
                                 asio::redirect_error(asio::use_awaitable, error));
    }
    co_return !error;
  }

  asio::awaitable<bool> send_stream_end() {
    if (version_ < 11) co_return true;
    ErrorCode error;
    stream_.expires_after(limits().write);
    co_await asio::async_write(stream_, http::make_chunk_last(),
                               asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
  }

  // ---- Clients that go away

  /// From now on has_gone_ is set, and the wait for news ended, when the client closes the connection.
  void watch() {
    stream_.expires_never();
    stream_.socket().async_wait(
        tcp::socket::wait_read, [this, alive = std::weak_ptr(alive_)](const ErrorCode& error) {
          if (alive.expired() || error) return;
          char byte = 0;
          const ssize_t num_bytes =
              ::recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
          const bool is_open = num_bytes > 0 || (num_bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
          if (is_open) return;  // the next request
          has_gone_ = true;
          news_.cancel();
        });
  }
  void unwatch() {
    ErrorCode ignored;
    stream_.socket().cancel(ignored);
  }

  HttpServer::State* state_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  asio::steady_timer news_;  // waits for ever; cancelled when there are news
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  bool keeps_alive_ = true;
  unsigned version_ = 11;
  bool is_head_ = false;
  bool has_gone_ = false;
};

asio::awaitable<void> serve(HttpServer::State* state, tcp::socket socket, bool is_one_too_many) {
  Connection connection(*state, std::move(socket));
  co_await connection.run(is_one_too_many);
}

asio::awaitable<void> listen(HttpServer::State* state) {
  while (!state->ends) {
    ErrorCode error;
    tcp::socket socket = co_await state->acceptor.async_accept(
        asio::make_strand(state->io), asio::redirect_error(asio::use_awaitable, error));
    if (state->ends) co_return;
    if (error) {  // such as too many open files: others may close theirs
      constexpr std::chrono::milliseconds kPause{100};
      asio::steady_timer pause(state->io, kPause);
      co_await pause.async_wait(asio::use_awaitable);
      continue;
    }
    bool is_one_too_many = false;
    {
      const std::lock_guard lock(state->mutex);
      is_one_too_many = state->num_connections >= state->options.limits.connections;
    }
    const auto executor = socket.get_executor();
    asio::co_spawn(executor, serve(state, std::move(socket), is_one_too_many), asio::detached);
  }
}

/// A server that has no memory to take connections ends, by what leaves its thread, instead of being deaf.
void end_without_memory(const std::exception_ptr& failure) {
  if (failure) std::rethrow_exception(failure);
}

/// Throws Error (kUsage).
void open(tcp::acceptor& acceptor, asio::io_context& io, const HttpServerOptions& options) {
  ErrorCode error;
  tcp::resolver resolver(io);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    throw Error(ExitCode::kUsage, fmt::format("--host: expected an address of this machine, got {}: {}",
                                              in_quotes(options.host), error.message()));
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw Error(ExitCode::kUsage, fmt::format("--port: expected one that is free on {}, got {}: {}",
                                              options.host, options.port, error.message()));
  }
}

}  // namespace

HttpServer::HttpServer(const HttpServerOptions& options, Handler handler, Refusal refusal, Metrics& metrics)
    : state_(std::make_unique<State>(options, std::move(handler), std::move(refusal), metrics)) {
  open(state_->acceptor, state_->io, options);
  asio::co_spawn(state_->io, listen(state_.get()), end_without_memory);
  for (int i = 0; i < options.num_threads; ++i)
    state_->threads.emplace_back([state = state_.get()] { state->io.run(); });
}

HttpServer::~HttpServer() {
  stop_listening();
  state_->io.stop();
  for (std::thread& thread : state_->threads) thread.join();
}

uint16_t HttpServer::port() const {
  return state_->acceptor.local_endpoint().port();
}

void HttpServer::stop_listening() {
  if (state_->ends.exchange(true)) return;
  asio::post(state_->io, [state = state_.get()] {
    ErrorCode ignored;
    state->acceptor.close(ignored);
  });
}

bool HttpServer::drain(std::chrono::milliseconds limit) {
  std::unique_lock lock(state_->mutex);
  return state_->left.wait_for(lock, limit, [this] { return state_->num_answering == 0; });
}

}  // namespace soliton
