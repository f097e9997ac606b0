// What schemas say of strings and of numbers, as expressions, and of how many of something there may be.
#pragma once

#include <string>
#include <utility>

#include "runtime/text/constrain/json_rules.h"
#include "runtime/text/constrain/schema_merge.h"

namespace soliton::constrain {

/// minItems and the like; the second is negative if there is no bound.
std::pair<int, int> counts_of(const SchemaDocument& document, const Schema& schema, const std::string& path,
                              const char* min, const char* max);
/// Each throws Error, naming path and keyword, as json_schema_grammar() does.
Expression string_of(const SchemaDocument& document, JsonRules& json, const Schema& schema,
                     const std::string& path);
Expression number_of(const SchemaDocument& document, JsonRules& json, const Schema& schema,
                     const std::string& path, bool is_integer);

}  // namespace soliton::constrain
