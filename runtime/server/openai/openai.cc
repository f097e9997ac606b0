#include "runtime/server/openai/openai.h"

#include "runtime/server/openai/openai_format.h"
#include "runtime/server/service.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kModelPath = "/v1/models/";

HttpReply answer_as_openai(Service& service, ApiKind kind, const HttpRequest& http,
                           const HttpHeaders& headers) {
  ApiRequest request = parse_api_request(kind, http.body, service.text().sampling);
  return service.complete(std::move(request), http, headers, [&](const ApiRequest& read) {
    return std::make_unique<OpenAiFormat>(service.text().tokenizer,
                                          OpenAiFormatOptions{.model = service.model(),
                                                              .is_chat = read.is_chat,
                                                              .tells_logprobs = read.logprobs,
                                                              .tells_ids = read.token_ids,
                                                              .names_ids = read.names_ids,
                                                              .includes_usage = read.includes_usage});
  });
}

Json model_object(const Service& service) {
  return {{"id", service.model()},
          {"object", "model"},
          {"created", service.created()},
          {"owned_by", "soliton"},
          {"max_model_len", service.context()}};
}

}  // namespace

HttpReply answer_chat(Service& service, const HttpRequest& request, const HttpHeaders& headers) {
  return answer_as_openai(service, ApiKind::kChat, request, headers);
}

HttpReply answer_completion(Service& service, const HttpRequest& request, const HttpHeaders& headers) {
  return answer_as_openai(service, ApiKind::kCompletion, request, headers);
}

HttpResponse tell_models(Service& service, const HttpRequest&) {
  return {.body = one_line({{"object", "list"}, {"data", Json::array({model_object(service)})}})};
}

HttpResponse tell_model(Service& service, const HttpRequest& request) {
  const std::string name = request.path.substr(kModelPath.size());
  if (name == service.model()) return {.body = one_line(model_object(service))};
  throw ApiError(404, fmt::format("model: expected {}, got {}", service.model(), in_quotes(name)), "model",
                 "model_not_found");
}

HttpResponse refuse_embeddings(Service&, const HttpRequest&) {
  throw ApiError(501, "embeddings: expected a request for text, as this server has no models for them", {},
                 "unsupported");
}

}  // namespace soliton
