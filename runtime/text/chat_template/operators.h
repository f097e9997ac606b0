// The operators of expressions, with Python's meaning.
#pragma once

#include <string_view>

#include "runtime/text/chat_template/ast.h"
#include "runtime/text/chat_template/machine.h"

namespace soliton::jinja {

Value arithmetic(Machine& machine, BinaryOp op, const Value& left, const Value& right);
Value negated(const Value& value);
bool compare(Machine& machine, CompareOp op, const Value& left, const Value& right);
/// item in container
bool contains(Machine& machine, const Value& container, const Value& item);

/// object.name: a method or property of the object's type, else an entry; undefined if there is neither.
Value get_attribute(Machine& machine, const Value& object, std::string_view name);
/// object[key]: an entry, else what get_attribute would find first; undefined if there is neither.
Value get_item(Machine& machine, const Value& object, const Value& key);
/// object[start:stop:step]; none for what is left out.
Value get_slice(Machine& machine, const Value& object, const Value& start, const Value& stop,
                const Value& step);

}  // namespace soliton::jinja
