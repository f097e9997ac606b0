#include "runtime/text/constrain/schema_negation.h"

#include <cmath>

namespace soliton::constrain {
namespace {

Schema list_of(Schema value) {
  Schema list = Schema::array();
  list.push_back(std::move(value));
  return list;
}

Schema without(const Schema& schema) {
  return Schema{{"~nots", list_of(schema)}};
}

class Negation {
 public:
  Negation(const SchemaDocument& document, const Schema& schema, const Schema& beside,
           const std::string& path)
      : document_(document), path_(path), beside_(beside), schema_(document.flattened(schema, path)) {}

  Negated run() {
    if (schema_ == true) return {};
    if (schema_ == false) return {{true}, ""};
    document_.check_keywords(schema_, path_);
    if (document_.is_nullable(schema_, path_)) return {nullable(), ""};
    types_ = schema_.contains("type") ? document_.named_types(schema_, path_) : kAllTypes;
    say_objects();
    say_arrays();
    say_strings();
    say_numbers();
    say_values();
    say_composed();
    if (types_ != kAllTypes) say_types();  // last: who takes the first that fits finds more of the same type
    return {std::move(made_), unsaid()};
  }

 private:
  /// All but null, of which the rest says nothing.
  std::vector<Schema> nullable() const {
    Schema rest = schema_;
    rest.erase("nullable");
    const Schema not_null = without({{"type", "null"}});
    return {Schema{{"allOf", Schema::array({without(rest), not_null})}}};
  }

  void add(Types type, Schema schema) {
    if ((types_ & type) == 0) return;  // what is of no other type is not taken anyway
    schema["type"] = names_of(type == kIntegerType ? kIntegerType | kNumberType : type);
    made_.push_back(std::move(schema));
  }
  bool has_list(const char* keyword) const {
    return schema_.contains(keyword) && schema_[keyword].is_array();
  }
  bool has_object(const char* keyword) const {
    return schema_.contains(keyword) && schema_[keyword].is_object();
  }

  void say_types() {
    Types others = kAllTypes & ~types_;
    if ((types_ & kIntegerType) != 0 && (others & kNumberType) != 0) {
      made_.push_back({{"type", "number"}, {"~fractions", true}});
      others &= ~kNumberType;
    }
    if (others != 0) made_.push_back({{"type", names_of(others)}});
  }

  /// Beside types that no listed value has, texts that are none of them, and numbers beyond all of them.
  void say_values() {
    const auto listed = listed_values(schema_);
    if (!listed) return;
    Types others = types_;
    Schema texts = Schema::array();
    std::optional<double> least, most;
    Schema truths = Schema::array({true, false});
    for (const Schema* value : *listed) {
      others &= ~type_of(*value);
      if (value->is_string()) texts.push_back(*value);
      if (value->is_boolean()) truths.erase(std::remove(truths.begin(), truths.end(), *value), truths.end());
      if (!value->is_number()) continue;
      others &= ~(kNumberType | kIntegerType);
      const auto number = value->get<double>();
      least = std::min(least.value_or(number), number);
      most = std::max(most.value_or(number), number);
    }
    if ((others & kNumberType) == 0) others &= ~kIntegerType;
    if (others != 0) made_.push_back({{"type", names_of(others)}});
    if (!texts.empty()) add(kStringType, {{"~others", texts}});
    if (truths.size() == 1) add(kBooleanType, {{"enum", truths}});
    if (!least) return;
    add(kIntegerType, {{"exclusiveMaximum", *least}});
    add(kIntegerType, {{"exclusiveMinimum", *most}});
  }

  void say_composed() {
    if (has_list("~nots")) {
      for (const Schema& other : schema_["~nots"]) made_.push_back(other);
    }
    for (const char* keyword : {"~choices", "~ones"}) {
      if (!has_list(keyword)) continue;
      for (const Schema& entry : schema_[keyword]) {
        Schema all = Schema::array();
        for (const Schema& part : document_.alternatives(entry, path_).second) all.push_back(without(part));
        made_.push_back({{"allOf", std::move(all)}});
      }
    }
  }

  void say_objects() {
    if (has_list("required")) {
      for (const Schema& name : schema_["required"]) add(kObjectType, {{"~absent", list_of(name)}});
    }
    if (has_list("~absent")) {
      for (const Schema& name : schema_["~absent"]) add(kObjectType, {{"required", list_of(name)}});
    }
    if (has_object("properties")) {
      for (const auto& [name, schema] : schema_["properties"].items()) {
        if (schema == true || (schema.is_object() && schema.empty())) continue;
        Schema properties = Schema::object();
        properties[name] = without(schema);
        add(kObjectType, {{"properties", std::move(properties)}, {"required", list_of(name)}});
      }
    }
    say_further_members();
    say_counts(kObjectType, "minProperties", "maxProperties");
  }

