// soliton-server: a model behind OpenAI's API. What it says goes to stderr.
#include <csignal>
#include <thread>

#include "layout/page.h"
#include "models/model_config.h"
#include "runtime/cuda_driver.h"
#include "runtime/find_model.h"
#include "runtime/program.h"
#include "runtime/server/http_server.h"
#include "runtime/server/options.h"

namespace soliton {
namespace {

constexpr std::chrono::milliseconds kLook{200};        // between two looks at whether the server is to end
constexpr std::chrono::milliseconds kLastWords{2000};  // for clients to take what ended answers are told

/// SIGINT and SIGTERM, from here on of all threads, are waited for by one.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  /// Whether one comes before the time is over.
  bool wait(std::chrono::milliseconds time) const {
    constexpr long kNsPerMs = 1'000'000;
    const timespec limit{.tv_sec = time.count() / 1000, .tv_nsec = time.count() % 1000 * kNsPerMs};
    return sigtimedwait(&signals_, nullptr, &limit) >= 0;
  }

 private:
  sigset_t signals_;
};

/// Ends in order: no new requests, those under way as long as the grace lasts or until a second signal, then all.
void shut_down(const ServerOptions& options, const EndSignals& signals, HttpServer& server, Service& service,
               Scheduler& scheduler) {
  fmt::print(stderr, "Ending: answers under way have {} s\n", options.grace.count());
  service.end();
  server.stop_listening();
  const auto limit = std::chrono::steady_clock::now() + options.grace;
  while (!scheduler.is_idle() && std::chrono::steady_clock::now() < limit && !scheduler.failure()) {
    if (signals.wait(kLook)) break;
  }
  scheduler.stop();
  server.drain(kLastWords);
}

int serve(ServerOptions options) {
  options.model.model = find_model(options.model.model).string();
  if (options.service.model.empty()) options.service.model = model_name_of(options.model.model);
  const EndSignals signals;  // before there are threads
  const TextSide text(options.model);
  const int context = choose_context(options.model, text.config);
  const int64_t pool_tokens = choose_pool_tokens(options.model, text.config, context, options.cache_tokens);
  const std::unique_ptr<Engine> engine = open_engine(options.model, text.config, context, pool_tokens);
  options.scheduler.context = context;
  Metrics metrics;
  Scheduler scheduler(*engine, options.scheduler, metrics);
  Service service(text, scheduler, metrics, options.service);
  HttpServer server(
      options.http, [&](const HttpRequest& request) { return service.answer(request); }, Service::refuse,
      metrics);
  scheduler.start();
  fmt::print(stderr, "Serving {} at http://{}:{}, up to {} samples at once\n", options.service.model,
             options.http.host, server.port(), scheduler.max_rows());
  while (!signals.wait(kLook) && !scheduler.failure()) {
  }
  shut_down(options, signals, server, service, scheduler);
  if (const std::optional<Error> failure = scheduler.failure()) throw *failure;
  return 0;
}

int run(int argc, char** argv) {
  std::optional<ServerOptions> options = parse_server_options(argc, argv);
  return options ? serve(std::move(*options)) : 0;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  return soliton::run_program("soliton-server", soliton::run, argc, argv);
}
