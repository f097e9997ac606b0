// soliton-server: a model behind OpenAI's API. What it says goes to stderr.
#include <limits.h>
#include <malloc.h>
#include <unistd.h>

#include "runtime/program/program.h"
#include "runtime/server/end_signals.h"
#include "runtime/server/http_server.h"
#include "runtime/server/options.h"
#include "runtime/server/served_model.h"

namespace soliton {
namespace {

constexpr std::chrono::milliseconds kLook{200};     // between two looks at whether the server is to end,
constexpr std::chrono::milliseconds kIdleLook{20};  // and whether all answers have

/// Empty if it has none.
std::string name_of_this_machine() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

/// Ends in order: no new requests, those under way as long as the grace lasts, then all.
void shut_down(const ServerOptions& options, HttpServer& server, Service& service, Scheduler& scheduler) {
  service.end();
  server.stop_listening();
  say("Ending: answers under way have {} s", options.grace.count());
  const auto limit = std::chrono::steady_clock::now() + options.grace;
  while (!(service.is_idle() && scheduler.is_idle()) && std::chrono::steady_clock::now() < limit) {
    if (scheduler.failure()) break;
    std::this_thread::sleep_for(kIdleLook);
  }
  scheduler.stop();
  server.drain(EndSignals::kLastWords);
}

/// Large bodies go back to the system when they have been read: by itself the allocator would keep some for each thread, of
/// whatever size has once been freed. What is freed joins its neighbours at once: else a large piece, asked for or freed,
/// joins all that wait for it, which took 30 ms after a large body, with the lock that others need to free something.
void set_up_allocator() {
  constexpr int kLargeBytes = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  ::mallopt(M_MXFAST, 0);
}

int serve(ServerOptions options) {
  set_up_allocator();
  EndSignals signals;                   // before there are threads
  HttpListener listener(options.http);  // before the weights, which take long
  const std::unique_ptr<ServedModel> model = open_served_model(options);
  if (options.service.model.empty()) options.service.model = model->name();
  for (const std::string& name : {options.http.host, name_of_this_machine()})
    options.service.hosts.push_back(name);
  options.scheduler.context = model->context();
  Metrics metrics;
  RequestLog log(options.log);
  options.service.log = [&log](const RequestRecord& record) { log.put(record); };
  Scheduler scheduler(model->engine(), options.scheduler, metrics, model->take_draft_model());
  Service service(model->text(), scheduler, metrics, options.service);
  signals.hold(options.grace);
  HttpServer server(
      std::move(listener), options.http,
      [&](HttpRequest request) { return service.answer(std::move(request)); }, Service::refuse, metrics);
  scheduler.start();
  say("Serving {} at http://{}:{}, up to {} samples at once", options.service.model, options.http.host,
      server.port(), scheduler.max_rows());
  while (!signals.wait(kLook) && !scheduler.failure()) {
  }
  if (const std::optional<Error> failure = scheduler.failure())
    signals.end(static_cast<int>(failure->code()));
  shut_down(options, server, service, scheduler);
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
