// Text up to a mark, such as what a model writes before the end of its reasoning.
#pragma once

#include <string_view>

#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

/// Adds rules for any text that `mark` ends, which stands in it nowhere before; returns the index of the first one. The mark
/// is valid UTF-8 of one character or more, or bytes that no text has: see Vocabulary::marker().
int text_until(Grammar& grammar, std::string_view mark);

}  // namespace soliton::constrain
