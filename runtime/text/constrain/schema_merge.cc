#include "runtime/text/constrain/schema_merge.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "runtime/text/constrain/schema_limits.h"

namespace soliton::constrain {
namespace {

constexpr size_t kMostSteps = 2'000'000;  // of a document: a quarter of a second, and 60 MB of copies
constexpr size_t kCopySteps = 4;          // of a value
constexpr std::array<std::string_view, 4> kGreatestCounts = {"minimum", "exclusiveMinimum", "minLength",
                                                             "minItems"};
constexpr std::array<std::string_view, 4> kLeastCounts = {"maximum", "exclusiveMaximum", "maxLength",
                                                          "maxItems"};
constexpr std::array<std::string_view, 4> kJoint = {"properties", "additionalProperties", "prefixItems",
                                                    "items"};

/// The values of both lists, in the order of the first.
Schema common(const Schema& a, const Schema& b) {
  std::set<std::string> texts;
  for (const Schema& value : b) texts.insert(canonical(value));
  Schema both = Schema::array();
  std::copy_if(a.begin(), a.end(), std::back_inserter(both),
               [&](const Schema& value) { return texts.contains(canonical(value)); });
  return both;
}

/// Part of a JSON pointer as the member's name that it is.
std::string unescaped(std::string_view part) {
  std::string name;
  for (size_t i = 0; i < part.size(); ++i) {
    const bool is_escape =
        part[i] == '~' && i + 1 < part.size() && (part[i + 1] == '0' || part[i + 1] == '1');
    name += is_escape ? (part[++i] == '0' ? '~' : '/') : part[i];
  }
  return name;
}

bool has_any(const Schema& schema, const char* one, const char* other) {
  return schema.contains(one) || schema.contains(other);
}

}  // namespace

SchemaDocument::SchemaDocument(const Schema& root, std::string name)
    : SchemaDocument(root, std::move(name), own_steps_) {}

SchemaDocument::SchemaDocument(const Schema& root, std::string name, size_t& num_steps)
    : root_(root), name_(std::move(name)), num_steps_(num_steps) {
  check_schema_size(root_, name_);
}

// ---- What schemas say

Error SchemaDocument::located(ExitCode code, const std::string& path, const std::string& message) const {
  return path.empty() ? file_error(code, name_, "{}", message)
                      : file_error(code, name_, "{}: {}", path, message);
}

Error SchemaDocument::unsupported(const std::string& path, const std::string& keyword,
                                  const std::string& why) const {
  return error(ExitCode::kMismatch, member_path(path, keyword), "not supported{}{}", why.empty() ? "" : " ",
               why);
}

void SchemaDocument::check_keywords(const Schema& schema, const std::string& path) const {
  for (const auto& [keyword, value] : schema.items()) {
    if (!is_supported(keyword, value)) throw unsupported(path, keyword);
  }
}

Types SchemaDocument::named_types(const Schema& schema, const std::string& path) const {
  const Schema& type = schema["type"];
  const std::string at = member_path(path, "type");
  const auto read = [&](const Schema& name) {
    if (!name.is_string()) throw error(ExitCode::kBadFile, at, "expected text, got {}", name.type_name());
    const Types types = type_named(name.get_ref<const std::string&>());
    if (types != 0) return types;
    throw error(ExitCode::kBadFile, at,
                "expected one of object, array, string, number, integer, boolean, null, got {}",
                in_quotes(name.get_ref<const std::string&>()));
  };
  if (!type.is_array()) return read(type);
  if (type.empty()) throw error(ExitCode::kBadFile, at, "expected a type, got an empty list");
  Types types = 0;
  for (const Schema& name : type) types |= read(name);
  return types;
}

bool SchemaDocument::is_nullable(const Schema& schema, const std::string& path) const {
  if (!schema.contains("nullable")) return false;
  if (schema["nullable"].is_boolean()) return schema["nullable"].get<bool>();
  throw error(ExitCode::kBadFile, member_path(path, "nullable"), "expected true or false, got another value");
}

// ---- References

/// Null if it leads nowhere. Large objects on the way are indexed once.
const Schema* SchemaDocument::find(std::string_view pointer) const {
  const Schema* at = &root_;
  while (!pointer.empty()) {
    const size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string name = unescaped(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    if (at->is_array()) {
      size_t index = 0;
      const auto read = std::from_chars(name.data(), name.data() + name.size(), index);
      const bool is_index =
          read.ec == std::errc() && read.ptr == name.data() + name.size() && (name == "0" || name[0] != '0');
      if (!is_index || index >= at->size()) return nullptr;
      at = &(*at)[index];
      continue;
    }
    if (!at->is_object()) return nullptr;
    auto& index = indices_[at];
    if (index.empty()) {
      for (const auto& [key, value] : at->get_ref<const Schema::object_t&>()) index.emplace(key, &value);
    }
    const auto found = index.find(name);
    if (found == index.end()) return nullptr;
    at = found->second;
  }
  return at;
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
  const auto known = targets_.find(written);
  if (known != targets_.end()) return *known->second;
  const Schema* const found = find(std::string_view(written).substr(1));
  if (found == nullptr)
    throw error(ExitCode::kBadFile, at, "expected a schema at {}, got nothing", in_quotes(written));
  targets_.emplace(written, found);
  return *found;
}

// ---- Merging

void SchemaDocument::spend(size_t steps, const std::string& path) const {
  num_steps_ += steps;
  if (num_steps_ <= kMostSteps) return;
  throw error(ExitCode::kOutOfMemory, path,
              "expected schemas that take at most {} steps to merge and compare, got more", kMostSteps);
}

Schema SchemaDocument::copied(const Schema& schema, const std::string& path) const {
  spend(kCopySteps * weight(schema), path);
  return schema;
}

bool SchemaDocument::is_flat(const Schema& schema) {
  return !schema.is_object() || !has_any(schema, "$ref", "allOf");
}

Schema SchemaDocument::flattened(const Schema& schema, const std::string& path, int depth) const {
  if (depth > kMaxNesting) {
    throw error(ExitCode::kOutOfMemory, path,
                "expected at most {} schemas to merge inside one another, got more: a schema that refers to "
                "itself can "
                "have no keywords beside the reference",
                kMaxNesting);
  }
  if (is_flat(schema)) return copied(schema, path);
  check_keywords(schema, path);
  Schema rest = Schema::object();
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword == "$ref" || keyword == "allOf" || keyword == "nullable" || is_annotation(keyword)) continue;
    rest[keyword] = copied(value, path);
  }
  if (schema.contains("$ref"))
    rest = both_of(flattened(target(schema["$ref"], path), path, depth + 1), std::move(rest), path, depth);
  if (schema.contains("allOf")) {
    const std::string at = member_path(path, "allOf");
    const Schema& all = schema["allOf"];
    if (!all.is_array()) throw error(ExitCode::kBadFile, at, "expected a list, got {}", all.type_name());
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string here = fmt::format("{}[{}]", at, i);
      rest = both_of(std::move(rest), flattened(all[i], here, depth + 1), here, depth);
    }
  }
  if (!is_nullable(schema, path)) return rest;
  if (rest.is_boolean()) return rest == true ? rest : Schema{{"type", "null"}};
  rest["nullable"] = true;
  return rest;
}

