#include "runtime/server/api_error.h"

#include <nlohmann/json.hpp>

namespace soliton {
namespace {

const char* type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

}  // namespace

std::string ApiError::json() const {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  const nlohmann::ordered_json object = {{"error",
                                          {{"message", what()},
                                           {"type", type_of(status_)},
                                           {"param", or_null(param_)},
                                           {"code", or_null(code_)}}}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ApiError ApiError::renamed(std::span<const std::pair<std::string_view, std::string_view>> names) const {
  std::string message = what();
  std::string param = param_;
  for (const auto& [inner, outer] : names) {
    for (std::string* const text : {&message, &param}) {
      if (const size_t at = text->find(inner); at != std::string::npos)
        text->replace(at, inner.size(), outer);
    }
  }
  return ApiError(status_, message, param, code_);
}

HttpResponse ApiError::response() const {
  return {.status = status_, .body = json()};
}

ApiError api_error_of(const Error& error, const std::string& name) {
  std::string message = error.what();
  if (message.starts_with(name + ": ")) message.erase(0, name.size() + 2);
  const size_t colon = message.find(": ");
  const std::string key = colon == std::string::npos ? std::string() : message.substr(0, colon);
  const bool is_key = key.find_first_of(" \"{") == std::string::npos;
  return ApiError(400, message, is_key ? key : std::string());
}

}  // namespace soliton
