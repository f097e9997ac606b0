// What a schema does not take, as schemas.
#pragma once

#include "runtime/text/constrain/schema_document.h"

namespace soliton::constrain {

struct Negated {
  std::vector<Schema> schemas;
  std::string unsaid;  // a keyword whose negation is left out; empty: none
};

/// Schemas, in normal form, none of which takes a value that `schema` takes; a value that it does not take is taken by one of
/// them, but for what cannot be said. Of members that it does not list are looked at those that `beside`, which holds too, does.
Negated negated(const SchemaDocument& document, const Schema& schema, const Schema& beside,
                const std::string& path);

}  // namespace soliton::constrain
