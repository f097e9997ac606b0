// Anthropic's API: /v1/messages. Its requests become chats as OpenAI's API has them, which are read as those are.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/server/routes.h"

namespace soliton {

HttpReply answer_messages(Service& service, const HttpRequest& request, const HttpHeaders& headers);
HttpReply count_tokens_of_messages(Service& service, const HttpRequest& request, const HttpHeaders& headers);
/// {"type": "error", "error": {"type", "message"}}.
HttpResponse anthropic_error(const ApiError& error);

/// What a chat's members are called in requests.
inline constexpr std::pair<std::string_view, std::string_view> kMessageNames[] = {
    {".function.parameters", ".input_schema"},
    {".function.", "."},
    {"response_format.json_schema", "output_format"}};

/// The body of a chat of OpenAI's API that says the same. `wants_limit`: max_tokens has to be there. Throws ApiError.
nlohmann::ordered_json chat_of_messages(const std::string& body, bool wants_limit);

}  // namespace soliton
