// What a client is told that went wrong, as OpenAI's API does: {"error": {"message", "type", "param", "code"}}.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "models/error.h"
#include "runtime/server/http.h"

namespace soliton {

class ApiError : public std::runtime_error {
 public:
  /// `param` names what in the request is wrong, if something is.
  ApiError(int status, const std::string& message, std::string param = {}, std::string code = {})
      : std::runtime_error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& param() const { return param_; }
  /// The same by the names of another API, of whose request this one was made: of each pair the first one becomes the second.
  ApiError renamed(std::span<const std::pair<std::string_view, std::string_view>> names) const;
  /// As JSON: {"error": {...}}.
  std::string json() const;
  HttpResponse response() const;

 private:
  int status_;
  std::string param_;
  std::string code_;
};

/// An error of a request's body that JsonView has found; `name` is what it calls the body.
ApiError api_error_of(const Error& error, const std::string& name);

}  // namespace soliton
