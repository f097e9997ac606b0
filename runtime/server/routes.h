// What there is at which path, and who answers it. Each API has a folder with what translates it to the one kind of request
// that a Service completes (see api_request.h), and its answers back (see answer_format.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/server/api_error.h"

namespace soliton {

class Service;

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// A path that there is, and what answers it: at once, or later where there is a body to be read.
struct Route {
  std::string_view method = "GET";
  std::string_view path;  // where it ends with a slash, something follows
  HttpResponse (*refuse)(const ApiError&) = [](const ApiError& error) { return error.response(); };
  bool needs_key = true;
  HttpResponse (*answer)(Service& service, const HttpRequest& request) = nullptr;
  HttpReply (*answer_later)(Service& service, const HttpRequest& request,
                            const HttpHeaders& headers) = nullptr;
};

std::span<const Route> routes();

/// The path as routes have it: without slashes at its end, and with /v1 before it where clients leave that out.
std::string routed_path(std::string_view path);

/// Null if there is no such path, which is one that routed_path() has made. Of those that there are the one with this
/// method, or some.
const Route* find_route(std::string_view method, std::string_view path);

/// "GET, POST": those of the route's path.
std::string methods_of(const Route& route);

}  // namespace soliton
