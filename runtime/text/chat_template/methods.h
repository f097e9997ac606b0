// Attributes that values have by their type: methods of strings, lists and dicts, what `loop` knows, the
// content of namespaces.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/text/chat_template/machine.h"

namespace soliton::jinja {

/// object.name as the type of `object` has it; none if it has no such attribute. Methods that change their
/// object are undefined, as in the sandbox; those not supported throw kMismatch.
std::optional<Value> find_member(Machine& machine, const Value& object, std::string_view name);

/// The string method `name`, for filters that share it.
Value call_string_method(Machine& machine, std::string_view name, const Text& text,
                         const Arguments& arguments);

/// text % arguments
Value percent_format(Machine& machine, const Text& text, const Value& arguments);
/// text.format(arguments)
Value brace_format(Machine& machine, const Text& text, const Arguments& arguments);

}  // namespace soliton::jinja