Schema SchemaDocument::merged(const Schema& a, const Schema& b, const std::string& path, int depth) const {
  return both_of(flattened(a, path, depth), flattened(b, path, depth), path, depth);
}

/// Of flat schemas.
Schema SchemaDocument::both_of(Schema a, Schema b, const std::string& path, int depth) const {
  for (const Schema* schema : {&a, &b}) {
    if (!schema->is_object() && !schema->is_boolean())
      throw error(ExitCode::kBadFile, path, "expected a schema, got {}", schema->type_name());
  }
  if (a == false || b == true || a == b) return a;
  if (b == false || a == true) return b;
  for (Schema* schema : {&a, &b}) {
    check_keywords(*schema, path);
    write_null(*schema, path);
  }
  merge_members(a, b, path, depth);
  merge_items(a, b, path, depth);
  if (a.contains("type") && b.contains("type")) merge_types(a, b, path);
  for (auto& [keyword, value] : b.get_ref<Schema::object_t&>()) {
    if (!is_annotation(keyword) && !is_one_of(kJoint, keyword)) merge_keyword(a, keyword, value, path);
  }
  return a;
}

/// The same of schemas that need not be flat, and that are often true.
Schema SchemaDocument::joined(Schema a, Schema b, const std::string& path, int depth) const {
  if (a == true) return b;
  return b == true ? a : merged(a, b, path, depth + 1);
}

/// What `nullable` says in other words, which can be merged.
void SchemaDocument::write_null(Schema& schema, const std::string& path) const {
  const bool is_said = is_nullable(schema, path);
  schema.erase("nullable");
  if (!is_said) return;
  if (schema.contains("type")) schema["type"] = names_of(named_types(schema, path) | kNullType);
  if (const auto listed = listed_values(schema)) {
    Schema values = Schema::array();
    for (const Schema* value : *listed) values.push_back(*value);
    values.push_back(nullptr);
    schema.erase("const");
    schema["enum"] = std::move(values);
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (schema.contains(keyword) && schema[keyword].is_array()) schema[keyword].push_back({{"type", "null"}});
  }
}

Schema SchemaDocument::taken(Schema& from, const char* keyword, Schema otherwise,
                             const std::string& path) const {
  if (!from.contains(keyword)) return otherwise;
  Schema value = std::move(from[keyword]);
  from.erase(keyword);
  if (otherwise.is_boolean() || value.type() == otherwise.type()) return value;
  throw error(ExitCode::kBadFile, member_path(path, keyword), "expected {}, got {}",
              otherwise.is_array() ? "a list of schemas" : "an object", value.type_name());
}

