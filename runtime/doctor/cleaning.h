// What soliton-doctor --clean says.
#pragma once

#include <string>

#include "runtime/make/cache.h"

namespace soliton {

/// A line for each file, with its bytes and why it is gone, and one for all; as JSON one object.
std::string as_text(const Cleaning& cleaning);
std::string as_json(const Cleaning& cleaning);

/// Either of them, to stdout.
void print_cleaning(const Cleaning& cleaning, bool json);

}  // namespace soliton
