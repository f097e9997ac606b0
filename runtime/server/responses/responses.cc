#include "runtime/server/responses/responses.h"

#include "runtime/server/responses/response_store.h"
#include "runtime/server/responses/responses_format.h"
#include "runtime/server/service.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kResponsePath = "/v1/responses/";

ApiError not_there(const std::string& param, const std::string& id, const char* what = "a response") {
  return ApiError(404, fmt::format("{}: expected {} that is kept, got {}", param, what, in_quotes(id)), param,
                  "not_found");
}

std::string id_of(const HttpRequest& request) {
  return request.path.substr(kResponsePath.size());
}

/// With the messages before it, and the items that it refers to.
ResponseRequest read(const Service& service, const HttpRequest& http) {
  const std::shared_ptr<ResponseStore> store = service.responses();
  const std::string scope = service.cache_scope(http, {});
  const auto messages = [&](const std::string& id) {
    const std::optional<ResponseStore::Entry> entry = store->find(id, scope);
    if (!entry) throw not_there("previous_response_id", id);
    return parse_ordered_body(entry->messages);
  };
  const auto item = [&](const std::string& id) {
    const std::optional<std::string> found = store->find_item(id, scope);
    if (!found) throw not_there("input", id, "an item of a response");
    return *found;
  };
  return read_response_request(http.body, {.messages = messages, .item = item});
}

ApiRequest chat_of(const Service& service, const ResponseRequest& request) {
  return read_api_request(ApiKind::kChat, request.chat, service.text().sampling, kResponseNames);
}

}  // namespace

HttpReply answer_response(Service& service, const HttpRequest& http, const HttpHeaders& headers) {
  const std::shared_ptr<ResponseStore> store = service.responses();
  const std::string scope = service.cache_scope(http, {});
  ResponseRequest request = read(service, http);
  ResponsesFormatOptions options{.model = service.model(), .settings = std::move(request.settings)};
  if (request.is_kept) {
    options.keep = [store, scope, messages = request.chat["messages"]](
                       const std::string& id, const Json& response, const Json& message) {
      Json all = messages;
      all.push_back(message);
      ResponseStore::Entry entry{.scope = scope, .messages = one_line(all), .response = one_line(response)};
      for (const Json& item : response["output"]) entry.items.emplace_back(item["id"], one_line(item));
      store->put(id, std::move(entry));
    };
  }
  return service.complete(chat_of(service, request), http, headers, [&](const ApiRequest&) {
    return std::make_unique<ResponsesFormat>(service.text().tokenizer, std::move(options));
  });
}

HttpReply count_tokens_of_response(Service& service, const HttpRequest& http, const HttpHeaders&) {
  const CompletionSetup setup = service.setup(chat_of(service, read(service, http)));
  return HttpResponse{
      .body = one_line({{"object", "response.input_tokens"}, {"input_tokens", setup.prompts[0].size()}})};
}

HttpResponse tell_response(Service& service, const HttpRequest& request) {
  const std::string id = id_of(request);
  const auto entry = service.responses()->find(id, service.cache_scope(request, {}));
  if (!entry) throw not_there("response_id", id);
  return {.body = entry->response};
}

HttpResponse delete_response(Service& service, const HttpRequest& request) {
  const std::string id = id_of(request);
  if (!service.responses()->erase(id, service.cache_scope(request, {}))) throw not_there("response_id", id);
  return {.body = one_line({{"id", id}, {"object", "response"}, {"deleted", true}})};
}

}  // namespace soliton
