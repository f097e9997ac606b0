#include "runtime/server/http_server.h"

#include <utility>

#include "models/error.h"
#include "runtime/server/http_state.h"

namespace soliton {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

asio::awaitable<void> listen(HttpServer::State* state) {
  for (size_t next = 0; !state->ends; ++next) {
    ErrorCode error;
    tcp::socket socket = co_await state->acceptor.async_accept(
        state->strands[next % state->strands.size()], asio::redirect_error(asio::use_awaitable, error));
    if (state->ends) co_return;
    if (error) {  // such as too many open files: others may close theirs
      constexpr std::chrono::milliseconds kPause{100};
      asio::steady_timer pause(state->io, kPause);
      co_await pause.async_wait(asio::use_awaitable);
      continue;
    }
    const auto executor = socket.get_executor();
    asio::co_spawn(executor, serve_connection(state, std::move(socket)), asio::detached);
  }
}

/// A server that has no memory to take connections ends, as what is thrown goes no further, instead of being deaf.
void end_without_memory(const std::exception_ptr& failure) noexcept {
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

struct HttpListener::State {
  asio::io_context io;
  tcp::acceptor acceptor{io};
};

HttpListener::HttpListener(const HttpServerOptions& options) : state_(std::make_unique<State>()) {
  open(state_->acceptor, state_->io, options);
}
HttpListener::HttpListener(HttpListener&& other) noexcept = default;
HttpListener::~HttpListener() = default;

HttpServer::HttpServer(HttpListener listener, const HttpServerOptions& options, Handler handler,
                       Refusal refusal, Metrics& metrics)
    : state_(std::make_unique<State>(options, std::move(handler), std::move(refusal), metrics)) {
  tcp::acceptor& bound = listener.state_->acceptor;
  const tcp protocol = bound.local_endpoint().protocol();
  state_->acceptor.assign(protocol, bound.release());
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
