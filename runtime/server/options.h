// The flags of soliton-server, read strictly.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/answer/options.h"
#include "runtime/server/http_server.h"
#include "runtime/server/scheduler.h"
#include "runtime/server/service.h"

namespace soliton {

struct ServerOptions {
  Options model;  // which, and what kernel and context; how tokens are chosen where a request does not say
  HttpServerOptions http;
  SchedulerOptions scheduler;
  ServiceOptions service;
  LogFormat log = LogFormat::kText;
  bool random_weights = false;     // of the kernel that model.kernel names, in place of a model
  int64_t cache_tokens = 0;        // that the KV pages hold; 0: as many as there is room for
  std::chrono::seconds grace{10};  // that answers under way have when the server is to end
};

/// Nothing after --help, which has then been printed. Throws Error (kUsage), and what reading a file of keys does.
std::optional<ServerOptions> parse_server_options(int argc, char** argv);

}  // namespace soliton
