#include "runtime/text/constrain/schema_normal.h"

#include <utility>

#include "runtime/text/constrain/schema_formats.h"

namespace soliton::constrain {
namespace {

constexpr std::array<std::string_view, 18> kPlain = {"type",
                                                     "required",
                                                     "enum",
                                                     "const",
                                                     "minLength",
                                                     "maxLength",
                                                     "minItems",
                                                     "maxItems",
                                                     "minProperties",
                                                     "maxProperties",
                                                     "uniqueItems",
                                                     "nullable",
                                                     "minimum",
                                                     "maximum",
                                                     "exclusiveMinimum",
                                                     "exclusiveMaximum",
                                                     "$dynamicRef",
                                                     "propertyDependencies"};
constexpr std::array<std::string_view, 3> kSchemaKeywords = {"additionalProperties", "unevaluatedItems",
                                                             "unevaluatedProperties"};
constexpr std::array<std::string_view, 2> kSchemaMaps = {"properties", "patternProperties"};

constexpr std::array<std::string_view, 3> kOfDraft3 = {"extends", "disallow", "divisibleBy"};

class Normaliser {
 public:
  Normaliser(SchemaReferences& references, const std::function<void(size_t)>& spend)
      : references_(references), spend_(spend) {}

  Schema run(const Schema& schema, const std::string& parent_base) {
    spend_(1);
    if (!schema.is_object()) return schema;
    spend_(schema.size());
    const std::string base = references_.base_of(schema, parent_base);
    Schema made = Schema::object();
    for (const auto& [keyword, value] : schema.get_ref<const Schema::object_t&>()) {
      if (is_one_of(kPlain, keyword)) made[keyword] = value;
      if (is_one_of(kOfDraft3, keyword) && references_.is_draft_3()) made[keyword] = value;
      if (is_one_of(kSchemaKeywords, keyword)) made[keyword] = run(value, base);
      if (is_one_of(kSchemaMaps, keyword)) made[keyword] = map_of(value, base);
    }
    say_references(schema, made, base, parent_base);
    say_alternatives(schema, made, base);
    say_conditions(schema, made, base);
    say_items(schema, made, base);
    say_scalars(schema, made);
    say_required_members(schema, made);
    if (schema.contains("propertyNames")) made["~names"] = {run(schema["propertyNames"], base)};
    drop_idle(made);
    return made;
  }

 private:
  Schema map_of(const Schema& map, const std::string& base) {
    if (!map.is_object()) return map;
    Schema made = Schema::object();
    auto& members = made.get_ref<Schema::object_t&>();
    members.reserve(map.size());
    for (const auto& [name, value] : map.get_ref<const Schema::object_t&>())
      members.emplace_back(name, run(value, base));
    return made;
  }
  Schema list_of(const Schema& list, const std::string& base) {
    if (!list.is_array()) return list;
    Schema made = Schema::array();
    for (const Schema& item : list) made.push_back(run(item, base));
    return made;
  }

  /// Up to draft 7 an $id beside it does not change where a reference leads.
  void say_references(const Schema& schema, Schema& made, const std::string& base,
                      const std::string& parent_base) {
    if (schema.contains("$recursiveRef")) made["$recursiveRef"] = schema["$recursiveRef"];
    if (!schema.contains("$ref")) return;
    made["$ref"] = schema["$ref"];
    if (!schema["$ref"].is_string()) return;
    const std::string& written = schema["$ref"].get_ref<const std::string&>();
    const std::string own = normal_reference(written, base, references_);
    const std::string of_parent = normal_reference(written, parent_base, references_);
    const SchemaReferences::Siblings siblings = references_.siblings();
    made["$ref"] = siblings == SchemaReferences::Siblings::kIgnored ? of_parent : own;
    const bool is_open = own != of_parent && !of_parent.starts_with("?");
    if (is_open && siblings == SchemaReferences::Siblings::kUnsaid) made["$id"] = schema["$id"];
  }

  void say_alternatives(const Schema& schema, Schema& made, const std::string& base) {
    if (schema.contains("allOf")) made["allOf"] = list_of(schema["allOf"], base);
    if (schema.contains("anyOf"))
      made["~choices"].push_back(labelled("anyOf", list_of(schema["anyOf"], base)));
    if (schema.contains("oneOf")) made["~ones"].push_back(labelled("oneOf", list_of(schema["oneOf"], base)));
    if (schema.contains("not")) made["~nots"].push_back(run(schema["not"], base));
  }

