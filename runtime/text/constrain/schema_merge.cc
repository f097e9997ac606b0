// The merging of SchemaDocument.
#include <algorithm>
#include <array>
#include <set>

#include "runtime/text/constrain/schema_document.h"

namespace soliton::constrain {
namespace {

constexpr std::array<std::string_view, 5> kGreatestCounts = {"minimum", "exclusiveMinimum", "minLength",
                                                             "minItems", "minProperties"};
constexpr std::array<std::string_view, 5> kLeastCounts = {"maximum", "exclusiveMaximum", "maxLength",
                                                          "maxItems", "maxProperties"};
constexpr std::array<std::string_view, 5> kJoint = {"properties", "additionalProperties", "patternProperties",
                                                    "prefixItems", "items"};

/// The values of both lists, in the order of the first.
Schema common(const Schema& a, const Schema& b) {
  std::set<std::string> texts;
  for (const Schema& value : b) texts.insert(canonical(value));
  Schema both = Schema::array();
  std::copy_if(a.begin(), a.end(), std::back_inserter(both),
               [&](const Schema& value) { return texts.contains(canonical(value)); });
  return both;
}

/// Of lists, those of `further` that are new.
void unite(Schema& list, Schema& further) {
  std::set<std::string> known;
  for (const Schema& value : list) known.insert(value.dump());
  for (Schema& value : further) {
    if (known.insert(value.dump()).second) list.push_back(std::move(value));
  }
}

bool has_any(const Schema& schema, const char* one, const char* other) {
  return schema.contains(one) || schema.contains(other);
}

}  // namespace

bool SchemaDocument::is_flat(const Schema& schema) {
  return !schema.is_object() || !has_any(schema, "$ref", "allOf");
}

Schema SchemaDocument::flattened(const Schema& schema, const std::string& path, int depth) const {
  if (depth > kMaxNesting) {
    throw error(ExitCode::kOutOfMemory, path,
                "expected at most {} schemas to merge inside one another, got more: a schema that refers to "
                "itself can have no keywords beside the reference",
                kMaxNesting);
  }
  if (is_flat(schema)) return copied(schema, path);
  check_keywords(schema, path);
  Schema rest = Schema::object();
  for (const auto& [keyword, value] : schema.items()) {
    const bool is_behind = keyword == "$ref" || keyword == "allOf" || keyword == "nullable" ||
                           keyword.starts_with("unevaluated");
    if (!is_behind) rest[keyword] = copied(value, path);
  }
  if (schema.contains("$ref"))
    rest = both_of(flattened(target(schema["$ref"], path), path, depth + 1), std::move(rest), path);
  if (schema.contains("allOf")) {
    const std::string at = member_path(path, "allOf");
    const Schema& all = schema["allOf"];
    if (!all.is_array()) throw error(ExitCode::kBadFile, at, "expected a list, got {}", all.type_name());
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string here = fmt::format("{}[{}]", at, i);
      rest = both_of(std::move(rest), flattened(all[i], here, depth + 1), here);
    }
  }
  for (const char* keyword : {"unevaluatedItems", "unevaluatedProperties"}) {
    if (!schema.contains(keyword) || rest == false) continue;
    if (rest == true) rest = Schema::object();
    rest[keyword] = copied(schema[keyword], path);
  }
  if (!is_nullable(schema, path)) return rest;
  if (rest.is_boolean()) return rest == true ? rest : Schema{{"type", "null"}};
  rest["nullable"] = true;
  return rest;
}

Schema SchemaDocument::merged(const Schema& a, const Schema& b, const std::string& path, int depth) const {
  return both_of(flattened(a, path, depth), flattened(b, path, depth), path);
}

/// Of flat schemas.
Schema SchemaDocument::both_of(Schema a, Schema b, const std::string& path) const {
  for (const Schema* schema : {&a, &b}) {
    if (!schema->is_object() && !schema->is_boolean())
      throw error(ExitCode::kBadFile, path, "expected a schema, got {}", schema->type_name());
  }
  if (a == false || b == true || b.empty() || a == b) return a;
  if (b == false || a == true || a.empty()) return b;
  spend(a.size() + b.size(), path);
  for (Schema* schema : {&a, &b}) {
    check_keywords(*schema, path);
    resolve_unevaluated(*schema, path);
    write_null(*schema, path);
  }
  merge_members(a, b, path);
  merge_items(a, b, path);
  if (a.contains("type") && b.contains("type")) merge_types(a, b, path);
  for (auto& [keyword, value] : b.get_ref<Schema::object_t&>()) {
    if (!is_one_of(kJoint, keyword)) merge_keyword(a, keyword, value, path);
  }
  return a;
}

