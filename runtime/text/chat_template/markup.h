// Markup, as the library MarkupSafe has it: text that HTML may contain as it is. Templates come by it through the filters
// safe and escape; nothing else makes it, as nothing escapes what templates print.
#pragma once

#include "runtime/text/chat_template/machine.h"

namespace soliton::jinja {

/// The value's text as Markup: as it is if it is Markup, else with &, <, >, ' and " escaped. Characters keep their origin.
Text escape(Machine& machine, const Value& value);

/// What a method of Markup returns, given what that of plain text does: texts, and texts in a list, are Markup.
Value as_markup(Value value);

/// The arguments of the string method `name` as that method of Markup passes them on: what it would put in is escaped.
Arguments escaped_arguments(Machine& machine, std::string_view name, const Arguments& arguments);

}  // namespace soliton::jinja
