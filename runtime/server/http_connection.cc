// One connection: requests, and answers, those that come later too.
#include <array>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <utility>

#include "models/error.h"
#include "runtime/server/client_watch.h"
#include "runtime/server/http_head.h"
#include "runtime/server/http_socket.h"
#include "runtime/server/http_state.h"

namespace soliton {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

// Of what has come and is not used yet: requests read ahead, and a piece that is read at once; so a chunk's header, and what
// stands behind the last chunk, cannot be longer.
constexpr size_t kMostBuffered = 192 << 10;
constexpr const char* kEventStream = "text/event-stream";

/// What a request is refused with before it is whole; 0: the connection just ends.
int status_of(const ErrorCode& error, bool is_header) {
  if (error == http::error::header_limit) return 431;
  if (error == http::error::buffer_overflow) return is_header ? 431 : 400;
  if (error == http::error::body_limit) return 413;
  if (error == beast::error::timeout) return 0;
  return error.category() == make_error_code(http::error::bad_method).category() &&
                 error != http::error::end_of_stream && error != http::error::partial_message
             ? 400
             : 0;
}

// Of what a coroutine waits for, all arguments have names: g++ 12 ends temporaries of a ?: there twice.

class Connection {
 public:
  Connection(HttpServer::State& state, tcp::socket socket)
      : state_(&state),
        stream_(std::move(socket)),
        news_(stream_.get_executor(), asio::steady_timer::time_point::max()),
        watch_(stream_.socket(), buffer_, [this] { news_.cancel(); }) {
    ErrorCode ignored;
    client_ = client_of(stream_.socket().remote_endpoint(ignored).address());
    entry_ = state_->connections->enter(client_, [this, executor = stream_.get_executor()] {
      asio::post(executor, [alive = std::weak_ptr(alive_), this] {
        if (!alive.expired()) make_room();
      });
    });
    state_->count_connections();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    entry_.reset();
    state_->count_connections();
  }