/// The same of schemas that need not be flat; they are merged when somebody wants to know what they say.
Schema SchemaDocument::joined(Schema a, Schema b, const std::string& path) const {
  if (a == true || b == false) return b;
  if (b == true || a == false) return a;
  spend(weight(a) + weight(b), path);
  const auto parts_of = [](Schema& schema) {
    const bool is_list =
        schema.is_object() && schema.size() == 1 && schema.contains("allOf") && schema["allOf"].is_array();
    return is_list ? std::move(schema["allOf"]) : Schema::array({std::move(schema)});
  };
  Schema all = parts_of(a);
  Schema further = parts_of(b);
  unite(all, further);
  if (all.size() == 1) return std::move(all[0]);
  return Schema{{"allOf", std::move(all)}};
}

void SchemaDocument::resolve_unevaluated(Schema& schema, const std::string& path) const {
  for (const auto& [keyword, otherwise] :
       {std::pair("unevaluatedItems", "items"), std::pair("unevaluatedProperties", "additionalProperties")}) {
    if (!schema.contains(keyword)) continue;
    if (has_any(schema, "~choices", "~ones"))
      throw unsupported(path, keyword, "of alternatives, where other schemas hold together with it");
    if (schema.contains("~contains") && !schema.contains("items") && std::string_view(otherwise) == "items")
      throw unsupported(path, keyword, "beside contains");
    if (!schema.contains(otherwise)) schema[otherwise] = std::move(schema[keyword]);
    schema.erase(keyword);
  }
}

