// What schemas say of numbers, as expressions.
#pragma once

#include <optional>
#include <string>

#include "runtime/text/constrain/json_rules.h"
#include "runtime/text/constrain/schema_document.h"

namespace soliton::constrain {

/// Whether one number is a multiple of another, as decimal fractions; nothing if they have too many digits to tell.
std::optional<bool> is_multiple(const Schema& value, const Schema& of);

/// Numbers that a flat schema takes. Throws Error, naming path and keyword, as json_schema_grammar() does, and NoValue.
Expression number_of(const SchemaDocument& document, JsonRules& json, const Schema& schema,
                     const std::string& path, bool is_integer);

}  // namespace soliton::constrain