  asio::awaitable<void> run() {
    set_up(stream_.socket());
    if (entry_ == nullptr) {
      const std::string reason = "too many connections";
      co_await refuse(503, reason);
    } else {
      while (co_await serve()) {
      }
    }
    ErrorCode ignored;
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

  /// It has lost its place to another one.
  void make_room() {
    lost_place_ = true;
    stream_.cancel();
  }

  // ---- Requests

  /// One request. Returns whether another may come.
  asio::awaitable<bool> serve() {
    entry_->rest();
    if (!co_await wait_for_request()) co_return false;
    Parser parser;
    parser.header_limit(static_cast<uint32_t>(limits().header_bytes));
    parser.body_limit(limits().body_bytes);
    if (!co_await read(parser) || !entry_->work()) co_return false;
    const Answering answering(*state_);
    keeps_alive_ = parser.get().keep_alive();
    version_ = parser.get().version();
    is_head_ = parser.get().method() == http::verb::head;
    num_told_ = 0;
    HttpReply reply = answer(take(parser.get()));
    bool is_sent = false;
    if (reply.pending == nullptr) {
      state_->metrics.count_answer(reply.route, reply.response.status);
      is_sent = co_await send(reply.response);
    } else {
      is_sent = co_await send_later(reply.pending, reply.route);
    }
    const bool goes_on = is_sent && keeps_alive_ && !state_->ends;
    co_return goes_on;
  }

  /// Until its first byte has come, which may take longer than the rest of it.
  asio::awaitable<bool> wait_for_request() {
    if (buffer_.size() > 0) co_return true;
    if (watch_.has_half_closed()) co_return false;
    ErrorCode error;
    stream_.expires_after(limits().idle);
    const size_t num_bytes = co_await stream_.async_read_some(
        buffer_.prepare(4096), asio::redirect_error(asio::use_awaitable, error));
    buffer_.commit(num_bytes);
    co_return !error && num_bytes > 0 && !lost_place_;
  }

  asio::awaitable<bool> read(Parser& parser) {
    ErrorCode error;
    stream_.expires_after(limits().header);
    co_await http::async_read_header(stream_, buffer_, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
    if (lost_place_) co_return false;
    if (!error) {
      const std::optional<std::string> complaint = complaint_of_header(parser.get());
      if (complaint) {
        co_await refuse(400, *complaint);
        co_return false;
      }
      if (beast::iequals(parser.get()[http::field::expect], "100-continue") && !parser.is_done()) {
        const std::string go_on =
            std::string(head_beginning(parser.get().version())) + "100 Continue\r\n\r\n";
        const asio::const_buffer bytes = asio::buffer(go_on);
        co_await asio::async_write(stream_, bytes, asio::redirect_error(asio::use_awaitable, error));
      }
      const bool is_read = co_await read_body(parser, error);
      if (!is_read) co_return false;
    }
    if (!error) co_return true;
    if (const int status = status_of(error, !parser.is_header_done()); status != 0) {
      const std::string reason = reason_of(status, error);
      co_await refuse(status, reason);
    }
    co_return false;
  }

  /// Returns false if it has been said that there is no room for it.
  asio::awaitable<bool> read_body(Parser& parser, ErrorCode& error) {
    stream_.expires_after(limits().body);
    parser.eager(true);
    while (!error && !parser.is_done()) {
      co_await http::async_read_some(stream_, buffer_, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
      if (!lost_place_ && entry_->grow(parser.get().body().size())) continue;
      std::string().swap(parser.get().body());  // an assignment would keep its memory
      const std::string reason = "too much is on its way: expected bodies that come sooner, or fewer at once";
      co_await refuse(503, reason);
      co_return false;
    }
    co_return true;
  }

  std::string reason_of(int status, const ErrorCode& error) const {
    if (status == 413) return fmt::format("expected a body of at most {} bytes", limits().body_bytes);
    if (status == 431) return fmt::format("expected a header of at most {} bytes", limits().header_bytes);
    return "expected an HTTP request, got: " + error.message();
  }

  HttpRequest take(http::request<http::string_body>& message) {
    const auto header = [&](auto name) { return std::string(message[name]); };
    const std::string_view target(message.target().data(), message.target().size());
    return {.method = std::string(message.method_string()),
            .path = std::string(target.substr(0, target.find('?'))),
            .body = std::move(message.body()),
            .authorization = header(http::field::authorization),
            .api_key = header("x-api-key"),
            .origin = header(http::field::origin),
            .host = header(http::field::host),
            .request_headers = header(http::field::access_control_request_headers),
            .peer = client_,
            .room = entry_->keep_body()};
  }

  HttpReply answer(HttpRequest request) {
    try {
      return state_->handler(std::move(request));
    } catch (const std::exception& error) {
      return state_->refusal(500, error.what());
    }
  }

  /// Tells why the connection ends; then takes what the client is still sending for a while, as it would not read the
  /// answer otherwise. Not of too many at once: such connections have no place, and would take as much as one.
  asio::awaitable<void> refuse(int status, const std::string& reason) {
    constexpr size_t kMostBytes = 64 << 20;
    constexpr std::chrono::seconds kMostTime{5};
    constexpr int kMostAtOnce = 64;
    struct Refusing {
      std::atomic<int>& number;
      ~Refusing() { --number; }
    };
    const bool is_crowded = ++state_->num_refusing > kMostAtOnce;
    const Refusing refusing{state_->num_refusing};
    keeps_alive_ = false;
    state_->metrics.count_answer("", status);
    const HttpResponse response = state_->refusal(status, reason);
    if (!co_await send(response) || is_crowded) co_return;
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

  HeadOptions head_options(Framing framing) const {
    return {.version = version_, .keeps_alive = keeps_alive_ && !state_->ends, .framing = framing};
  }

  /// The bytes in one piece or two, within the time that a client has to take them.
  asio::awaitable<bool> write(std::string_view first, std::string_view second) {
    const std::array<asio::const_buffer, 2> bytes = {asio::const_buffer(first.data(), first.size()),
                                                     asio::const_buffer(second.data(), second.size())};
    ErrorCode error;
    stream_.expires_after(limits().write);
    co_await asio::async_write(stream_, bytes, asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
  }

  asio::awaitable<bool> send(const HttpResponse& response) {
    const std::string head = head_text(response, head_options(Framing::kLength));
    const std::string_view rest = std::string_view(head).substr(std::exchange(num_told_, 0));
    const std::string_view body = is_head_ ? std::string_view() : std::string_view(response.body);
    const bool is_sent = co_await write(rest, body);
    co_return is_sent;
  }

  /// An answer that comes from other threads. Returns false if the client has gone.
  asio::awaitable<bool> send_later(std::shared_ptr<PendingReply> reply, const std::string& route) {
    streams_ = has_events_ = false;
    stream_.expires_never();
    watch_.begin();
    bool is_sent = true;
    while (is_sent && reply != nullptr) {
      std::shared_ptr<PendingReply> other;
      is_sent = co_await send_news(reply, other, route);
      reply = std::move(other);
    }
    co_await watch_.end();
    co_return is_sent;
  }

  /// What one reply tells, to its end or until another one goes on.
  asio::awaitable<bool> send_news(const std::shared_ptr<PendingReply>& reply,
                                  std::shared_ptr<PendingReply>& other, const std::string& route) {
    // Whoever answers calls this as long as the coroutine lives.
    const Listening listening{*reply};
    reply->on_ready([this, current = std::weak_ptr(reply), executor = stream_.get_executor()] {
      asio::post(executor, [alive = std::weak_ptr(alive_), this, current] {
        if (alive.expired()) return;
        const std::shared_ptr<PendingReply> told = current.lock();
        if (told != nullptr && told->is_overrun()) give_up();
        news_.cancel();
      });
    });
    bool is_sent = true;
    for (bool is_complete = false; is_sent && !is_complete;) {
      PendingReply::News news = reply->take();
      is_complete = news.is_complete;
      // Whatever comes while something is sent wakes nobody: there is another look before the wait.
      const bool has_news = news.response || !news.pieces.empty();
      if (news.response) state_->metrics.count_answer(route, news.response->status);
      if (news.response && !news.is_stream) {
        is_sent = co_await send(*news.response);
        continue;
      }
      if (news.response) is_sent = co_await send_stream_head(*news.response);
      if (is_sent && !news.pieces.empty()) is_sent = co_await send_piece(news.pieces);
      if (news.other != nullptr) {
        other = std::move(news.other);
        co_return is_sent;
      }
      if (is_sent && is_complete && streams_) is_sent = co_await send_stream_end();
      if (is_complete || !is_sent || has_news) continue;
      if (watch_.take_probe()) {
        is_sent = co_await probe();
        continue;
      }
      ErrorCode woken;
      if (!watch_.has_gone()) co_await news_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      if (watch_.has_gone()) is_sent = false;
    }
    co_return is_sent;
  }

  asio::awaitable<bool> send_stream_head(const HttpResponse& response) {
    streams_ = true;
    has_events_ = response.content_type == kEventStream;
    if (version_ < 11) keeps_alive_ = false;  // the end of the connection is that of the stream
    const Framing framing = version_ < 11 ? Framing::kClose : Framing::kChunked;
    const std::string head = head_text(response, head_options(framing));
    const std::string_view rest = std::string_view(head).substr(std::exchange(num_told_, 0));
    const bool is_sent = co_await write(rest, {});
    co_return is_sent;
  }

  asio::awaitable<bool> send_piece(const std::string& piece) {
    const std::string size = version_ < 11 ? std::string() : fmt::format("{:x}\r\n", piece.size());
    const std::string_view end = version_ < 11 ? "" : "\r\n";
    const std::string text = size + piece + std::string(end);
    const bool is_sent = co_await write(text, {});
    co_return is_sent;
  }

  asio::awaitable<bool> send_stream_end() {
    streams_ = false;
    const std::string_view end = version_ < 11 ? "" : "0\r\n\r\n";
    const bool is_sent = co_await write(end, {});
    co_return is_sent;
  }

  // ---- Clients that go away

  /// Sends what a client that has closed its connection answers with a reset, and another one takes as part of the answer.
  asio::awaitable<bool> probe() {
    bool is_sent = true;
    if (!streams_) {
      const std::string_view beginning = head_beginning(version_).substr(num_told_).substr(0, 1);
      num_told_ += beginning.size();
      is_sent = co_await write(beginning, {});
    } else if (has_events_) {
      const std::string comment = ":\n\n";
      is_sent = co_await send_piece(comment);
    }
    co_return is_sent;
  }

  /// Nothing of what was put is taken: a write that waits for its client ends.
  void give_up() {
    watch_.give_up();
    stream_.close();
  }

  HttpServer::State* state_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kMostBuffered};
  asio::steady_timer news_;  // waits for ever; cancelled when there are news
  ClientWatch watch_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  std::string client_;
  std::unique_ptr<Connections::Entry> entry_;  // null: there was no place
  bool keeps_alive_ = true;
  unsigned version_ = 11;
  bool is_head_ = false;
  size_t num_told_ = 0;      // bytes of the answer's head that have been sent
  bool streams_ = false;     // the head of a stream has been sent
  bool has_events_ = false;  // and it is one of events
  bool lost_place_ = false;
};

}  // namespace

asio::awaitable<void> serve_connection(HttpServer::State* state, tcp::socket socket) {
  Connection connection(*state, std::move(socket));
  co_await connection.run();
}

}  // namespace soliton
