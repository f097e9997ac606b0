// Classes of characters that patterns name, in the dialects that schemas are read by.
#pragma once

#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

/// A class as ASCII has it, and with all that a dialect adds. What stands between them is in some dialects only.
struct CodeClass {
  CodeSet least;
  CodeSet most;
};

const CodeClass& digit_codes();
const CodeClass& word_codes();
const CodeClass& space_codes();
/// All but what ends a line.
const CodeClass& line_codes();

}  // namespace soliton::constrain
