// JSON in both directions: what callers give becomes values, and the tojson filter writes values.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/text/chat_template/machine.h"

namespace soliton::jinja {

/// Values of a message, tool or variable: all strings count as text of a message. Bytes that are no UTF-8
/// become U+FFFD. Throws kOutOfMemory if it nests deeper than values may, kMismatch for integers over 64
/// bits.
Value from_json(Machine& machine, const nlohmann::ordered_json& json);

/// tojson as transformers defines it, which is Python's json.dumps: parameters ensure_ascii (false), indent,
/// separators and sort_keys; nothing is escaped for HTML.
Value to_json(Machine& machine, const Value& value, const Arguments& arguments);

}  // namespace soliton::jinja
