// Methods of strings. All keep the origin of the characters they keep.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/text/chat_template/machine.h"

namespace soliton::jinja {

/// The method `name` bound to `object`, which is text; none if strings have no such attribute.
std::optional<Value> string_member(const Value& object, std::string_view name);

/// str.strip of the characters in `characters`, of all space if null.
Text strip(const Text& text, const Text* characters, bool left = true, bool right = true);
/// str.replace; a negative count means all.
Text replace(Machine& machine, const Text& text, const Text& old, const Text& by, int64_t count);
/// str.splitlines
std::vector<Text> split_lines(const Text& text, bool keep_ends);

}  // namespace soliton::jinja
