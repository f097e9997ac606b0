// One connection: requests, answers, and whether the client is still there while it waits for one.
//
// A client that closes its connection and one that only says that no more requests follow (shutdown(SHUT_WR), nc -N) send
// the same packet. They differ in what they answer to our next one: an open socket takes it, a closed one resets the
// connection. So the end of what a client sends is answered at once by the first byte of the answer, of those that are the
// same for all ("HTTP/1.1 "), or by a comment where a stream of events is under way. Whoever has gone is known a packet's
// round trip later, and whoever waits gets the answer.
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <bit>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <utility>

#include "models/error.h"
#include "runtime/server/http_head.h"
#include "runtime/server/http_state.h"

namespace soliton {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr size_t kReadAhead = 64 << 10;  // bytes of further requests that are taken before the answer
constexpr size_t kMostBuffered =
    192 << 10;  // the same and what is read at once; also a chunk's header, and trailers
constexpr std::chrono::milliseconds kLook{200};  // between two looks at a client of whom no more is read
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

/// Whose limits count: one has a whole network of IPv6, of 64 bits.
std::string client_of(const asio::ip::address& address) {
  if (!address.is_v6()) return address.to_string();
  asio::ip::address_v6 network = address.to_v6();
  if (network.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, network).to_string();
  constexpr size_t kNetworkBytes = 8;
  asio::ip::address_v6::bytes_type bytes = network.to_bytes();
  std::fill(bytes.begin() + kNetworkBytes, bytes.end(), static_cast<unsigned char>(0));
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

/// Nobody takes all of the system's memory for what he does not read, and one whose machine is gone is noticed at last.
void set_up(tcp::socket& socket) {
  constexpr int kSendBytes = 256 << 10;
  constexpr int kKeepAliveS = 30;  // of silence
  constexpr int kProbeS = 10;
  constexpr int kProbes = 3;
  ErrorCode ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(kSendBytes), ignored);
  for (const auto& [name, value] :
       {std::pair(TCP_KEEPIDLE, kKeepAliveS), {TCP_KEEPINTVL, kProbeS}, {TCP_KEEPCNT, kProbes}})
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof(value));
}

// Of what a coroutine waits for, all arguments have names: g++ 12 ends temporaries of a ?: there twice.

class Connection {
 public:
  Connection(HttpServer::State& state, tcp::socket socket)
      : state_(&state),
        stream_(std::move(socket)),
        news_(stream_.get_executor(), asio::steady_timer::time_point::max()),
        look_(stream_.get_executor()),
        watched_(stream_.get_executor(), asio::steady_timer::time_point::max()) {
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
    if (has_half_closed_) co_return false;  // who reads beyond the end waits for it a second time
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
    watch();
    bool is_sent = true;
    while (is_sent && reply != nullptr) {
      std::shared_ptr<PendingReply> other;
      is_sent = co_await send_news(reply, other, route);
      reply = std::move(other);
    }
    co_await unwatch();
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
      if (std::exchange(needs_probe_, false)) {
        is_sent = co_await probe();
        continue;
      }
      ErrorCode woken;
      if (!has_gone_) co_await news_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      if (has_gone_) is_sent = false;
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

  /// From now on what else comes is read ahead, has_half_closed_ or has_gone_ is set when the client closes the
  /// connection, and the wait for news ended.
  void watch() {
    is_watching_ = true;
    needs_probe_ = has_half_closed_;
    streams_ = has_events_ = false;
    num_looks_ = 0;
    stream_.expires_never();
    read_ahead();
  }

  void read_ahead() {
    if (has_half_closed_ || buffer_.size() >= kReadAhead) return look_again();
    constexpr size_t kAtOnce = 4096;
    stream_.socket().async_read_some(buffer_.prepare(kAtOnce), [this, alive = std::weak_ptr(alive_)](
                                                                   const ErrorCode& error, size_t num_bytes) {
      if (alive.expired()) return;
      buffer_.commit(num_bytes);
      needs_probe_ = needs_probe_ || error == asio::error::eof;
      has_half_closed_ = has_half_closed_ || error == asio::error::eof;
      if (stops_watching_) return stop_watching();
      has_gone_ = has_gone_ || (error && error != asio::error::eof);
      go_on_watching();
    });
  }

  /// Of a client of whom no more is read, as there is no more or enough already, the system still says what became of it.
  /// What it has not been able to send may hide that it has gone, so it is tried again and again, but ever more rarely.
  void look_again() {
    look_.expires_after(kLook);
    look_.async_wait([this, alive = std::weak_ptr(alive_)](const ErrorCode&) {
      if (alive.expired()) return;
      if (stops_watching_) return stop_watching();
      pollfd state{.fd = stream_.socket().native_handle(), .events = 0, .revents = 0};
      ::poll(&state, 1, 0);
      ++num_looks_;
      needs_probe_ = needs_probe_ || std::has_single_bit(num_looks_);
      has_gone_ = has_gone_ || (state.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
      go_on_watching();
    });
  }

  void go_on_watching() {
    if (has_gone_ || needs_probe_) news_.cancel();
    if (has_gone_) return stop_watching();
    read_ahead();
  }
  void stop_watching() {
    is_watching_ = false;
    watched_.cancel();
  }

  /// Ends what watch() began: from then on the buffer is the reader's alone.
  asio::awaitable<void> unwatch() {
    stops_watching_ = true;
    look_.cancel();
    ErrorCode ignored;
    stream_.socket().cancel(ignored);
    while (is_watching_) co_await watched_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    stops_watching_ = false;
  }

  /// Nothing of what was put is taken: a write that waits for its client ends.
  void give_up() {
    has_gone_ = true;
    stream_.close();
  }

  HttpServer::State* state_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kMostBuffered};
  asio::steady_timer news_;     // waits for ever; cancelled when there are news
  asio::steady_timer look_;     // until the next look
  asio::steady_timer watched_;  // waits for ever; cancelled when nothing is read ahead any more
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
  bool is_watching_ = false;
  bool stops_watching_ = false;
  bool has_half_closed_ = false;  // no more comes from the client
  bool needs_probe_ = false;      // it is to be tried whether the client is there
  unsigned num_looks_ = 0;        // at it, since it waits for this answer
  bool has_gone_ = false;
};

}  // namespace

asio::awaitable<void> serve_connection(HttpServer::State* state, tcp::socket socket) {
  Connection connection(*state, std::move(socket));
  co_await connection.run();
}

}  // namespace soliton
