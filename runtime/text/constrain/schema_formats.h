// What `format` says of strings, as patterns: texts that are of the format by every reading, though not all of them.
#pragma once

#include <string_view>

#include "runtime/text/constrain/schema_facts.h"

namespace soliton::constrain {

/// Null if the format is not enforced.
const char* pattern_of_format(const Schema& format);

}  // namespace soliton::constrain
