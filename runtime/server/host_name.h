// By which names a server may be asked. A page whose name its owner lets point to this machine (DNS rebinding) is of one
// origin with the server as a browser sees it, and neither CORS nor the Origin header keeps it out; the name does.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace soliton {

/// Whether a Host header, "name:port", is an address, localhost or a name below it, or one of `names`, of which "*" stands
/// for all. None at all is allowed: browsers always send one.
bool is_allowed_host(std::string_view host, std::span<const std::string> names);

}  // namespace soliton
