#include "runtime/server/client_watch.h"

#include <poll.h>

#include <bit>

namespace soliton {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

constexpr size_t kReadAhead = 64 << 10;          // bytes of further requests that are taken before the answer
constexpr std::chrono::milliseconds kLook{200};  // between two looks at a client of whom no more is read

}  // namespace

ClientWatch::ClientWatch(asio::ip::tcp::socket& socket, boost::beast::flat_buffer& buffer,
                         std::function<void()> wake)
    : socket_(socket),
      buffer_(buffer),
      wake_(std::move(wake)),
      look_(socket.get_executor()),
      watched_(socket.get_executor(), asio::steady_timer::time_point::max()) {}

void ClientWatch::begin() {
  is_watching_ = true;
  needs_probe_ = has_half_closed_;
  num_looks_ = 0;
  read_ahead();
}

void ClientWatch::read_ahead() {
  if (has_half_closed_ || buffer_.size() >= kReadAhead) return look_again();
  constexpr size_t kAtOnce = 4096;
  socket_.async_read_some(buffer_.prepare(kAtOnce),
                          [this, alive = std::weak_ptr(alive_)](const ErrorCode& error, size_t num_bytes) {
                            if (alive.expired()) return;
                            buffer_.commit(num_bytes);
                            needs_probe_ = needs_probe_ || error == asio::error::eof;
                            has_half_closed_ = has_half_closed_ || error == asio::error::eof;
                            if (stops_) return stop();
                            has_gone_ = has_gone_ || (error && error != asio::error::eof);
                            go_on();
                          });
}

/// Of a client of whom no more is read, as there is no more or enough already, the system still says what became of it.
/// What it has not been able to send may hide that it has gone, so it is tried again and again, but ever more rarely.
void ClientWatch::look_again() {
  look_.expires_after(kLook);
  look_.async_wait([this, alive = std::weak_ptr(alive_)](const ErrorCode&) {
    if (alive.expired()) return;
    if (stops_) return stop();
    pollfd state{.fd = socket_.native_handle(), .events = 0, .revents = 0};
    ::poll(&state, 1, 0);
    ++num_looks_;
    needs_probe_ = needs_probe_ || std::has_single_bit(num_looks_);
    has_gone_ = has_gone_ || (state.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    go_on();
  });
}

void ClientWatch::go_on() {
  if (has_gone_ || needs_probe_) wake_();
  if (has_gone_) return stop();
  read_ahead();
}

void ClientWatch::stop() {
  is_watching_ = false;
  watched_.cancel();
}

asio::awaitable<void> ClientWatch::end() {
  stops_ = true;
  look_.cancel();
  ErrorCode ignored;
  socket_.cancel(ignored);
  while (is_watching_) co_await watched_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  stops_ = false;
}

}  // namespace soliton
