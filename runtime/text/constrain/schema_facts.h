// What JSON schemas say by themselves: keywords, types, listed values.
#pragma once

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace soliton::constrain {

using Schema = nlohmann::ordered_json;

/// Types as bits; what has numbers has integers.
using Types = unsigned;
inline constexpr Types kNullType = 1 << 0;
inline constexpr Types kBooleanType = 1 << 1;
inline constexpr Types kObjectType = 1 << 2;
inline constexpr Types kArrayType = 1 << 3;
inline constexpr Types kStringType = 1 << 4;
inline constexpr Types kIntegerType = 1 << 5;
inline constexpr Types kNumberType = 1 << 6;
inline constexpr Types kAllTypes = (1 << 7) - 1;

/// The type called "object" and the like; 0 if there is none of that name.
Types type_named(std::string_view name);
/// The names as a list.
Schema names_of(Types types);
/// Of a value, one bit: 1.0 is an integer.
Types type_of(const Schema& value);
/// Types that a schema names, or its listed values have; all if it says neither. With null where it is nullable.
Types types_of(const Schema& schema);

template <size_t kSize>
bool is_one_of(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Path of a member, for errors. Of long names it has the begin: paths stand in every rule of a grammar.
std::string member_path(const std::string& path, std::string_view member);
/// Whether the value of a keyword is a list with something in it, a member `true`, and so on.
bool is_true(const Schema& schema, const char* keyword);

/// One text for values that are equal as JSON Schema has it: members in any order, 1 and 1.0.
std::string canonical(const Schema& value);
/// Values of enum and const, those that are in both; null if it has neither. Refers to the schema.
std::optional<std::vector<const Schema*>> listed_values(const Schema& schema);
/// How many values a schema is made of, itself included: what it costs to copy.
size_t weight(const Schema& schema);

}  // namespace soliton::constrain
