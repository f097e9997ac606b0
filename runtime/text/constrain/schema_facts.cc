#include "runtime/text/constrain/schema_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace soliton::constrain {
namespace {

struct NamedType {
  std::string_view name;
  Types types;
};
constexpr std::array<NamedType, 7> kNames = {{{"array", kArrayType},
                                              {"boolean", kBooleanType},
                                              {"integer", kIntegerType},
                                              {"null", kNullType},
                                              {"number", kNumberType | kIntegerType},
                                              {"object", kObjectType},
                                              {"string", kStringType}}};

/// With members sorted, and integers where numbers have no fraction.
nlohmann::json sorted(const Schema& value) {
  constexpr double kLeast = -9223372036854775808.0;  // of 64 bits
  if (value.is_object()) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [name, member] : value.items()) object[name] = sorted(member);
    return object;
  }
  if (value.is_array()) {
    nlohmann::json array = nlohmann::json::array();
    for (const Schema& item : value) array.push_back(sorted(item));
    return array;
  }
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number == std::trunc(number) && number >= kLeast && number < -kLeast)
      return static_cast<int64_t>(number);
  }
  return value;
}

}  // namespace

Types type_named(std::string_view name) {
  const auto* const found =
      std::find_if(kNames.begin(), kNames.end(), [&](const NamedType& known) { return known.name == name; });
  return found == kNames.end() ? 0 : found->types;
}

Schema names_of(Types types) {
  Schema names = Schema::array();
  for (const NamedType& known : kNames) {
    const bool is_said = known.name == "integer" && (types & kNumberType) != 0;  // by "number"
    if ((types & known.types) == known.types && !is_said) names.push_back(known.name);
  }
  return names;
}

Types type_of(const Schema& value) {
  if (value.is_number_integer()) return kIntegerType;
  if (value.is_number_float()) {
    const double number = value.get<double>();
    return number == std::trunc(number) ? kIntegerType : kNumberType;
  }
  return type_named(value.type_name());
}

Types types_of(const Schema& schema) {
  Types types = 0;
  if (!schema.contains("type")) {
    const auto listed = listed_values(schema);
    if (!listed) types = kAllTypes;
    for (const Schema* value : listed.value_or(std::vector<const Schema*>())) types |= type_of(*value);
  } else if (const Schema& type = schema["type"]; type.is_array()) {
    for (const Schema& name : type) types |= name.is_string() ? type_named(name.get<std::string>()) : 0;
  } else if (type.is_string()) {
    types = type_named(type.get_ref<const std::string&>());
  }
  return is_true(schema, "nullable") ? types | kNullType : types;
}

std::string member_path(const std::string& path, std::string_view member) {
  constexpr size_t kMaxMemberBytes = 80;
  std::string name(member);
  if (name.size() > kMaxMemberBytes) {
    size_t cut = kMaxMemberBytes;
    while (cut > 0 && (name[cut] & 0xc0) == 0x80) --cut;
    name.replace(cut, std::string::npos, "...");
  }
  return path.empty() ? name : fmt::format("{}.{}", path, name);
}

bool is_true(const Schema& schema, const char* keyword) {
  return schema.contains(keyword) && schema[keyword] == true;
}

std::string canonical(const Schema& value) {
  return sorted(value).dump();
}

std::optional<std::vector<const Schema*>> listed_values(const Schema& schema) {
  const bool has_enum = schema.contains("enum") && schema["enum"].is_array();
  std::vector<const Schema*> values;
  if (schema.contains("const")) {
    const Schema& only = schema["const"];
    const std::string text = canonical(only);
    const bool fits = !has_enum || std::any_of(schema["enum"].begin(), schema["enum"].end(),
                                               [&](const Schema& value) { return canonical(value) == text; });
    if (fits) values.push_back(&only);
    return values;
  }
  if (!has_enum) return std::nullopt;
  std::set<std::string> texts;
  for (const Schema& value : schema["enum"]) {
    if (texts.insert(canonical(value)).second) values.push_back(&value);
  }
  return values;
}

size_t weight(const Schema& schema) {
  size_t sum = 1;
  if (schema.is_structured()) {
    for (const Schema& value : schema) sum += weight(value);
  }
  return sum;
}

}  // namespace soliton::constrain
