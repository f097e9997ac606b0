// What calls have to do with before anything is evaluated: unpacked arguments, and what templates may ask a macro.
#pragma once

#include "runtime/text/chat_template/ast.h"
#include "runtime/text/chat_template/value.h"

namespace soliton::jinja {

/// Appends the entries of a mapping, which stood behind "**", to the named arguments. Throws if it is none, or has keys
/// that are no names or given already.
void unpack_named(const Value& several, Arguments& arguments);

/// The attributes of a macro: name, arguments and what else it takes.
Dict macro_attributes(const Macro& macro);

}  // namespace soliton::jinja
