// soliton-server: a model behind OpenAI's API. What it says goes to stderr.
#include <limits.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "runtime/program.h"
#include "runtime/server/http_server.h"
#include "runtime/server/options.h"
#include "runtime/server/served_model.h"

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

/// Empty if it has none.
std::string name_of_this_machine() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

/// Ends in order: no new requests, those under way as long as the grace lasts or until a second signal, then all.
void shut_down(const ServerOptions& options, const EndSignals& signals, HttpServer& server, Service& service,
               Scheduler& scheduler) {
  say("Ending: answers under way have {} s", options.grace.count());
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
  const EndSignals signals;  // before there are threads
  const std::unique_ptr<ServedModel> model = open_served_model(options);
  if (options.service.model.empty()) options.service.model = model->name();
  for (const std::string& name : {options.http.host, name_of_this_machine()})
    options.service.hosts.push_back(name);
  options.scheduler.context = model->context();
  Metrics metrics;
  Scheduler scheduler(model->engine(), options.scheduler, metrics);
  Service service(model->text(), scheduler, metrics, options.service);
  HttpServer server(
      options.http, [&](const HttpRequest& request) { return service.answer(request); }, Service::refuse,
      metrics);
  scheduler.start();
  say("Serving {} at http://{}:{}, up to {} samples at once", options.service.model, options.http.host,
      server.port(), scheduler.max_rows());
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
