#include "runtime/constrain/json_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "models/strict_json.h"
#include "runtime/constrain/json_members.h"
#include "runtime/constrain/json_rules.h"
#include "runtime/constrain/schema_merge.h"
#include "runtime/constrain/string_pattern.h"

namespace soliton::constrain {
namespace {

constexpr size_t kMaxKeyBytes = 500;  // of properties beside additional ones
constexpr int kMaxSchemas = 20'000;   // looked at, in all

constexpr std::array<std::string_view, 25> kKeywords = {"type",
                                                        "properties",
                                                        "required",
                                                        "additionalProperties",
                                                        "items",
                                                        "prefixItems",
                                                        "minItems",
                                                        "maxItems",
                                                        "enum",
                                                        "const",
                                                        "anyOf",
                                                        "oneOf",
                                                        "allOf",
                                                        "$ref",
                                                        "minLength",
                                                        "maxLength",
                                                        "pattern",
                                                        "format",
                                                        "minimum",
                                                        "maximum",
                                                        "exclusiveMinimum",
                                                        "exclusiveMaximum",
                                                        "multipleOf",
                                                        "nullable",
                                                        "uniqueItems"};

struct Family {
  const char* type;
  std::array<std::string_view, 5> keywords;  // that speak of it; empty: none
};
constexpr std::array<Family, 4> kFamilies = {
    {{"object", {"properties", "required", "additionalProperties"}},
     {"array", {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
     {"string", {"minLength", "maxLength", "pattern", "format"}},
     {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}}};

struct Format {
  const char* name;
  const char* pattern;
};
// Days that every year has, so that 29 February is not written.
#define SOLITON_DATE \
  "[1-9][0-9]{3}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
#define SOLITON_TIME \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
constexpr std::array<Format, 7> kFormats = {
    {{"date", "^" SOLITON_DATE "$"},
     {"time", "^" SOLITON_TIME "$"},
     {"date-time", "^" SOLITON_DATE "T" SOLITON_TIME "$"},
     {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
     {"email",
      "^[A-Za-z0-9_+-]{1,16}(\\.[A-Za-z0-9_+-]{1,16}){0,3}@([a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?\\.){1,4}[a-z]{"
      "2,12}$"},
     {"ipv4",
      "^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$"},
     {"", ""}}};
#undef SOLITON_DATE
#undef SOLITON_TIME

template <size_t kSize>
bool is_listed(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

std::string json_text(const Schema& value) {
  return value.dump();
}

class SchemaCompiler {
 public:
  SchemaCompiler(const Schema& root, std::string_view name)
      : document_(root, std::string(name)), json_(grammar_) {
    grammar_.name = name;
  }

  Grammar run() {
    const int root = rule_of(document_.root(), "", 0);
    grammar_.root = root;
    return std::move(grammar_);
  }

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
  void check_keywords(const Schema& schema, const std::string& path) const;
  Expression reference(const Schema& schema, const std::string& path, int depth);
  Expression any_of(const Schema& schema, const std::string& keyword, const std::string& path, int depth);
  Expression listed(const Schema& schema, const std::string& path) const;
  Expression typed(const Schema& schema, const std::string& path, int depth);
  Expression of_type(const std::string& type, const Schema& schema, const std::string& path, int depth);

  Expression object_of(const Schema& schema, const std::string& path, int depth);
  Expression array_of(const Schema& schema, const std::string& path, int depth);
  Expression string_of(const Schema& schema, const std::string& path);
  Expression number_of(const Schema& schema, const std::string& path, bool is_integer);
  std::optional<Bound> bound(const Schema& schema, const std::string& path, bool is_low,
                             bool is_integer) const;
  std::pair<int, int> counts(const Schema& schema, const std::string& path, const char* min,
                             const char* max) const;

  SchemaDocument document_;
  Grammar grammar_;
  JsonRules json_;
  std::map<std::string, int> rule_of_reference_;
  int num_schemas_ = 0;
};

// ---- Any schema

void SchemaCompiler::check_keywords(const Schema& schema, const std::string& path) const {
  for (const auto& [keyword, value] : schema.items()) {
    const bool says_nothing = (keyword == "uniqueItems" && value == false) ||
                              ((keyword == "minProperties" || keyword == "minContains") && value == 0);
    if (says_nothing || is_annotation(keyword)) continue;
    if (!is_listed(kKeywords, keyword) || keyword == "uniqueItems")
      throw document_.unsupported(path, keyword);
  }
}

Expression SchemaCompiler::value_of(const Schema& schema, const std::string& path, int depth) {
  if (depth > kMaxNesting || ++num_schemas_ > kMaxSchemas) {
    throw document_.error(ExitCode::kOutOfMemory, path,
                          "expected at most {} schemas inside one another and {} in all, got more",
                          kMaxNesting, kMaxSchemas);
  }
  if (schema == true) return json_.value();
  if (schema == false) return choice({});
  if (!schema.is_object()) throw bad(path, "expected a schema, got {}", schema.type_name());
  check_keywords(schema, path);
  if (schema.contains("$ref")) return reference(schema, path, depth);
  if (schema.contains("allOf")) return value_of(document_.flattened(schema, path), path, depth + 1);
  if (schema.contains("anyOf")) return any_of(schema, "anyOf", path, depth);
  if (schema.contains("oneOf")) return any_of(schema, "oneOf", path, depth);
  Expression value =
      schema.contains("enum") || schema.contains("const") ? listed(schema, path) : typed(schema, path, depth);
  if (!schema.contains("nullable") || schema["nullable"] == false) return value;
  if (schema["nullable"] != true)
    throw bad(member_path(path, "nullable"), "expected true or false, got another value");
  return choice({std::move(value), text("null")});
}

/// A rule for each target, so that schemas may refer to themselves.
Expression SchemaCompiler::reference(const Schema& schema, const std::string& path, int depth) {
  const bool is_alone = std::all_of(schema.items().begin(), schema.items().end(), [](const auto& item) {
    return item.key() == "$ref" || is_annotation(item.key());
  });
  if (!is_alone) return value_of(document_.flattened(schema, path), path, depth + 1);
  const Schema& target = document_.target(schema["$ref"], path);
  const std::string& name = schema["$ref"].get_ref<const std::string&>();
  const auto known = rule_of_reference_.find(name);
  if (known != rule_of_reference_.end()) return rule(known->second);
  const int index = grammar_.add(name);
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
  Schema rest = schema;
  rest.erase(keyword);
  const bool is_alone = std::all_of(rest.items().begin(), rest.items().end(),
                                    [](const auto& item) { return is_annotation(item.key()); });
  std::vector<Expression> values;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", at, i);
    for (size_t k = 0; keyword == "oneOf" && k < i; ++k) {
      if (!document_.exclude_each_other(alternatives[k], alternatives[i], here))
        throw document_.unsupported(
            path, keyword,
            fmt::format("where alternatives, here {} and {}, do not exclude each other by type, constants or "
                        "required members; anyOf is",
                        k, i));
    }
    const Schema whole = is_alone ? alternatives[i] : document_.merged(rest, alternatives[i], here);
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
  const std::set<std::string> types = types_of(schema);
  const Schema all = schema.value("enum", Schema());
  std::vector<Expression> values;
  for (const Schema& value : listed_values(schema)) {
    const bool is_listed = all.is_null() || std::find(all.begin(), all.end(), value) != all.end();
    if (is_listed && types.contains(type_of(value))) values.push_back(text(json_text(value)));
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
    const Schema& type = schema["type"];
    const Schema list = type.is_array() ? type : Schema::array({type});
    if (list.empty()) throw bad(member_path(path, "type"), "expected a type, got an empty list");
    for (const Schema& name : list) {
      if (!name.is_string()) throw bad(member_path(path, "type"), "expected text, got {}", name.type_name());
      types.push_back(name.get<std::string>());
    }
  }
  std::vector<Expression> values;
  for (const std::string& type : types) {
    if (type == "integer" && std::find(types.begin(), types.end(), "number") != types.end()) continue;
    values.push_back(of_type(type, schema, path, depth));
  }
  return choice(std::move(values));
}

Expression SchemaCompiler::of_type(const std::string& type, const Schema& schema, const std::string& path,
                                   int depth) {
  if (type == "object") return object_of(schema, path, depth);
  if (type == "array") return array_of(schema, path, depth);
  if (type == "string") return string_of(schema, path);
  if (type == "number") return number_of(schema, path, false);
  if (type == "integer") return number_of(schema, path, true);
  if (type == "boolean") return json_.boolean();
  if (type == "null") return text("null");
  throw bad(member_path(path, "type"),
            "expected one of object, array, string, number, integer, boolean, null, got {}", in_quotes(type));
}

/// minItems and the like; the second is negative if there is no bound.
std::pair<int, int> SchemaCompiler::counts(const Schema& schema, const std::string& path, const char* min,
                                           const char* max) const {
  const auto count = [&](const char* keyword, int otherwise) {
    if (!schema.contains(keyword)) return otherwise;
    const Schema& value = schema[keyword];
    const std::string at = member_path(path, keyword);
    if (!value.is_number() || type_of(value) != "integer" || value.get<double>() < 0)
      throw bad(at, "expected a count, got {}", in_quotes(value.dump()));
    if (value.get<double>() > kMaxRepetitions) {
      throw document_.error(ExitCode::kOutOfMemory, at, "expected at most {}, got {}", kMaxRepetitions,
                            value.dump());
    }
    return value.get<int>();
  };
  const int least = count(min, 0);
  const int most = count(max, -1);
  if (most >= 0 && most < least)
    throw bad(member_path(path, max), "expected at least {}, got {}", least, most);
  return {least, most};
}

// ---- Objects

Expression SchemaCompiler::object_of(const Schema& schema, const std::string& path, int depth) {
  const Schema properties = schema.value("properties", Schema::object());
  const Schema required = schema.value("required", Schema::array());
  if (!properties.is_object())
    throw bad(member_path(path, "properties"), "expected an object, got {}", properties.type_name());
  if (!required.is_array())
    throw bad(member_path(path, "required"), "expected a list, got {}", required.type_name());
  const bool is_open = schema.contains("additionalProperties") || !schema.contains("properties");
  const Schema additional = schema.value("additionalProperties", Schema(is_open));

  std::vector<Member> members;
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, const Schema& value, const std::string& at) {
    names.push_back(name);
    const bool is_required = std::find(required.begin(), required.end(), name) != required.end();
    if (value == false && !is_required) return;
    Expression key = text(json_text(name) + ":");
    const int index = rule_of(value, at, depth + 1);
    members.push_back({name, sequence({std::move(key), json_.space(), rule(index)}), is_required});
  };
  for (const auto& [name, value] : properties.items())
    add(name, value, member_path(member_path(path, "properties"), name));
  for (const Schema& name : required) {
    const std::string at = member_path(path, "required");
    if (!name.is_string()) throw bad(at, "expected text, got {}", name.type_name());
    if (std::find(names.begin(), names.end(), name.get<std::string>()) != names.end()) continue;
    const Schema value = schema.contains("additionalProperties") ? additional : Schema(true);
    if (value == false)
      throw bad(at, "expected properties, got {}, which is none", in_quotes(name.get<std::string>()));
    add(name.get<std::string>(), value, at);
  }

  std::optional<Expression> others;
  if (additional != false) {
    const int value = rule_of(additional, member_path(path, "additionalProperties"), depth + 1);
    Expression key = json_.string();
    if (std::any_of(names.begin(), names.end(),
                    [](const std::string& name) { return name.size() > kMaxKeyBytes; })) {
      throw document_.unsupported(path, "additionalProperties",
                                  fmt::format("beside names of more than {} bytes", kMaxKeyBytes));
    }
    if (!names.empty()) key = key_but(names);
    others = sequence({std::move(key), text(":"), json_.space(), rule(value)});
  }
  const bool has_none = members.empty() && !others;
  if (has_none) return sequence({text("{"), json_.space(), text("}")});
  return members_object(grammar_, json_, std::move(members), std::move(others));
}

// ---- Arrays

Expression SchemaCompiler::array_of(const Schema& schema, const std::string& path, int depth) {
  const auto [min, max] = counts(schema, path, "minItems", "maxItems");
  const Schema prefix = schema.value("prefixItems", Schema::array());
  if (!prefix.is_array())
    throw bad(member_path(path, "prefixItems"), "expected a list of schemas, got {}", prefix.type_name());
  const auto num_prefix = static_cast<int>(prefix.size());
  const bool says_items = schema.contains("items");
  if (says_items && schema["items"].is_array())
    throw document_.unsupported(path, "items", "as a list; prefixItems is");
  // As with members: where the first ones are listed, there are others only if the schema says so.
  const bool is_open = says_items || num_prefix == 0 || min > num_prefix;
  const Schema items = says_items ? schema["items"] : Schema(is_open);
  if (items == false && min > num_prefix)
    throw bad(member_path(path, "minItems"), "expected at most {}, got {}", num_prefix, min);

  const auto behind_comma = [&](Expression value) {
    return sequence({text(","), json_.space(), std::move(value)});
  };
  std::vector<Expression> firsts;
  const int num_firsts = max >= 0 ? std::min(num_prefix, max) : num_prefix;
  for (int i = 0; i < num_firsts; ++i) {
    const std::string at = fmt::format("{}[{}]", member_path(path, "prefixItems"), i);
    firsts.push_back(rule(rule_of(prefix[static_cast<size_t>(i)], at, depth + 1)));
  }
  const bool has_items = items != false && max != num_firsts;
  std::optional<Expression> item;
  if (has_items) item = rule(rule_of(items, member_path(path, "items"), depth + 1));

  // From the last one forwards: what stands behind value i, if something does.
  Expression rest;
  if (item) {
    const int before = std::max(num_firsts, 1);  // the first value has no comma
    rest = repeat(behind_comma(*item), std::max(0, min - before), max < 0 ? -1 : max - before);
  }
  for (int i = num_firsts - 1; i > 0; --i) {
    rest = sequence({behind_comma(firsts[static_cast<size_t>(i)]), std::move(rest)});
    if (i >= min) rest = optional(std::move(rest));
  }
  if (firsts.empty() && !item) return sequence({text("["), json_.space(), text("]")});
  Expression first = firsts.empty() ? *item : firsts[0];
  return in_brackets(json_, "[", sequence({std::move(first), std::move(rest)}), min == 0, "]");
}

// ---- Strings and numbers

Expression SchemaCompiler::string_of(const Schema& schema, const std::string& path) {
  const bool has_counts = schema.contains("minLength") || schema.contains("maxLength");
  const std::string at = member_path(path, "pattern");
  const char* pattern = nullptr;
  std::string written;
  if (schema.contains("pattern")) {
    if (!schema["pattern"].is_string()) throw bad(at, "expected text, got {}", schema["pattern"].type_name());
    written = schema["pattern"].get<std::string>();
    pattern = written.c_str();
  }
  if (schema.contains("format")) {
    const std::string format = schema["format"].is_string() ? schema["format"].get<std::string>() : "";
    const auto* const found = std::find_if(kFormats.begin(), kFormats.end(),
                                           [&](const Format& known) { return known.name == format; });
    if (found == kFormats.end() || format.empty())
      throw document_.unsupported(path, "format", "as " + schema["format"].dump());
    if (pattern != nullptr) throw document_.unsupported(path, "format", "beside pattern");
    written = found->pattern;
    pattern = written.c_str();
  }
  if (pattern == nullptr && !has_counts) return json_.string();
  if (pattern == nullptr) {
    const auto [min, max] = counts(schema, path, "minLength", "maxLength");
    return sequence({text("\""), repeat(JsonRules::character(), min, max), text("\"")});
  }
  if (has_counts)
    throw document_.unsupported(path, schema.contains("minLength") ? "minLength" : "maxLength",
                                "beside pattern or format");
  const std::string place = fmt::format("{}: {}", document_.name(), at);
  return sequence({text("\""), pattern_grammar(written, place), text("\"")});
}

/// The bound that minimum and exclusiveMinimum say, or those of the other end.
std::optional<Bound> SchemaCompiler::bound(const Schema& schema, const std::string& path, bool is_low,
                                           bool is_integer) const {
  std::optional<Bound> nearest;
  for (const bool is_open : {false, true}) {
    const char* const keyword =
        is_low ? (is_open ? "exclusiveMinimum" : "minimum") : (is_open ? "exclusiveMaximum" : "maximum");
    if (!schema.contains(keyword)) continue;
    const std::string at = member_path(path, keyword);
    const Schema& value = schema[keyword];
    if (!value.is_number()) throw bad(at, "expected a number, got {}", value.type_name());
    const auto most = static_cast<double>(kMaxJsonInteger);
    const double number = value.get<double>();
    if (std::abs(number) > most) {
      if (is_low == (number < 0)) continue;  // no bound for the numbers that are written
      throw bad(at, "expected at {} {}, got {}", is_low ? "most" : "least", is_low ? most : -most,
                value.dump());
    }
    const double whole = is_low ? std::ceil(number) : std::floor(number);
    if (whole != number && !is_integer) throw document_.unsupported(path, keyword, "as a fraction");
    Bound found{static_cast<int64_t>(whole), is_open && whole == number};
    if (is_integer && found.is_open) found = {found.value + (is_low ? 1 : -1)};
    const bool is_nearer = !nearest ||
                           (is_low ? found.value > nearest->value : found.value < nearest->value) ||
                           (found.value == nearest->value && found.is_open);
    if (is_nearer) nearest = found;
  }
  return nearest;
}

Expression SchemaCompiler::number_of(const Schema& schema, const std::string& path, bool is_integer) {
  if (schema.contains("multipleOf") && !(is_integer && schema["multipleOf"] == 1))
    throw document_.unsupported(path, "multipleOf");
  const std::optional<Bound> low = bound(schema, path, true, is_integer);
  const std::optional<Bound> high = bound(schema, path, false, is_integer);
  if (!low && !high) return is_integer ? json_.integer() : json_.number();
  const Bound least = low.value_or(Bound{-kMaxJsonInteger});
  const Bound most = high.value_or(Bound{kMaxJsonInteger});
  if (least.value > most.value || (least.value == most.value && (least.is_open || most.is_open)))
    throw bad(path, "expected a number between the bounds, got none");
  return is_integer ? integers_between(least.value, most.value) : numbers_between(least, most);
}

}  // namespace

Grammar json_object_grammar() {
  Grammar grammar{.name = "response_format", .rules = {}};
  JsonRules json(grammar);
  grammar.root = json.object().rule;
  return grammar;
}

Grammar json_schema_grammar(const nlohmann::ordered_json& schema, std::string_view name) {
  return SchemaCompiler(schema, name).run();
}

Grammar parse_json_schema(std::string_view text, const std::string& name) {
  return json_schema_grammar(parse_ordered_json(text, name, {.bytes = kMaxSourceBytes}), name);
}

}  // namespace soliton::constrain
