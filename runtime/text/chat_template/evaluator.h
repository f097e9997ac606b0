// Walks the syntax tree and writes the text that it stands for.
#pragma once

#include <map>
#include <string>

#include "runtime/text/chat_template/ast.h"
#include "runtime/text/chat_template/machine.h"

namespace soliton::jinja {

/// The text that `block` renders to with these variables. Errors read "name:line: ...".
Text render(Machine& machine, const Block& block, std::string_view name,
            std::map<std::string, Value> variables);

}  // namespace soliton::jinja
