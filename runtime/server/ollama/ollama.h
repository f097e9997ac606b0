// Ollama's API. Its requests become chats or completions as OpenAI's API has them, which are read as those are.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/server/api_request.h"
#include "runtime/server/routes.h"

namespace soliton {

HttpReply answer_ollama_chat(Service& service, const HttpRequest& request, const HttpHeaders& headers);
HttpReply answer_ollama_generate(Service& service, const HttpRequest& request, const HttpHeaders& headers);
HttpReply show_ollama_model(Service& service, const HttpRequest& request, const HttpHeaders& headers);
HttpResponse tell_ollama_tags(Service& service, const HttpRequest& request);
HttpResponse tell_ollama_processes(Service& service, const HttpRequest& request);
HttpResponse tell_ollama_version(Service& service, const HttpRequest& request);
/// {"error": "..."}.
HttpResponse ollama_error(const ApiError& error);

/// What a request of Ollama's says.
struct OllamaRequest {
  ApiKind kind = ApiKind::kChat;  // what the body is one of
  nlohmann::ordered_json body;    // of OpenAI's API, that says the same
  /// Has no prompt or no message, in whose place the body has an empty one: the model is to be ready, and to say nothing.
  bool only_loads = false;
};
/// Of /api/chat, or of /api/generate: with a template, unless the request is raw. Throws ApiError.
OllamaRequest read_ollama_chat(const std::string& body);
OllamaRequest read_ollama_generate(const std::string& body, bool has_template);

}  // namespace soliton