  void say_conditions(const Schema& schema, Schema& made, const std::string& base) {
    if (schema.contains("if") && (schema.contains("then") || schema.contains("else"))) {
      const Schema condition = run(schema["if"], base);
      const auto branch = [&](const char* keyword) {
        return schema.contains(keyword) ? run(schema[keyword], base) : Schema(true);
      };
      const auto both = [](Schema one, Schema other) {
        return Schema{{"allOf", Schema::array({std::move(one), std::move(other)})}};
      };
      const Schema otherwise = {{"~nots", Schema::array({condition})}};
      made["~choices"].push_back(
          labelled("if", Schema::array({both(condition, branch("then")), both(otherwise, branch("else"))})));
    }
    for (const char* keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
      if (!schema.contains(keyword)) continue;
      if (!schema[keyword].is_object()) {
        made[keyword] = schema[keyword];
        continue;
      }
      for (const auto& [name, value] : schema[keyword].get_ref<const Schema::object_t&>())
        say_dependence(made, member_path(keyword, name), name, value, base);
    }
  }
  void say_dependence(Schema& made, const std::string& label, const std::string& name, const Schema& value,
                      const std::string& base) {
    Schema names = Schema::array({name});
    const Schema absent = {{"~absent", names}};
    Schema present = {{"required", names}};
    if (value.is_array()) {
      for (const Schema& other : value) {
        if (std::find(names.begin(), names.end(), other) == names.end()) names.push_back(other);
      }
      if (names.size() == 1) return;
      present = {{"required", names}};
    } else if (value.is_string()) {  // draft 3
      present["required"].push_back(value);
    } else {
      present = {{"allOf", Schema::array({present, run(value, base)})}};
    }
    made["~choices"].push_back(labelled(label, Schema::array({absent, present})));
  }

  void say_items(const Schema& schema, Schema& made, const std::string& base) {
    if (schema.contains("prefixItems")) made["prefixItems"] = list_of(schema["prefixItems"], base);
    if (schema.contains("items") && schema["items"].is_array()) {
      made["prefixItems"] = list_of(schema["items"], base);
      if (schema.contains("additionalItems")) made["items"] = run(schema["additionalItems"], base);
    } else if (schema.contains("items")) {
      made["items"] = run(schema["items"], base);
    }
    if (!schema.contains("contains")) return;
    Schema contained = {{"schema", run(schema["contains"], base)}, {"minContains", 1}};
    if (schema.contains("minContains")) contained["minContains"] = schema["minContains"];
    if (schema.contains("maxContains")) contained["maxContains"] = schema["maxContains"];
    if (contained["minContains"] != 0 || contained.contains("maxContains"))
      made["~contains"].push_back(std::move(contained));
  }

  static void say_scalars(const Schema& schema, Schema& made) {
    if (schema.contains("pattern")) made["~patterns"].push_back(schema["pattern"]);
    if (schema.contains("multipleOf")) made["~multiples"].push_back(schema["multipleOf"]);
    if (schema.contains("format") && pattern_of_format(schema["format"]) != nullptr)
      made["~formats"].push_back(schema["format"]);
    // Up to draft 4 it is said beside a bound whether this is exclusive.
    for (const auto& [bound, exclusive] :
         {std::pair("minimum", "exclusiveMinimum"), std::pair("maximum", "exclusiveMaximum")}) {
      if (!made.contains(exclusive) || !made[exclusive].is_boolean()) continue;
      const bool is_said = made[exclusive] == true && made.contains(bound);
      made.erase(exclusive);
      if (!is_said) continue;
      made[exclusive] = made[bound];
      made.erase(bound);
    }
  }

  /// In draft 3 a member's own schema says that it is required.
  void say_required_members(const Schema& schema, Schema& made) const {
    if (!references_.is_draft_3()) return;
    if (made.contains("required") && made["required"].is_boolean())
      made.erase("required");  // its parent reads that
    if (!made.contains("properties") || !made["properties"].is_object()) return;
    for (const auto& [name, member] : schema["properties"].get_ref<const Schema::object_t&>()) {
      if (member.is_object() && member.contains("required") && member["required"] == true)
        made["required"].push_back(name);
    }
  }

  /// What says nothing, or follows from what stands beside it.
  static void drop_idle(Schema& made) {
    for (const char* keyword : {"minLength", "minItems", "minProperties"}) {
      if (made.contains(keyword) && made[keyword] == 0) made.erase(keyword);
    }
    if (made.contains("uniqueItems") && made["uniqueItems"] == false) made.erase("uniqueItems");
    for (const char* keyword : {"unevaluatedItems", "unevaluatedProperties"}) {
      if (made.contains(keyword) && made[keyword] == true) made.erase(keyword);
    }
    if (made.contains("properties") && !made.contains("additionalProperties")) made["~closes"] = true;
  }

  SchemaReferences& references_;
  const std::function<void(size_t)>& spend_;
};

}  // namespace

Schema labelled(const std::string& label, Schema alternatives) {
  Schema entry = Schema::object();
  entry[label] = std::move(alternatives);
  return entry;
}

std::string normal_reference(const std::string& reference, const std::string& base,
                             SchemaReferences& references) {
  const std::optional<std::string> pointer = references.pointer_of(reference, base);
  return pointer ? "#" + *pointer : "?" + reference;
}

Schema normal_schema(const Schema& schema, const std::string& base, SchemaReferences& references,
                     const std::function<void(size_t)>& spend) {
  return Normaliser(references, spend).run(schema, base);
}

}  // namespace soliton::constrain