/// For each name what both say of it, be it by `properties` or by `additionalProperties`.
void SchemaDocument::merge_members(Schema& a, Schema& b, const std::string& path, int depth) const {
  if (!has_any(a, "properties", "additionalProperties") && !has_any(b, "properties", "additionalProperties"))
    return;
  const std::string at = member_path(path, "properties");
  const bool has_names = a.contains("properties") || b.contains("properties");
  const bool has_others = a.contains("additionalProperties") || b.contains("additionalProperties");
  Schema own = taken(a, "properties", Schema::object(), path);
  Schema further = taken(b, "properties", Schema::object(), path);
  const Schema others = taken(a, "additionalProperties", true, path);
  const Schema further_others = taken(b, "additionalProperties", true, path);
  spend(own.size() + further.size(), path);
  std::map<std::string_view, Schema*> left;
  for (auto& [name, schema] : further.get_ref<Schema::object_t&>()) left.emplace(name, &schema);
  Schema::object_t all;
  all.reserve(own.size() + further.size());  // as it copies what is in it when it grows
  for (auto& [name, schema] : own.get_ref<Schema::object_t&>()) {
    const auto found = left.find(name);
    Schema other = found == left.end() ? copied(further_others, at) : std::move(*found->second);
    if (found != left.end()) left.erase(found);
    all.emplace_back(name, joined(std::move(schema), std::move(other), member_path(at, name), depth));
  }
  for (auto& [name, schema] : further.get_ref<Schema::object_t&>()) {
    if (left.contains(name))
      all.emplace_back(name, joined(copied(others, at), std::move(schema), member_path(at, name), depth));
  }
  if (has_names) a["properties"] = std::move(all);
  if (has_others)
    a["additionalProperties"] =
        joined(others, further_others, member_path(path, "additionalProperties"), depth);
}

/// For each position what both say of it: `items` is of what is behind the `prefixItems` of its own schema.
void SchemaDocument::merge_items(Schema& a, Schema& b, const std::string& path, int depth) const {
  if (!has_any(a, "prefixItems", "items") && !has_any(b, "prefixItems", "items")) return;
  for (const Schema* schema : {&a, &b}) {
    if (schema->contains("items") && (*schema)["items"].is_array())
      throw unsupported(path, "items", "as a list; prefixItems is");
  }
  const bool has_firsts = a.contains("prefixItems") || b.contains("prefixItems");
  const bool has_items = a.contains("items") || b.contains("items");
  Schema firsts = taken(a, "prefixItems", Schema::array(), path);
  Schema further = taken(b, "prefixItems", Schema::array(), path);
  const Schema items = taken(a, "items", true, path);
  const Schema further_items = taken(b, "items", true, path);
  Schema all = Schema::array();
  for (size_t i = 0; i < std::max(firsts.size(), further.size()); ++i) {
    const std::string at = fmt::format("{}[{}]", member_path(path, "prefixItems"), i);
    Schema own = i < firsts.size() ? std::move(firsts[i]) : copied(items, at);
    Schema other = i < further.size() ? std::move(further[i]) : copied(further_items, at);
    all.push_back(joined(std::move(own), std::move(other), at, depth));
  }
  if (has_firsts) a["prefixItems"] = std::move(all);
  if (has_items) a["items"] = joined(items, further_items, member_path(path, "items"), depth);
}

void SchemaDocument::merge_types(Schema& into, const Schema& other, const std::string& path) const {
  const Types both = named_types(into, path) & named_types(other, path);
  if (both == 0)
    throw error(ExitCode::kBadFile, member_path(path, "type"), "expected a type that fits all, got none");
  into["type"] = names_of(both);
}

void SchemaDocument::merge_keyword(Schema& into, const std::string& keyword, Schema& value,
                                   const std::string& path) const {
  if (!into.contains(keyword)) {
    into[keyword] = std::move(value);
    return;
  }
  Schema& known = into[keyword];
  if (keyword == "type" || known == value) return;
  const std::string at = member_path(path, keyword);
  if (keyword == "required" && known.is_array() && value.is_array()) {
    std::set<std::string> names;
    for (const Schema& name : known) names.insert(name.dump());
    for (Schema& name : value) {
      if (names.insert(name.dump()).second) known.push_back(std::move(name));
    }
  } else if (keyword == "enum" && known.is_array() && value.is_array()) {
    known = common(known, value);
    if (known.empty()) throw error(ExitCode::kBadFile, at, "expected a value that fits all, got none");
  } else if (is_one_of(kGreatestCounts, keyword) && known.is_number() && value.is_number()) {
    known = std::max(known, value);
  } else if (is_one_of(kLeastCounts, keyword) && known.is_number() && value.is_number()) {
    known = std::min(known, value);
  } else {
    throw unsupported(path, keyword, "where two schemas that hold together have different ones");
  }
}

}  // namespace soliton::constrain
