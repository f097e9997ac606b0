// The syntax of patterns: what the reference's engine (Oniguruma with its own syntax, which is Ruby's with more) reads
// is written for PCRE2 so that both match alike. What has no counterpart is refused by name.
#pragma once

#include <string>
#include <string_view>

#include "models/strict_json.h"

namespace soliton::tokenization {

/// The pattern for PCRE2 with UTF, UCP and MULTILINE. Throws kMismatch, naming `where`, on what PCRE2 would read
/// differently. Malformed patterns stay so for PCRE2 to refuse.
std::string to_pcre2(std::string_view pattern, const JsonView& where);

}  // namespace soliton::tokenization
