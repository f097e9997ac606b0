#include "runtime/text/constrain/schema_compiler.h"

#include <algorithm>
#include <array>

#include "runtime/text/constrain/schema_check.h"
#include "runtime/text/constrain/schema_numbers.h"

namespace soliton::constrain {
namespace {

constexpr int kMaxSchemas = 20'000;  // looked at, in all
constexpr int kNoRule = -1;          // of what has no value
constexpr size_t kMostKnown = 2000;  // values of a schema that is looked for among those known

struct Family {
  const char* type;
  std::array<std::string_view, 10> keywords;  // that speak of it; empty: none
};
constexpr std::array<Family, 4> kFamilies = {
    {{"object",
      {"properties", "required", "additionalProperties", "patternProperties", "minProperties",
       "maxProperties", "~absent", "~names", "unevaluatedProperties"}},
     {"array",
      {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "~contains", "unevaluatedItems"}},
     {"string", {"minLength", "maxLength", "~patterns", "~formats", "~unmatched", "~others"}},
     {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "~multiples", "~fractions"}}}};

template <size_t kSize>
bool is_listed(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether it is nothing but a reference, for which there is a rule.
bool is_reference(const Schema& schema) {
  return schema.contains("$ref") && schema.size() == 1 + schema.count("nullable");
}

}  // namespace

int SchemaCompiler::rule_of(const Schema& schema, const std::string& path, int depth) {
  const int index = grammar_.add(path.empty() ? "the schema" : path);
  Expression expression = value_of(schema, path, depth);
  grammar_.rules[static_cast<size_t>(index)].expression = std::move(expression);
  return index;
}

std::optional<int> SchemaCompiler::rule_if_any(const Schema& schema, const std::string& path, int depth) {
  try {
    return rule_of(schema, path, depth);
  } catch (const NoValue&) {
    return std::nullopt;
  }
}

/// A rule for each key, so that schemas may refer to themselves.
int SchemaCompiler::known_rule(const std::string& key, const Schema& schema, const std::string& name,
                               const std::string& path, int depth) {
  const auto known = known_rules_.find(key);
  if (known != known_rules_.end()) {
    if (known->second == kNoRule) throw document_.no_value(path, "expected something that fits, got nothing");
    return known->second;
  }
  const int index = grammar_.add(name, choice({}));  // nothing, as long as it is not known
  int& known_rule = known_rules_.emplace(key, index).first->second;
  try {
    Expression expression;
    if (!schema.is_object() || is_reference(schema)) {
      expression = value_of(schema, path, depth + 1);
    } else if (SchemaDocument::is_flat(schema)) {
      expression = flat_value(schema, path, depth);
    } else {
      expression = flat_value(document_.flattened(schema, path), path, depth + 1);
    }
    grammar_.rules[static_cast<size_t>(index)].expression = std::move(expression);
  } catch (const NoValue&) {
    known_rule = kNoRule;
    throw;
  }
  return index;
}

Expression SchemaCompiler::value_of(const Schema& schema, const std::string& path, int depth) {
  if (depth > kMaxNesting || ++num_schemas_ > kMaxSchemas) {
    throw document_.error(ExitCode::kOutOfMemory, path,
                          "expected at most {} schemas inside one another and {} in all, got more",
                          kMaxNesting, kMaxSchemas);
  }
  if (schema == true) return json_.value();
  if (schema == false) throw document_.no_value(path, "expected something that fits, got nothing");
  if (!schema.is_object()) throw bad(path, "expected a schema, got {}", schema.type_name());
  document_.check_keywords(schema, path);
  if (is_reference(schema)) {
    Expression value = reference(schema["$ref"], path, depth);
    return document_.is_nullable(schema, path) ? choice({std::move(value), text("null")}) : value;
  }
  const bool is_flat = SchemaDocument::is_flat(schema);
  if (is_flat && !schema.contains("properties") && !schema.contains("items"))
    return flat_value(schema, path, depth);
  const size_t size = weight(schema);
  if (is_flat && size > kMostKnown) return flat_value(schema, path, depth);
  document_.spend(size, path);
  return rule(known_rule(schema.dump(), schema, path, path, depth));
}

Expression SchemaCompiler::flat_value(Schema schema, const std::string& path, int depth) {
  if (schema.is_boolean()) return value_of(schema, path, depth);
  document_.check_keywords(schema, path);
  if (document_.is_nullable(schema, path)) {
    schema.erase("nullable");
    std::vector<Expression> values = {text("null")};
    if (const std::optional<int> other = rule_if_any(schema, path, depth)) values.push_back(rule(*other));
    return choice(std::move(values));
  }
  if (schema.contains("enum") || schema.contains("const")) return listed(schema, path);
  if (schema.contains("~choices")) return any_of(schema, path, depth);
  if (schema.contains("~ones")) return one_of(schema, path, depth);
  document_.resolve_unevaluated(schema, path);
  if (schema.contains("~nots")) return none_of_nots(schema, path, depth);
  return typed(schema, path, depth);
}

Expression SchemaCompiler::reference(const Schema& reference, const std::string& path, int depth) {
  const Schema& target = document_.target(reference, path);
  const std::string& name = reference.get_ref<const std::string&>();
  const std::string at = member_path("", name);
  return rule(known_rule(name, target, at, path, depth));
}

/// Values of enum and const that fit all that stands beside these.
std::vector<const Schema*> SchemaCompiler::listed_that_fit(const Schema& schema,
                                                           const std::string& path) const {
  if (schema.contains("enum") && (!schema["enum"].is_array() || schema["enum"].empty()))
    throw bad(member_path(path, "enum"), "expected a list of values, got another value");
  Schema rest = Schema::object();
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword != "enum" && keyword != "const") rest[keyword] = value;
  }
  std::vector<const Schema*> values;
  bool is_decided = true;
  const auto all = listed_values(schema);
  for (const Schema* value : all.value_or(std::vector<const Schema*>())) {
    const Fit found = rest.empty() ? Fit::kYes : fit(document_, rest, *value, path);
    if (found == Fit::kYes) values.push_back(value);
    is_decided = is_decided && found != Fit::kMaybe;
  }
  if (values.empty() && !is_decided)
    throw document_.unsupported(path, schema.contains("enum") ? "enum" : "const",
                                "beside what says otherwise of its values");
  if (values.empty()) throw document_.no_value(path, "expected a listed value that fits, got none");
  return values;
}

