// Filters of lists and mappings; the table in filters.cc names them.
#pragma once

#include "runtime/text/chat_template/machine.h"

namespace soliton::jinja {

using FilterFunction = Value (*)(Machine&, const Value& value, const Arguments&);

Value filter_batch(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_dictsort(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_first(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_groupby(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_items(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_join(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_last(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_length(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_list(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_map(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_max(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_min(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_reject(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_rejectattr(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_reverse(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_select(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_selectattr(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_slice(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_sort(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_sum(Machine& machine, const Value& value, const Arguments& arguments);
Value filter_unique(Machine& machine, const Value& value, const Arguments& arguments);

}  // namespace soliton::jinja
