// Whether the client of a connection is still there while it waits for an answer; for http_connection.cc alone.
//
// A client that closes its connection and one that only says that no more requests follow (shutdown(SHUT_WR), nc -N) send
// the same packet. They differ in what they answer to our next one: an open socket takes it, a closed one resets the
// connection. So whoever sends the answer is asked for a probe: its first byte, or a comment in a stream of events. Whoever
// has gone is known a packet's round trip later, and whoever waits gets the answer.
#pragma once

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <functional>
#include <memory>

namespace soliton {

/// Its functions are called on the connection's strand.
class ClientWatch {
 public:
  /// Socket and buffer must outlive it. `wake` is called when the client has gone or should be tried.
  ClientWatch(boost::asio::ip::tcp::socket& socket, boost::beast::flat_buffer& buffer,
              std::function<void()> wake);

  /// From now on what else the client sends is read ahead into the buffer, up to a limit, until end().
  void begin();
  /// From then on the buffer is the reader's alone.
  boost::asio::awaitable<void> end();

  bool has_gone() const { return has_gone_; }
  /// The client sends no more, whether it has gone or not. Whoever read on would wait for the end a second time.
  bool has_half_closed() const { return has_half_closed_; }
  /// Whether something should be sent now to see if the client is there; once each time.
  bool take_probe() { return std::exchange(needs_probe_, false); }
  /// The connection has been given up from this side.
  void give_up() { has_gone_ = true; }

 private:
  void read_ahead();
  void look_again();
  void go_on();
  void stop();

  boost::asio::ip::tcp::socket& socket_;
  boost::beast::flat_buffer& buffer_;
  std::function<void()> wake_;
  boost::asio::steady_timer look_;     // until the next look
  boost::asio::steady_timer watched_;  // waits for ever; cancelled when nothing is read ahead any more
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  bool is_watching_ = false;
  bool stops_ = false;
  bool has_half_closed_ = false;
  bool needs_probe_ = false;
  bool has_gone_ = false;
  unsigned num_looks_ = 0;  // since begin()
};

}  // namespace soliton
