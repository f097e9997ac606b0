// From tokens to a syntax tree.
#pragma once

#include <string_view>

#include "runtime/text/chat_template/ast.h"

namespace soliton::jinja {

/// The statements of `source`. Errors read "name:line: ...": kBadFile for what is no template, kMismatch for
/// what jinja2 has and this engine has not, kOutOfMemory above the limits in fault.h.
Block parse(std::string_view source, std::string_view name);

}  // namespace soliton::jinja