Expression SchemaCompiler::listed(const Schema& schema, const std::string& path) const {
  std::vector<Expression> values;
  for (const Schema* value : listed_that_fit(schema, path)) values.push_back(text(value->dump()));
  return choice(std::move(values));
}

Expression SchemaCompiler::typed(const Schema& schema, const std::string& path, int depth) {
  std::vector<std::string> types;
  if (!schema.contains("type")) {
    for (const Family& family : kFamilies) {
      const bool speaks = std::any_of(schema.items().begin(), schema.items().end(), [&](const auto& item) {
        return is_listed(family.keywords, item.key());
      });
      if (speaks) types.emplace_back(family.type);
    }
    if (types.empty()) return json_.value();
  } else {
    for (const Schema& name : names_of(document_.named_types(schema, path)))
      types.push_back(name.get<std::string>());
  }
  std::vector<Expression> values;
  std::optional<NoValue> none;
  for (const std::string& type : types) {
    try {
      values.push_back(of_type(type, schema, path, depth));
    } catch (const NoValue& error) {
      none = error;
    }
  }
  if (values.empty()) throw *none;
  return choice(std::move(values));
}

Expression SchemaCompiler::of_type(const std::string& type, const Schema& schema, const std::string& path,
                                   int depth) {
  if (type == "object") return object_of(schema, path, depth);
  if (type == "array") return array_of(schema, path, depth);
  if (type == "string") return string_of(document_, json_, schema, path);
  if (type == "number") return number_of(document_, json_, schema, path, false);
  if (type == "integer") return number_of(document_, json_, schema, path, true);
  return type == "boolean" ? json_.boolean() : text("null");
}

}  // namespace soliton::constrain
