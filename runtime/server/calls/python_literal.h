// Arguments of calls as Python writes them: a=1, b="x", c=[True, None], d={"k": 2.5}.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace soliton {

/// Keyword arguments up to the parenthesis that closes them, all of which is taken from the text. Values are literals:
/// strings in either quotes, numbers, True, False and None, also as JSON has them, lists, tuples and dictionaries of text
/// keys. Nothing if it is something else, nests more than 64 deep or has a key twice. Takes time linear in the text.
std::optional<nlohmann::ordered_json> read_keyword_arguments(std::string_view& text);

}  // namespace soliton