/// What `nullable` says in other words, which can be merged.
void SchemaDocument::write_null(Schema& schema, const std::string& path) const {
  const bool is_said = is_nullable(schema, path);
  schema.erase("nullable");
  if (!is_said) return;
  const Schema null = {{"type", "null"}};
  if (schema.contains("type")) schema["type"] = names_of(named_types(schema, path) | kNullType);
  if (const auto listed = listed_values(schema)) {
    Schema values = Schema::array();
    for (const Schema* value : *listed) values.push_back(*value);
    values.push_back(nullptr);
    schema.erase("const");
    schema["enum"] = std::move(values);
  }
  // None of the others may take it too: exactly one has to.
  const Schema but_null = {{"~nots", Schema::array({null})}};
  const auto without = [&](const Schema& other) {
    return Schema{{"allOf", Schema::array({other, but_null})}};
  };
  for (const char* keyword : {"~choices", "~ones"}) {
    if (!schema.contains(keyword)) continue;
    for (Schema& entry : schema[keyword]) {
      Schema& list = entry.begin().value();
      if (!list.is_array()) continue;
      if (keyword[1] == 'o') std::transform(list.begin(), list.end(), list.begin(), without);
      list.push_back(null);
    }
  }
  if (schema.contains("~nots")) {
    for (Schema& other : schema["~nots"]) other = without(other);
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

/// For each name what both say of it, be it by `properties` or by `additionalProperties`; what patterns say holds beside
/// that.
void SchemaDocument::merge_members(Schema& a, Schema& b, const std::string& path) const {
  const auto speaks = [](const Schema& schema) {
    return has_any(schema, "properties", "additionalProperties") || schema.contains("patternProperties");
  };
  if (!speaks(a) || !speaks(b)) {
    if (!speaks(b)) return;
    for (const char* keyword : {"properties", "additionalProperties", "patternProperties"}) {
      if (b.contains(keyword)) a[keyword] = std::move(b[keyword]);
    }
    return;
  }
  const std::string at = member_path(path, "properties");
  const bool has_names = a.contains("properties") || b.contains("properties");
  const bool has_others = a.contains("additionalProperties") || b.contains("additionalProperties");
  Schema own = taken(a, "properties", Schema::object(), path);
  Schema further = taken(b, "properties", Schema::object(), path);
  const Schema others = taken(a, "additionalProperties", true, path);
  const Schema further_others = taken(b, "additionalProperties", true, path);
  // What one says of a name that only the other one lists.
  const auto left_of = [&](const Schema& schema, const Schema& its_others, const std::string& name) {
    if (its_others == true || is_in_patterns(schema, name, path)) return Schema(true);
    return copied(its_others, at);
  };
  spend(own.size() + further.size(), path);
  std::map<std::string_view, Schema*> left;
  for (auto& [name, schema] : further.get_ref<Schema::object_t&>()) left.emplace(name, &schema);
  Schema::object_t all;
  all.reserve(own.size() + further.size());  // as it copies what is in it when it grows
  for (auto& [name, schema] : own.get_ref<Schema::object_t&>()) {
    const auto found = left.find(name);
    Schema other = found == left.end() ? left_of(b, further_others, name) : std::move(*found->second);
    if (found != left.end()) left.erase(found);
    all.emplace_back(name, joined(std::move(schema), std::move(other), at));
  }
  for (auto& [name, schema] : further.get_ref<Schema::object_t&>()) {
    if (left.contains(name)) all.emplace_back(name, joined(left_of(a, others, name), std::move(schema), at));
  }
  if (has_names) a["properties"] = std::move(all);
  const auto has_own = [](const Schema& schema, const Schema& than) {
    if (!schema.contains("patternProperties")) return false;
    for (const auto& [pattern, value] : schema["patternProperties"].items()) {
      if (!than.contains("patternProperties") || !than["patternProperties"].contains(pattern)) return true;
    }
    return false;
  };
  if ((has_own(a, b) && further_others != true) || (has_own(b, a) && others != true))
    throw unsupported(path, "patternProperties",
                      "where another schema that holds together with it has additionalProperties");
  merge_patterns(a, b, path);
  if (has_others) a["additionalProperties"] = joined(others, further_others, path);
}

void SchemaDocument::merge_patterns(Schema& a, Schema& b, const std::string& path) const {
  if (!has_any(a, "patternProperties", "patternProperties") && !b.contains("patternProperties")) return;
  Schema all = taken(a, "patternProperties", Schema::object(), path);
  Schema further = taken(b, "patternProperties", Schema::object(), path);
  for (auto& [pattern, schema] : further.get_ref<Schema::object_t&>()) {
    if (!all.contains(pattern)) all[pattern] = true;
    all[pattern] = joined(std::move(all[pattern]), std::move(schema), path);
  }
  a["patternProperties"] = std::move(all);
}

/// For each position what both say of it: `items` is of what is behind the `prefixItems` of its own schema.
void SchemaDocument::merge_items(Schema& a, Schema& b, const std::string& path) const {
  if (!has_any(a, "prefixItems", "items") && !has_any(b, "prefixItems", "items")) return;
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
    all.push_back(joined(std::move(own), std::move(other), at));
  }
  if (has_firsts) a["prefixItems"] = std::move(all);
  if (has_items) a["items"] = joined(items, further_items, path);
}

void SchemaDocument::merge_types(Schema& into, const Schema& other, const std::string& path) const {
  const Types both = named_types(into, path) & named_types(other, path);
  if (both == 0) throw no_value(member_path(path, "type"), "expected a type that fits all, got none");
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
  const bool is_list = keyword == "required" || keyword.starts_with("~");
  if (is_list && known.is_array() && value.is_array()) {
    spend(weight(known) + weight(value), path);
    unite(known, value);
  } else if (keyword == "enum" && known.is_array() && value.is_array()) {
    known = common(known, value);
    if (known.empty()) throw no_value(at, "expected a value that fits all, got none");
  } else if (keyword == "const") {
    if (canonical(known) != canonical(value)) throw no_value(at, "expected a value that fits all, got none");
  } else if (is_one_of(kGreatestCounts, keyword) && known.is_number() && value.is_number()) {
    known = std::max(known, value);
  } else if (is_one_of(kLeastCounts, keyword) && known.is_number() && value.is_number()) {
    known = std::min(known, value);
  } else {
    throw unsupported(path, keyword, "where two schemas that hold together have different ones");
  }
}

}  // namespace soliton::constrain
