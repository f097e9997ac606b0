#include "runtime/server/ollama/ollama.h"

#include "runtime/server/ollama/ollama_format.h"
#include "runtime/server/service.h"
#include "runtime/server/timestamp.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

// What clients compare with the version from which Ollama streams calls of functions.
constexpr const char* kOllamaVersion = "0.12.0";

/// As Ollama answers whoever asks for a model to be loaded, which it is.
HttpResponse loaded(const Service& service, bool is_chat) {
  Json answer = {{"model", service.model()}, {"created_at", timestamp_now()}};
  if (is_chat) {
    answer["message"] = {{"role", "assistant"}, {"content", ""}};
  } else {
    answer["response"] = "";
  }
  answer["done_reason"] = "load";
  answer["done"] = true;
  return {.body = one_line(answer)};
}

HttpReply answer_ollama(Service& service, const OllamaRequest& request, const HttpRequest& http,
                        const HttpHeaders& headers, bool is_chat) {
  ApiRequest read = read_api_request(request.kind, request.body, service.text().sampling);
  if (request.only_loads) return loaded(service, is_chat);
  return service.complete(std::move(read), http, headers, [&](const ApiRequest&) {
    return std::make_unique<OllamaFormat>(service.text().tokenizer, service.model(), is_chat);
  });
}

Json details() {
  return {{"parent_model", ""},        {"format", "safetensors"}, {"family", ""},
          {"families", Json::array()}, {"parameter_size", ""},    {"quantization_level", ""}};
}

/// What there is in lists of models.
Json listed(const Service& service) {
  return {{"name", service.model()},
          {"model", service.model()},
          {"modified_at", timestamp_now()},
          {"size", 0},
          {"digest", ""},
          {"details", details()}};
}

}  // namespace

HttpReply answer_ollama_chat(Service& service, const HttpRequest& http, const HttpHeaders& headers) {
  return answer_ollama(service, read_ollama_chat(http.body), http, headers, true);
}

HttpReply answer_ollama_generate(Service& service, const HttpRequest& http, const HttpHeaders& headers) {
  const bool has_template = service.text().prompter.has_template();
  return answer_ollama(service, read_ollama_generate(http.body, has_template), http, headers, false);
}

HttpReply show_ollama_model(Service& service, const HttpRequest& http, const HttpHeaders&) {
  try {
    const nlohmann::json document = parse_body(http.body);
    const JsonView body(document, kBodyName);
    for (const char* name : {"model", "name"}) {  // there is one, whatever it is called
      if (!body[name].is_null()) body[name].string();
    }
  } catch (const Error& error) {
    throw api_error_of(error, kBodyName);
  }
  Json capabilities = {"completion"};
  if (service.syntax().describes_tools) capabilities.push_back("tools");
  if (service.syntax().reasoning) capabilities.push_back("thinking");
  return HttpResponse{
      .body =
          one_line({{"modelfile", ""},
                    {"parameters", ""},
                    {"template", ""},
                    {"details", details()},
                    {"model_info",
                     {{"general.architecture", "soliton"}, {"soliton.context_length", service.context()}}},
                    {"capabilities", std::move(capabilities)},
                    {"modified_at", timestamp_now()}})};
}

HttpResponse tell_ollama_tags(Service& service, const HttpRequest&) {
  return {.body = one_line({{"models", Json::array({listed(service)})}})};
}

HttpResponse tell_ollama_processes(Service& service, const HttpRequest&) {
  Json running = listed(service);
  running["expires_at"] = "9999-12-31T23:59:59Z";
  running["size_vram"] = 0;
  running["context_length"] = service.context();
  return {.body = one_line({{"models", Json::array({std::move(running)})}})};
}

HttpResponse tell_ollama_version(Service&, const HttpRequest&) {
  return {.body = one_line({{"version", kOllamaVersion}})};
}

}  // namespace soliton
