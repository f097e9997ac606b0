#include "runtime/server/routes.h"

#include <algorithm>
#include <array>

#include "runtime/server/anthropic/messages.h"
#include "runtime/server/llama/llama.h"
#include "runtime/server/ollama/ollama.h"
#include "runtime/server/openai/openai.h"
#include "runtime/server/openapi.h"
#include "runtime/server/responses/responses.h"
#include "runtime/server/service.h"

namespace soliton {
namespace {

constexpr std::string_view kVersion = "/v1";

constexpr std::array kRoutes = {
    // ---- OpenAI
    Route{.method = "POST", .path = "/v1/chat/completions", .answer_later = answer_chat},
    Route{.method = "POST", .path = "/v1/completions", .answer_later = answer_completion},
    Route{.path = "/v1/models", .answer = tell_models}, Route{.path = "/v1/models/", .answer = tell_model},
    Route{.method = "POST", .path = "/v1/responses", .answer_later = answer_response},
    Route{.method = "POST", .path = "/v1/responses/input_tokens", .answer_later = count_tokens_of_response},
    Route{.path = "/v1/responses/", .answer = tell_response},
    Route{.method = "DELETE", .path = "/v1/responses/", .answer = delete_response},
    Route{.method = "POST", .path = "/v1/embeddings", .answer = refuse_embeddings},
    // ---- Anthropic
    Route{
        .method = "POST", .path = "/v1/messages", .refuse = anthropic_error, .answer_later = answer_messages},
    Route{.method = "POST",
          .path = "/v1/messages/count_tokens",
          .refuse = anthropic_error,
          .answer_later = count_tokens_of_messages},
    // ---- Ollama
    Route{.method = "POST", .path = "/api/chat", .refuse = ollama_error, .answer_later = answer_ollama_chat},
    Route{.method = "POST",
          .path = "/api/generate",
          .refuse = ollama_error,
          .answer_later = answer_ollama_generate},
    Route{.method = "POST", .path = "/api/show", .refuse = ollama_error, .answer_later = show_ollama_model},
    Route{.method = "POST", .path = "/api/embed", .refuse = ollama_error, .answer = refuse_embeddings},
    Route{.method = "POST", .path = "/api/embeddings", .refuse = ollama_error, .answer = refuse_embeddings},
    Route{.path = "/api/tags", .refuse = ollama_error, .answer = tell_ollama_tags},
    Route{.path = "/api/ps", .refuse = ollama_error, .answer = tell_ollama_processes},
    Route{.path = "/api/version", .refuse = ollama_error, .answer = tell_ollama_version},
    // ---- Of a server, with what llama.cpp's tells
    Route{.method = "POST", .path = "/tokenize", .answer_later = answer_tokenize},
    Route{.method = "POST", .path = "/detokenize", .answer_later = answer_detokenize},
    Route{.method = "POST", .path = "/apply-template", .answer_later = answer_apply_template},
    Route{.path = "/props", .answer = tell_properties}, Route{.path = "/slots", .answer = tell_slots},
    Route{.path = "/tokenizer_info", .answer = tell_tokenizer},
    Route{.path = "/health",
          .needs_key = false,
          .answer = [](Service& service, const HttpRequest&) { return service.health(); }},
    Route{.path = "/metrics",
          .answer = [](Service& service, const HttpRequest&) { return service.metrics(); }},
    Route{.path = "/openapi.json", .needs_key = false, .answer = [](Service&, const HttpRequest&) {
            return page_response(openapi_file());
          }}};

bool is_at(const Route& route, std::string_view path) {
  if (!route.path.ends_with('/')) return path == route.path;
  return path.starts_with(route.path) && path.size() > route.path.size();
}

bool is_there(std::string_view path) {
  return std::ranges::any_of(kRoutes, [&](const Route& route) { return is_at(route, path); });
}

}  // namespace

std::span<const Route> routes() {
  return kRoutes;
}

std::string routed_path(std::string_view asked) {
  std::string path;
  for (const char c : asked) {
    if (c != '/' || !path.ends_with('/')) path += c;
  }
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (is_there(path)) return path;
  const std::string with_version = std::string(kVersion) + path;
  return is_there(with_version) ? with_version : path;
}

const Route* find_route(std::string_view method, std::string_view path) {
  // A path of its own goes before one that others begin with.
  const auto rank = [&](const Route& route) { return std::pair(route.path == path, route.method == method); };
  const Route* found = nullptr;
  for (const Route& route : kRoutes) {
    if (is_at(route, path) && (found == nullptr || rank(route) > rank(*found))) found = &route;
  }
  return found;
}

std::string methods_of(const Route& route) {
  std::string methods;
  for (const Route& each : kRoutes) {
    if (each.path == route.path) methods += (methods.empty() ? "" : ", ") + std::string(each.method);
  }
  return methods;
}

}  // namespace soliton
