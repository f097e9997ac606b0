// OpenAI's newer API: /v1/responses. Its requests become chats as the older one has them, which are read as those are.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/server/routes.h"

namespace soliton {

HttpReply answer_response(Service& service, const HttpRequest& request, const HttpHeaders& headers);
HttpReply count_tokens_of_response(Service& service, const HttpRequest& request, const HttpHeaders& headers);
/// One that has been answered and is kept.
HttpResponse tell_response(Service& service, const HttpRequest& request);
HttpResponse delete_response(Service& service, const HttpRequest& request);

/// What a chat's members are called in requests.
inline constexpr std::pair<std::string_view, std::string_view> kResponseNames[] = {
    {".function.", "."},
    {"response_format.json_schema", "text.format"},
    {"response_format", "text.format"},
    {"max_tokens", "max_output_tokens"}};

/// What a request says.
struct ResponseRequest {
  nlohmann::ordered_json chat;      // the body of a chat that says the same
  nlohmann::ordered_json settings;  // what answers repeat of it
  bool is_kept = true;
};
/// What earlier responses have left, by ids; both throw ApiError where there is nothing.
struct EarlierResponses {
  std::function<nlohmann::ordered_json(const std::string& id)> messages;  // to the end of one
  std::function<std::string(const std::string& id)> item;                 // of any, as JSON
};
/// Throws ApiError.
ResponseRequest read_response_request(const std::string& body, const EarlierResponses& earlier);

}  // namespace soliton
