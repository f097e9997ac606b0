// How large a schema may be, as kMaxSourceBytes and the like are of grammars.
#pragma once

#include <string>

#include "runtime/text/constrain/schema_facts.h"

namespace soliton::constrain {

inline constexpr size_t kMaxSchemaValues = 100'000;  // in all: schemas, and what is in them
inline constexpr size_t kMaxListedValues = 20'000;   // of all enum together
inline constexpr size_t kMaxProperties = 4'000;      // of all properties together, and of all required

/// Throws kOutOfMemory, by `name`, above these or kMaxSourceBytes of text.
void check_schema_size(const Schema& schema, const std::string& name);

}  // namespace soliton::constrain
