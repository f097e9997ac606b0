// What the connections of one HTTP server share, and how each is served; for http_server.cc and http_connection.cc alone.
#pragma once

#include <atomic>
#include <boost/asio.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/server/connections.h"
#include "runtime/server/http_server.h"

namespace soliton {

/// The coroutines of connections that are open end with `io`, and count themselves out then.
struct HttpServer::State {
  State(const HttpServerOptions& options, Handler handler, Refusal refusal, Metrics& metrics)
      : options(options),
        handler(std::move(handler)),
        refusal(std::move(refusal)),
        metrics(metrics),
        connections(std::make_shared<Connections>(options.limits)) {
    strands.reserve(kNumStrands);
    for (int i = 0; i < kNumStrands; ++i) strands.push_back(boost::asio::make_strand(io));
  }

  HttpServerOptions options;
  Handler handler;
  Refusal refusal;
  Metrics& metrics;
  std::shared_ptr<Connections>
      connections;  // also of the bodies that are still to be read when the server has ended
  std::atomic<bool> ends = false;
  std::atomic<int> num_refusing = 0;  // connections that are being told why there is no place for them
  std::mutex mutex;
  std::condition_variable left;
  size_t num_answering = 0;  // of those that have asked something; guarded by the mutex
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor acceptor{io};
  /// Connections take turns to have one of them. Asio (1.18) uses what it has not set when there is no memory for a strand, so
  /// they are made before there are any connections.
  static constexpr int kNumStrands = 256;
  std::vector<boost::asio::strand<boost::asio::io_context::executor_type>> strands;
  std::vector<std::thread> threads;

  /// Of connections that have a place; this is one that has come, or has gone.
  void count_connections() {
    metrics.set(Metrics::Gauge::kConnections, static_cast<double>(connections->size()));
  }
  void count_answering(int change) {
    const std::lock_guard lock(mutex);
    num_answering = static_cast<size_t>(static_cast<long>(num_answering) + change);
    left.notify_all();
  }
};

/// Reads requests of a client and sends what the handler says, one after the other, until either side ends it.
boost::asio::awaitable<void> serve_connection(HttpServer::State* state, boost::asio::ip::tcp::socket socket);

}  // namespace soliton
