// Whether a value fits a schema: of those that enum and const list, and of names of members.
#pragma once

#include "runtime/text/constrain/schema_document.h"

namespace soliton::constrain {

/// What of a schema in normal form is to be decided by looking at a value. kMaybe is what is not: formats that are written
/// in more ways than here, patterns that dialects differ about, and unevaluatedProperties and the like. Throws what costs too
/// much, and what is malformed.
Fit fit(const SchemaDocument& document, const Schema& schema, const Schema& value, const std::string& path,
        int depth = 0);

}  // namespace soliton::constrain
