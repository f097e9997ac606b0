#include "runtime/server/anthropic/messages.h"

#include "runtime/server/anthropic/messages_format.h"
#include "runtime/server/service.h"

namespace soliton {

HttpReply answer_messages(Service& service, const HttpRequest& request, const HttpHeaders& headers) {
  const nlohmann::ordered_json chat = chat_of_messages(request.body, true);
  return service.complete(
      read_api_request(ApiKind::kChat, chat, service.text().sampling, kMessageNames), request, headers,
      [&](const ApiRequest&) { return std::make_unique<MessagesFormat>(service.model()); });
}

HttpReply count_tokens_of_messages(Service& service, const HttpRequest& request, const HttpHeaders&) {
  const nlohmann::ordered_json chat = chat_of_messages(request.body, false);
  const CompletionSetup setup =
      service.setup(read_api_request(ApiKind::kChat, chat, service.text().sampling, kMessageNames));
  return HttpResponse{.body = one_line({{"input_tokens", setup.prompts[0].size()}})};
}

}  // namespace soliton
