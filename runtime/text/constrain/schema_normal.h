// JSON schemas of every draft in one form, which merging, comparing and compiling read.
//
// In it there are only keywords that say something about values: what describes, and what nobody knows, is left out. What
// older drafts say otherwise is said as draft 2020-12 does (items as a list, additionalItems, dependencies,
// exclusiveMinimum: true). References are pointers into the document. Keywords that cannot be merged two to one are lists, by
// names that no schema can have of its own:
//
//   ~choices    [{label: [schemas]}]: one of each list at least; of anyOf, if and dependent keywords
//   ~ones       the same of exactly one; of oneOf
//   ~nots       [schemas] of not
//   ~absent     [names] that an object has not
//   ~closes     true where objects are written without members that are not listed: beside properties
//   ~patterns, ~formats, ~multiples   [values] of pattern, format, multipleOf
//   ~names      [schemas] of propertyNames
//   ~contains   [{schema, minContains, maxContains}]; the last where there is a bound
//   ~unmatched  [patterns] that are not found
//   ~others     [texts] that it is not
//   ~fractions  true where whole numbers are left out
//
// The last three are what `not` leaves (schema_negation.h).
//
// What is malformed stays as it is, for who reads it to refuse.
#pragma once

#include <functional>
#include <string>

#include "runtime/text/constrain/schema_references.h"

namespace soliton::constrain {

/// The schema, which stands where the base URI is `base`. `spend` is told the steps that it takes, and may throw.
Schema normal_schema(const Schema& schema, const std::string& base, SchemaReferences& references,
                     const std::function<void(size_t)>& spend);

/// `reference` as normal_schema() writes it: a pointer behind #, or behind ? what leads nowhere.
std::string normal_reference(const std::string& reference, const std::string& base,
                             SchemaReferences& references);

/// A list of alternatives as ~choices has it.
Schema labelled(const std::string& label, Schema alternatives);

}  // namespace soliton::constrain
