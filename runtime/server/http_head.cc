#include "runtime/server/http_head.h"

#include <fmt/format.h>

#include <array>

namespace soliton {

namespace beast = boost::beast;
namespace http = beast::http;

std::optional<std::string> complaint_of_header(const http::fields& header) {
  constexpr std::array kOnce = {http::field::host,          http::field::content_length,
                                http::field::authorization, http::field::transfer_encoding,
                                http::field::origin,        http::field::expect,
                                http::field::content_type};
  for (const http::field name : kOnce) {
    if (header.count(name) > 1)
      return fmt::format("{}: expected once, got it {} times", std::string(http::to_string(name)),
                         header.count(name));
  }
  if (header.count("x-api-key") > 1) return "x-api-key: expected once, got it several times";
  const std::string length(header[http::field::content_length]);
  if (length.find_first_not_of("0123456789") != std::string::npos)
    return fmt::format("Content-Length: expected a number, got \"{}\"", length);
  const auto coding = header.find(http::field::transfer_encoding);
  if (coding == header.end()) return std::nullopt;
  if (!beast::iequals(coding->value(), "chunked"))
    return fmt::format("Transfer-Encoding: expected chunked, got \"{}\"", std::string(coding->value()));
  if (header.count(http::field::content_length) > 0)
    return "Content-Length: expected none beside Transfer-Encoding, got one";
  return std::nullopt;
}

std::string head_text(const HttpResponse& response, const HeadOptions& options) {
  const auto reason = http::obsolete_reason(static_cast<http::status>(response.status));
  std::string text = fmt::format("{}{} {}\r\nServer: soliton\r\n", head_beginning(options.version),
                                 response.status, std::string(reason));
  const auto put = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}: {}\r\n", name, value);
  };
  if (!response.content_type.empty()) put("Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) put(name, value);
  if (!options.keeps_alive && options.version >= 11) put("Connection", "close");
  if (options.keeps_alive && options.version < 11) put("Connection", "keep-alive");
  constexpr int kNoContent = 204;
  if (options.framing == Framing::kChunked) put("Transfer-Encoding", "chunked");
  if (options.framing == Framing::kLength && response.status != kNoContent)
    put("Content-Length", std::to_string(response.body.size()));
  return text + "\r\n";
}

std::string_view head_beginning(unsigned version) {
  return version < 11 ? "HTTP/1.0 " : "HTTP/1.1 ";
}

}  // namespace soliton
