#include "runtime/constrain/schema_merge.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace soliton::constrain {
namespace {

template <size_t kSize>
bool is_one_of(const std::array<std::string_view, kSize>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 18> kAnnotations = {
    "title",    "description", "default",    "examples",      "example",         "$schema",
    "$id",      "id",          "$comment",   "$anchor",       "$defs",           "definitions",
    "readOnly", "writeOnly",   "deprecated", "discriminator", "contentEncoding", "contentMediaType"};
constexpr int kMostMerges = 4000;  // of a document
constexpr std::array<std::string_view, 4> kGreatestCounts = {"minimum", "exclusiveMinimum", "minLength",
                                                             "minItems"};
constexpr std::array<std::string_view, 4> kLeastCounts = {"maximum", "exclusiveMaximum", "maxLength",
                                                          "maxItems"};

bool has(const Schema& list, const Schema& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// The values that are in both lists.
Schema common(const Schema& a, const Schema& b) {
  Schema both = Schema::array();
  std::copy_if(a.begin(), a.end(), std::back_inserter(both),
               [&](const Schema& value) { return has(b, value); });
  return both;
}

bool requires_member(const Schema& schema, const std::string& name) {
  return schema.contains("required") && schema["required"].is_array() && has(schema["required"], name);
}

bool names_member(const Schema& schema, const std::string& name) {
  return schema.contains("properties") && schema["properties"].is_object() &&
         schema["properties"].contains(name);
}

bool is_closed(const Schema& schema) {
  return schema.contains("additionalProperties") ? schema["additionalProperties"] == false
                                                 : schema.contains("properties");
}

/// Whether a value written by `a` cannot have a member that `b` requires.
bool lacks_required(const Schema& a, const Schema& b) {
  if (!is_closed(a) || !b.contains("required") || !b["required"].is_array()) return false;
  return std::any_of(b["required"].begin(), b["required"].end(), [&](const Schema& name) {
    return name.is_string() && !names_member(a, name.get<std::string>());
  });
}

}  // namespace

std::string member_path(const std::string& path, std::string_view member) {
  return path.empty() ? std::string(member) : fmt::format("{}.{}", path, member);
}

std::string type_of(const Schema& value) {
  if (value.is_number_integer()) return "integer";
  if (value.is_number_float()) {
    const double number = value.get<double>();
    return number == std::trunc(number) ? "integer" : "number";
  }
  return value.type_name();
}

bool is_annotation(const std::string& keyword) {
  return is_one_of(kAnnotations, keyword) || keyword.starts_with("x-");
}

std::vector<Schema> listed_values(const Schema& schema) {
  if (schema.contains("const")) return {schema["const"]};
  if (!schema.contains("enum") || !schema["enum"].is_array()) return {};
  return {schema["enum"].begin(), schema["enum"].end()};
}

std::set<std::string> types_of(const Schema& schema) {
  std::set<std::string> types;
  if (!schema.contains("type")) {
    const std::vector<Schema> values = listed_values(schema);
    for (const Schema& value : values) types.insert(type_of(value));
    if (values.empty()) types = {"null", "boolean", "object", "array", "string", "number", "integer"};
  } else if (schema["type"].is_array()) {
    for (const Schema& type : schema["type"]) {
      if (type.is_string()) types.insert(type.get<std::string>());
    }
  } else if (schema["type"].is_string()) {
    types.insert(schema["type"].get<std::string>());
  }
  if (types.contains("number")) types.insert("integer");
  if (schema.contains("nullable") && schema["nullable"] == true) types.insert("null");
  return types;
}

Error SchemaDocument::located(ExitCode code, const std::string& path, const std::string& message) const {
  return path.empty() ? file_error(code, name_, "{}", message)
                      : file_error(code, name_, "{}: {}", path, message);
}

Error SchemaDocument::unsupported(const std::string& path, const std::string& keyword,
                                  const std::string& why) const {
  return error(ExitCode::kMismatch, member_path(path, keyword), "not supported{}{}", why.empty() ? "" : " ",
               why);
}

const Schema& SchemaDocument::target(const Schema& reference, const std::string& path) const {
  const std::string at = member_path(path, "$ref");
  if (!reference.is_string())
    throw error(ExitCode::kBadFile, at, "expected text, got {}", reference.type_name());
  const std::string& written = reference.get_ref<const std::string&>();
  if (written == "#") return root_;
  if (!written.starts_with("#/"))
    throw error(ExitCode::kMismatch, at, "expected a reference into this schema as #/$defs/NAME, got {}",
                in_quotes(written));
  try {
    const Schema::json_pointer pointer(written.substr(1));
    if (root_.contains(pointer)) return root_.at(pointer);
  } catch (const Schema::exception&) {  // no pointer
  }
  throw error(ExitCode::kBadFile, at, "expected a schema at {}, got nothing", in_quotes(written));
}

// ---- Merging

Schema SchemaDocument::flattened(const Schema& schema, const std::string& path, int depth) const {
  if (depth > kMaxNesting || ++num_merges_ > kMostMerges) {
    throw error(
        ExitCode::kOutOfMemory, path,
        "expected at most {} schemas to merge, and {} inside one another, got more: a schema that refers to "
        "itself can have no keywords beside the reference",
        kMostMerges, kMaxNesting);
  }
  if (!schema.is_object() || (!schema.contains("$ref") && !schema.contains("allOf"))) return schema;
  Schema rest = schema;
  rest.erase("$ref");
  rest.erase("allOf");
  if (schema.contains("$ref")) {
    const Schema& target = this->target(schema["$ref"], path);
    rest = merged(target, rest, path, depth + 1);
  }
  if (!schema.contains("allOf")) return rest;
  const std::string at = member_path(path, "allOf");
  if (!schema["allOf"].is_array())
    throw error(ExitCode::kBadFile, at, "expected a list, got {}", schema["allOf"].type_name());
  for (size_t i = 0; i < schema["allOf"].size(); ++i)
    rest = merged(rest, schema["allOf"][i], fmt::format("{}[{}]", at, i), depth + 1);
  return rest;
}

Schema SchemaDocument::merged(const Schema& a, const Schema& b, const std::string& path, int depth) const {
  for (const Schema* schema : {&a, &b}) {
    if (!schema->is_object() && !schema->is_boolean())
      throw error(ExitCode::kBadFile, path, "expected a schema, got {}", schema->type_name());
  }
  if (a == false || b == true) return flattened(a, path, depth);
  if (b == false || a == true) return flattened(b, path, depth);
  Schema both = flattened(a, path, depth);
  const Schema other = flattened(b, path, depth);
  if (both == false || other == true) return both;
  if (other == false || both == true) return other;
  check_additional(both, other, path);
  check_additional(other, both, path);
  for (const auto& [keyword, value] : other.items()) {
    if (is_annotation(keyword)) continue;
    if (both.contains(keyword)) {
      merge_keyword(both, keyword, value, path, depth);
    } else {
      both[keyword] = value;
    }
  }
  return both;
}

/// What is no property of `a` must be none of `b`, where `a` says what else there may be.
void SchemaDocument::check_additional(const Schema& a, const Schema& b, const std::string& path) const {
  if (!a.contains("additionalProperties") || a["additionalProperties"] == true) return;
  if (b.contains("additionalProperties") && b["additionalProperties"] == a["additionalProperties"] &&
      a.value("properties", Schema::object()) == b.value("properties", Schema::object()))
    return;
  const Schema properties = b.value("properties", Schema::object());
  for (const auto& [name, value] : properties.items()) {
    if (!names_member(a, name))
      throw unsupported(path, "additionalProperties",
                        fmt::format("beside another schema's property {}", in_quotes(name)));
  }
}

void SchemaDocument::merge_keyword(Schema& into, const std::string& keyword, const Schema& value,
                                   const std::string& path, int depth) const {
  Schema& known = into[keyword];
  if (known == value) return;
  const std::string at = member_path(path, keyword);
  if (keyword == "type") {
    const std::set<std::string> types = types_of(Schema{{"type", known}});
    Schema both = Schema::array();
    for (const std::string& type : types_of(Schema{{"type", value}})) {
      if (types.contains(type)) both.push_back(type);
    }
    if (has(both, "number")) both.erase(std::find(both.begin(), both.end(), "integer"));
    if (both.empty()) throw error(ExitCode::kBadFile, at, "expected a type that fits all, got none");
    known = std::move(both);
  } else if (keyword == "properties" && known.is_object() && value.is_object()) {
    for (const auto& [name, schema] : value.items()) {
      known[name] =
          known.contains(name) ? merged(known[name], schema, member_path(at, name), depth + 1) : schema;
    }
  } else if (keyword == "required" && known.is_array() && value.is_array()) {
    for (const Schema& name : value) {
      if (!has(known, name)) known.push_back(name);
    }
  } else if (keyword == "enum" && known.is_array() && value.is_array()) {
    known = common(known, value);
  } else if (is_one_of(kGreatestCounts, keyword) && known.is_number() && value.is_number()) {
    known = std::max(known, value);
  } else if (is_one_of(kLeastCounts, keyword) && known.is_number() && value.is_number()) {
    known = std::min(known, value);
  } else if (keyword == "items") {
    known = merged(known, value, at, depth + 1);
  } else if (keyword == "nullable") {
    known = false;
  } else {
    throw unsupported(path, keyword, "where two schemas that hold together have different ones");
  }
}

bool SchemaDocument::exclude_each_other(const Schema& a, const Schema& b, const std::string& path,
                                        int depth) const {
  constexpr int kMostLooked = 8;  // into required members of required members
  if (depth > kMostLooked) return false;
  const Schema x = flattened(a, path);
  const Schema y = flattened(b, path);
  if (x == false || y == false) return true;
  if (!x.is_object() || !y.is_object()) return false;
  const std::set<std::string> types = types_of(x);
  std::set<std::string> both;
  for (const std::string& type : types_of(y)) {
    if (types.contains(type)) both.insert(type);
  }
  if (both.empty()) return true;
  const std::vector<Schema> values = listed_values(x);
  const std::vector<Schema> others = listed_values(y);
  if (!values.empty() && !others.empty()) return common(values, others).empty();
  if (both != std::set<std::string>{"object"} || !x.contains("properties") || !y.contains("properties"))
    return false;
  for (const auto& [name, schema] : x["properties"].items()) {
    if (requires_member(x, name) && requires_member(y, name) && names_member(y, name) &&
        exclude_each_other(schema, y["properties"][name], path, depth + 1))
      return true;
  }
  return lacks_required(x, y) && lacks_required(y, x);
}

}  // namespace soliton::constrain
