#include "runtime/server/host_name.h"

#include <arpa/inet.h>

#include <algorithm>

namespace soliton {
namespace {

constexpr std::string_view kLocalhost = "localhost";

/// In small letters, without the dot that may end a name.
std::string plain_name(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  std::string plain(name);
  std::ranges::transform(plain, plain.begin(),
                         [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return plain;
}

bool is_address(int family, const std::string& text) {
  in6_addr address;  // the larger one
  return ::inet_pton(family, text.c_str(), &address) == 1;
}

/// What may stand behind a name: nothing, or a port.
bool is_port(std::string_view text) {
  return text.empty() || (text.starts_with(':') && text.find_first_not_of("0123456789", 1) == text.npos);
}

}  // namespace

bool is_allowed_host(std::string_view host, std::span<const std::string> names) {
  if (host.empty() || std::ranges::find(names, "*") != names.end()) return true;
  const auto is_named = [&](const std::string& name) {
    return std::ranges::any_of(names, [&](const std::string& each) { return plain_name(each) == name; });
  };
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == std::string_view::npos || !is_port(host.substr(end + 1))) return false;
    const std::string inside(host.substr(1, end - 1));
    return is_address(AF_INET6, inside) || is_named(inside);
  }
  const size_t colon = std::min(host.find(':'), host.size());
  if (!is_port(host.substr(colon))) return false;
  const std::string name = plain_name(host.substr(0, colon));
  return name == kLocalhost || name.ends_with("." + std::string(kLocalhost)) || is_address(AF_INET, name) ||
         is_named(name);
}

}  // namespace soliton
