// Classes of characters that patterns name, in the dialects that schemas are read by.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

/// A class as ASCII has it, and with all that a dialect adds. What stands between them is in some dialects only.
struct CodeClass {
  CodeSet least;
  CodeSet most;
};

/// Codes of a general category of Unicode, by its name of one or two letters or the long one of the first; of \p{C} what
/// nothing is assigned to is in some versions only. Nothing if there is no such category.
std::optional<CodeClass> category_codes(std::string_view name);

const CodeClass& digit_codes();
const CodeClass& word_codes();
const CodeClass& space_codes();
/// All but what ends a line.
const CodeClass& line_codes();

}  // namespace soliton::constrain
