// The filters, tests and functions that templates call by name.
#pragma once

#include <string_view>

#include "runtime/text/chat_template/machine.h"

namespace soliton::jinja {

/// value|name(arguments). Throws kMismatch for a name that is not supported.
Value apply_filter(Machine& machine, std::string_view name, const Value& value, const Arguments& arguments);

/// value is name(arguments). Throws kMismatch for a name that is not supported.
bool apply_test(Machine& machine, std::string_view name, const Value& value, const Arguments& arguments);

/// range, dict, namespace, raise_exception and strftime_now.
const std::vector<std::pair<std::string_view, Value>>& global_functions();

/// Parts of dict(...) and namespace(...): at most one mapping or list of pairs, and named values.
Dict dict_from(Machine& machine, std::string_view function, const Arguments& arguments);

}  // namespace soliton::jinja
