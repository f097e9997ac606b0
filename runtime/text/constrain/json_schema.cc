#include "runtime/text/constrain/json_schema.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "models/strict_json.h"
#include "runtime/text/constrain/json_members.h"
#include "runtime/text/constrain/json_rules.h"
#include "runtime/text/constrain/schema_exclusion.h"
#include "runtime/text/constrain/schema_merge.h"
#include "runtime/text/constrain/schema_scalars.h"

namespace soliton::constrain {
namespace {

constexpr size_t kMaxKeyBytes = 500;      // of a property beside additional ones
constexpr size_t kMaxKeysBytes = 20'000;  // of all these together
constexpr int kMaxSchemas = 20'000;       // looked at, in all
const Schema kAnything = true;

struct Family {
  const char* type;
  std::array<std::string_view, 5> keywords;  // that speak of it; empty: none
};
constexpr std::array<Family, 4> kFamilies = {
    {{"object", {"properties", "required", "additionalProperties"}},
     {"array", {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
     {"string", {"minLength", "maxLength", "pattern", "format"}},
     {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}}};

template <size_t kSize>
bool is_listed(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether it is nothing but a reference, for which there is a rule.
bool is_reference(const Schema& schema) {
  return schema.contains("$ref") &&
         std::all_of(schema.items().begin(), schema.items().end(), [](const auto& item) {
           return item.key() == "$ref" || item.key() == "nullable" || is_annotation(item.key());
         });
}

std::string json_text(const Schema& value) {
  return value.dump();
}

class SchemaCompiler {
 public:
  /// All but the name must outlive it; `num_schemas` counts those looked at, `num_steps` is as SchemaDocument has it.
  SchemaCompiler(const Schema& root, std::string_view name, Grammar& grammar, JsonRules& json,
                 int& num_schemas, size_t& num_steps)
      : document_(root, std::string(name), num_steps),
        grammar_(grammar),
        json_(json),
        num_schemas_(num_schemas) {}

  int run() { return rule_of(document_.root(), "", 0); }

 private:
  template <class... Args>
  Error bad(const std::string& path, fmt::format_string<Args...> format, Args&&... args) const {
    return document_.error(ExitCode::kBadFile, path, format, std::forward<Args>(args)...);
  }

  int rule_of(const Schema& schema, const std::string& path, int depth) {
    const int index = grammar_.add(path.empty() ? "the schema" : path);
    Expression expression = value_of(schema, path, depth);
    grammar_.rules[static_cast<size_t>(index)].expression = std::move(expression);
    return index;
  }

  Expression value_of(const Schema& schema, const std::string& path, int depth);
  Expression value_but_null(const Schema& schema, const std::string& path, int depth);
  Expression reference(const Schema& reference, const std::string& path, int depth);
  Expression any_of(const Schema& schema, const std::string& keyword, const std::string& path, int depth);
  Expression listed(const Schema& schema, const std::string& path) const;
  Expression typed(const Schema& schema, const std::string& path, int depth);
  Expression of_type(const std::string& type, const Schema& schema, const std::string& path, int depth);

  std::vector<Member> named_members(const Schema& schema, const std::string& path, int depth);
  int additional_rule(const Schema& schema, const std::string& path, int depth);
  int further_member(const std::vector<Member>& members, const Schema& schema, const std::string& path,
                     int depth);
  Expression object_of(const Schema& schema, const std::string& path, int depth);
  Expression values_array(std::vector<Expression> firsts, std::optional<Expression> item, int min, int max);
  Expression array_of(const Schema& schema, const std::string& path, int depth);

  SchemaDocument document_;
  Grammar& grammar_;
  JsonRules& json_;
  std::map<std::string, int> rule_of_reference_;
  int& num_schemas_;
};

// ---- Any schema

Expression SchemaCompiler::value_of(const Schema& schema, const std::string& path, int depth) {
  if (depth > kMaxNesting || ++num_schemas_ > kMaxSchemas) {
    throw document_.error(ExitCode::kOutOfMemory, path,
                          "expected at most {} schemas inside one another and {} in all, got more",
                          kMaxNesting, kMaxSchemas);
  }
  if (schema == true) return json_.value();
  if (schema == false) return choice({});
  if (!schema.is_object()) throw bad(path, "expected a schema, got {}", schema.type_name());
  document_.check_keywords(schema, path);
  if (!SchemaDocument::is_flat(schema) && !is_reference(schema))
    return value_of(document_.flattened(schema, path), path, depth + 1);
  Expression value = value_but_null(schema, path, depth);
  if (!document_.is_nullable(schema, path)) return value;
  return choice({std::move(value), text("null")});
}

/// Of a flat schema, or a reference, what it takes beside what `nullable` says.
Expression SchemaCompiler::value_but_null(const Schema& schema, const std::string& path, int depth) {
  if (schema.contains("$ref")) return reference(schema["$ref"], path, depth);
  if (schema.contains("anyOf")) return any_of(schema, "anyOf", path, depth);
  if (schema.contains("oneOf")) return any_of(schema, "oneOf", path, depth);
  return schema.contains("enum") || schema.contains("const") ? listed(schema, path)
                                                             : typed(schema, path, depth);
}

/// A rule for each target, so that schemas may refer to themselves.
Expression SchemaCompiler::reference(const Schema& reference, const std::string& path, int depth) {
  const Schema& target = document_.target(reference, path);
  const std::string& name = reference.get_ref<const std::string&>();
  const auto known = rule_of_reference_.find(name);
  if (known != rule_of_reference_.end()) return rule(known->second);
  const int index = grammar_.add(member_path("", name));
  rule_of_reference_.emplace(name, index);
  Expression expression = value_of(target, path, depth + 1);
  grammar_.rules[static_cast<size_t>(index)].expression = std::move(expression);
  return rule(index);
}

Expression SchemaCompiler::any_of(const Schema& schema, const std::string& keyword, const std::string& path,
                                  int depth) {
  const std::string at = member_path(path, keyword);
  const Schema& alternatives = schema[keyword];
  if (!alternatives.is_array() || alternatives.empty())
    throw bad(at, "expected a list of schemas, got another value");
  Schema rest = Schema::object();
  for (const auto& [other, value] : schema.items()) {
    if (other != keyword && other != "nullable" && !is_annotation(other)) rest[other] = value;
  }
  std::deque<Schema> wholes;  // with what stands beside them; outlines refer to them
  std::vector<Outline> outlines;
  std::vector<Expression> values;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", at, i);
    if (keyword != "oneOf") wholes.clear();
    const Schema& whole =
        rest.empty() ? alternatives[i] : wholes.emplace_back(document_.merged(rest, alternatives[i], here));
    if (keyword == "oneOf") {
      Outline next(document_, whole, here);
      for (size_t k = 0; k < i; ++k) {
        if (!outlines[k].excludes(next))
          throw document_.unsupported(
              path, keyword,
              fmt::format(
                  "where alternatives, here {} and {}, do not exclude each other by type, constants or "
                  "required members; anyOf is",
                  k, i));
      }
      outlines.push_back(std::move(next));
    }
    values.push_back(rule(rule_of(whole, here, depth + 1)));
  }
  return choice(std::move(values));
}

/// Values written out, of the types that there may be.
Expression SchemaCompiler::listed(const Schema& schema, const std::string& path) const {
  if (schema.contains("enum") && (!schema["enum"].is_array() || schema["enum"].empty()))
    throw bad(member_path(path, "enum"), "expected a list of values, got another value");
  for (const auto& [keyword, value] : schema.items()) {
    const bool fits = keyword == "enum" || keyword == "const" || keyword == "type" || keyword == "nullable" ||
                      is_annotation(keyword);
    if (!fits) throw document_.unsupported(path, keyword, "beside enum or const");
  }
  const Types types = schema.contains("type") ? document_.named_types(schema, path) : kAllTypes;
  const std::vector<const Schema*> listed = listed_values(schema).value();
  std::vector<Expression> values;
  for (const Schema* value : listed) {
    if ((types & type_of(*value)) != 0) values.push_back(text(json_text(*value)));
  }
  if (values.empty()) throw bad(path, "expected a value of the type, got none");
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
  for (const std::string& type : types) values.push_back(of_type(type, schema, path, depth));
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

// ---- Objects

/// What the members are that a schema names, in the order of `properties`, and behind them those that only `required` names.
std::vector<Member> SchemaCompiler::named_members(const Schema& schema, const std::string& path, int depth) {
  static const Schema kNone = Schema::object();
  static const Schema kNoNames = Schema::array();
  const Schema& properties = schema.contains("properties") ? schema["properties"] : kNone;
  const Schema& required = schema.contains("required") ? schema["required"] : kNoNames;
  if (!properties.is_object())
    throw bad(member_path(path, "properties"), "expected an object, got {}", properties.type_name());
  if (!required.is_array())
    throw bad(member_path(path, "required"), "expected a list, got {}", required.type_name());
  std::set<std::string_view> left;  // of what is required
  for (const Schema& name : required) {
    if (!name.is_string())
      throw bad(member_path(path, "required"), "expected text, got {}", name.type_name());
    left.insert(name.get_ref<const std::string&>());
  }
  std::vector<Member> members;
  const auto add = [&](const std::string& name, int value, bool is_required) {
    Expression key = text(json_text(name) + ":");
    members.push_back({name, sequence({std::move(key), json_.space(), rule(value)}), is_required});
  };
  for (const auto& [name, value] : properties.get_ref<const Schema::object_t&>()) {
    const bool is_required = left.erase(name) > 0;
    if (value == false && !is_required) {
      members.push_back({.name = name, .written = {}, .is_required = false, .is_written = false});
      continue;
    }
    const std::string at = member_path(member_path(path, "properties"), name);
    add(name, rule_of(value, at, depth + 1), is_required);
  }
  std::optional<int> other;  // what these are that no property says more of
  for (const Schema& name : required) {
    const std::string& written = name.get_ref<const std::string&>();
    if (left.erase(written) == 0) continue;
    if (schema.contains("additionalProperties") && schema["additionalProperties"] == false)
      throw bad(member_path(path, "required"), "expected properties, got {}, which is none",
                in_quotes(written));
    if (!other) other = additional_rule(schema, path, depth);
    add(written, *other, true);
  }
  return members;
}

/// What is no property.
int SchemaCompiler::additional_rule(const Schema& schema, const std::string& path, int depth) {
  const std::string at = member_path(path, "additionalProperties");
  return rule_of(schema.contains("additionalProperties") ? schema["additionalProperties"] : Schema(true), at,
                 depth + 1);
}

/// A member of another name than these. A rule, because there may be much to tell the names apart by.
int SchemaCompiler::further_member(const std::vector<Member>& members, const Schema& schema,
                                   const std::string& path, int depth) {
  std::vector<std::string> names;
  size_t num_bytes = 0;
  for (const Member& member : members) {
    num_bytes += member.name.size();
    if (member.name.size() > kMaxKeyBytes || num_bytes > kMaxKeysBytes)
      throw document_.unsupported(
          path, "additionalProperties",
          fmt::format("beside names of more than {} bytes, or of {} together", kMaxKeyBytes, kMaxKeysBytes));
    names.push_back(member.name);
  }
  const int value = additional_rule(schema, path, depth);
  std::vector<Expression> parts;
  parts.push_back(names.empty() ? json_.string() : key_but(names));
  parts.push_back(text(":"));
  parts.push_back(json_.space());
  parts.push_back(rule(value));
  return grammar_.add("further members", sequence(std::move(parts)));
}

Expression SchemaCompiler::object_of(const Schema& schema, const std::string& path, int depth) {
  std::vector<Member> members = named_members(schema, path, depth);
  const bool is_open = schema.contains("additionalProperties") ? schema["additionalProperties"] != false
                                                               : !schema.contains("properties");
  std::optional<Expression> others;
  if (is_open) others = rule(further_member(members, schema, path, depth));
  std::erase_if(members, [](const Member& member) { return !member.is_written; });
  return members_object(grammar_, json_, std::move(members), std::move(others));
}

// ---- Arrays

Expression SchemaCompiler::array_of(const Schema& schema, const std::string& path, int depth) {
  static const Schema kNoFirsts = Schema::array();
  auto [min, max] = counts_of(document_, schema, path, "minItems", "maxItems");
  const Schema& prefix = schema.contains("prefixItems") ? schema["prefixItems"] : kNoFirsts;
  if (!prefix.is_array())
    throw bad(member_path(path, "prefixItems"), "expected a list of schemas, got {}", prefix.type_name());
  const bool says_items = schema.contains("items");
  if (says_items && schema["items"].is_array())
    throw document_.unsupported(path, "items", "as a list; prefixItems is");
  // As with members: where the first ones are listed, there are others only if the schema says so.
  const auto num_prefix = static_cast<int>(prefix.size());
  const bool is_open = says_items ? schema["items"] != false : num_prefix == 0 || min > num_prefix;
  // Where no value can be there is no end but before it.
  const auto none = static_cast<int>(std::find(prefix.begin(), prefix.end(), false) - prefix.begin());
  if (none < num_prefix || !is_open) max = max < 0 ? none : std::min(max, none);
  if (max >= 0 && min > max)
    throw bad(member_path(path, "minItems"), "expected at most {}, got {}", max, min);

  std::vector<Expression> firsts;
  const int num_firsts = max >= 0 ? std::min(num_prefix, max) : num_prefix;
  for (int i = 0; i < num_firsts; ++i) {
    const std::string at = fmt::format("{}[{}]", member_path(path, "prefixItems"), i);
    firsts.push_back(rule(rule_of(prefix[static_cast<size_t>(i)], at, depth + 1)));
  }
  std::optional<Expression> item;
  if (max != num_firsts) {
    const Schema& items = says_items ? schema["items"] : kAnything;
    item = rule(rule_of(items, member_path(path, "items"), depth + 1));
  }
  return values_array(std::move(firsts), std::move(item), min, max);
}

/// Values in order, and behind them any number of `item`, if there is one; from `min` to `max` in all.
Expression SchemaCompiler::values_array(std::vector<Expression> firsts, std::optional<Expression> item,
                                        int min, int max) {
  constexpr size_t kMaxInside = 32;  // of what stands behind a value in what stands behind another
  if (firsts.empty() && !item) return sequence({text("["), json_.space(), text("]")});
  const auto behind_comma = [&](Expression value) {
    return sequence({text(","), json_.space(), std::move(value)});
  };
  const auto num_firsts = static_cast<int>(firsts.size());
  // From the last one forwards: what stands behind value i, if something does.
  Expression rest;
  if (item) {
    const int before = std::max(num_firsts, 1);  // the first value has no comma
    rest = repeat(behind_comma(*item), std::max(0, min - before), max < 0 ? -1 : max - before);
  }
  for (int i = num_firsts - 1; i > 0; --i) {
    std::vector<Expression> parts;  // moved: a list in braces would copy what is in them
    parts.push_back(behind_comma(std::move(firsts[static_cast<size_t>(i)])));
    parts.push_back(std::move(rest));
    rest = sequence(std::move(parts));
    if (i >= min) rest = optional(std::move(rest));
    if (static_cast<size_t>(i) % kMaxInside == 0) rest = rule(grammar_.add("values", std::move(rest)));
  }
  std::vector<Expression> all;
  all.push_back(firsts.empty() ? std::move(*item) : std::move(firsts[0]));
  all.push_back(std::move(rest));
  return in_brackets(json_, "[", sequence(std::move(all)), min == 0, "]");
}

}  // namespace

Grammar json_object_grammar() {
  Grammar grammar{.name = "response_format", .rules = {}};
  JsonRules json(grammar);
  grammar.root = json.object().rule;
  return grammar;
}

int JsonSchemas::add(const nlohmann::ordered_json& schema, std::string_view name) {
  return SchemaCompiler(schema, name, grammar_, json_, num_schemas_, num_steps_).run();
}

Grammar json_schema_grammar(const nlohmann::ordered_json& schema, std::string_view name) {
  Grammar grammar{.name = std::string(name), .rules = {}};
  grammar.root = JsonSchemas(grammar).add(schema, name);
  return grammar;
}

Grammar parse_json_schema(std::string_view text, const std::string& name) {
  return json_schema_grammar(parse_ordered_json(text, name, {.bytes = kMaxSourceBytes}), name);
}

}  // namespace soliton::constrain
