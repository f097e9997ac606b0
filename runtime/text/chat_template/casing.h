// Upper, lower and title case as Python's strings have them: full mappings, one character to several, and a sigma by where
// it stands. Characters keep their origin.
#pragma once

#include "runtime/text/chat_template/text.h"

namespace soliton::jinja {

Text to_upper(const Text& text);
Text to_lower(const Text& text);
/// str.title: the first cased character of each word title case, the rest lower.
Text to_title(const Text& text);
/// The title filter: the first character of each word upper, the rest lower; words end at space and at -({[<.
Text to_title_words(const Text& text);
/// The first character title case, the rest lower.
Text to_capitalized(const Text& text);

}  // namespace soliton::jinja
