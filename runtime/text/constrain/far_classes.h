// Sets of characters as the classes of those that are not ASCII's.
#pragma once

#include <cstdint>

#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

/// Bit i is of Vocabulary::far_text()[i].
struct FarClasses {
  uint8_t all = 0;   // the set has all characters of the class
  uint8_t some = 0;  // it has some and lacks others
};

FarClasses far_classes(const CodeSet& set);

}  // namespace soliton::constrain