  /// That one of the members that only the schema beside lists is there and does not fit.
  void say_further_members() {
    if (!schema_.contains("additionalProperties") || schema_["additionalProperties"] == true) return;
    if (!beside_.is_object() || !beside_.contains("properties") || !beside_["properties"].is_object()) return;
    for (const auto& [name, own] : beside_["properties"].get_ref<const Schema::object_t&>()) {
      const bool is_listed = has_object("properties") && schema_["properties"].contains(name);
      if (own == false || is_listed || document_.is_in_patterns(schema_, name, path_)) continue;
      Schema member = {{"required", list_of(name)}};
      if (schema_["additionalProperties"] != false)
        member["properties"][name] = without(schema_["additionalProperties"]);
      add(kObjectType, std::move(member));
    }
  }

  void say_arrays() {
    say_counts(kArrayType, "minItems", "maxItems");
    if (has_list("prefixItems")) {
      const Schema& firsts = schema_["prefixItems"];
      for (size_t i = 0; i < firsts.size(); ++i) {
        if (firsts[i] == true) continue;
        Schema others(i, Schema(true));
        if (i == 0) others = Schema::array();
        others.push_back(without(firsts[i]));
        add(kArrayType, {{"prefixItems", std::move(others)}, {"items", true}, {"minItems", i + 1}});
      }
    } else if (schema_.contains("items")) {
      add(kArrayType, {{"~contains", list_of({{"schema", without(schema_["items"])}, {"minContains", 1}})}});
    }
    if (!has_list("~contains")) return;
    for (const Schema& contained : schema_["~contains"]) {
      if (contained["minContains"] == 1 && !contained.contains("maxContains"))
        add(kArrayType, {{"items", without(contained["schema"])}});
    }
  }

  void say_strings() {
    say_counts(kStringType, "minLength", "maxLength");
    if (has_list("~patterns")) {
      for (const Schema& pattern : schema_["~patterns"]) add(kStringType, {{"~unmatched", list_of(pattern)}});
    }
    if (has_list("~unmatched")) {
      for (const Schema& pattern : schema_["~unmatched"]) add(kStringType, {{"~patterns", list_of(pattern)}});
    }
    if (has_list("~others")) add(kStringType, {{"enum", schema_["~others"]}});
  }

  void say_numbers() {
    for (const auto& [keyword, other] :
         {std::pair("minimum", "exclusiveMaximum"), std::pair("maximum", "exclusiveMinimum"),
          std::pair("exclusiveMinimum", "maximum"), std::pair("exclusiveMaximum", "minimum")}) {
      if (!schema_.contains(keyword)) continue;
      Schema bounded = Schema::object();
      bounded[other] = schema_[keyword];
      if ((types_ & (kNumberType | kIntegerType)) != 0) {
        bounded["type"] = "number";
        made_.push_back(std::move(bounded));
      }
    }
  }

  void say_counts(Types type, const char* min, const char* max) {
    const auto say = [&](const char* keyword, const char* other, int more) {
      if (!schema_.contains(keyword) || !schema_[keyword].is_number()) return;
      const double number = schema_[keyword].get<double>() + more;
      if (number < 0 || number != std::trunc(number) || number > kMaxCount) return;
      Schema bounded = Schema::object();
      bounded[other] = static_cast<int64_t>(number);
      add(type, std::move(bounded));
    };
    say(min, max, -1);
    say(max, min, 1);
  }

  std::string unsaid() const {
    static constexpr std::array<std::string_view, 10> kUnsaid = {
        "additionalProperties",  "patternProperties", "uniqueItems", "~formats", "~multiples", "~names",
        "unevaluatedProperties", "unevaluatedItems",  "~fractions",  "~contains"};
    for (const std::string_view keyword : kUnsaid) {
      if (!schema_.contains(keyword) || (keyword.starts_with("a") && schema_[std::string(keyword)] == true))
        continue;
      if (keyword == "~contains" && schema_[std::string(keyword)].size() == 1) continue;
      return named(keyword);
    }
    if (schema_.contains("prefixItems") && schema_.contains("items") && schema_["items"] != true)
      return "items";
    return "";
  }
  /// As it is written.
  static std::string named(std::string_view keyword) {
    if (keyword == "~formats") return "format";
    if (keyword == "~multiples" || keyword == "~fractions") return "multipleOf";
    if (keyword == "~names") return "propertyNames";
    return keyword == "~contains" ? "contains" : std::string(keyword);
  }

  static constexpr double kMaxCount = 1e9;

  const SchemaDocument& document_;
  const std::string& path_;
  const Schema& beside_;
  Schema schema_;
  Types types_ = kAllTypes;
  std::vector<Schema> made_;
};

}  // namespace

Negated negated(const SchemaDocument& document, const Schema& schema, const Schema& beside,
                const std::string& path) {
  Negated made = Negation(document, schema, beside, path).run();
  for (const Schema& each : made.schemas) document.spend(weight(each), path);
  return made;
}

}  // namespace soliton::constrain
