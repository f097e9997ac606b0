// Of SchemaCompiler what schemas say of objects.
#include <algorithm>
#include <set>

#include "runtime/text/constrain/schema_check.h"
#include "runtime/text/constrain/schema_compiler.h"
#include "runtime/text/constrain/schema_formats.h"

namespace soliton::constrain {
namespace {

constexpr size_t kMaxKeyBytes = 500;      // of a property beside additional ones
constexpr size_t kMaxKeysBytes = 20'000;  // of all these together
constexpr size_t kMostPatterns = 3;       // of which members are written that fit several
constexpr int kMostMembers = 2000;        // members times how many of them there may be

/// A pair of members of a list as one schema.
Schema all_schemas(std::vector<Schema> schemas) {
  std::erase_if(schemas, [](const Schema& schema) { return schema == true; });
  if (schemas.empty()) return true;
  if (schemas.size() == 1) return schemas[0];
  return Schema{{"allOf", Schema(std::move(schemas))}};
}

/// Where members that the schema does not name are written.
bool is_open(const Schema& schema) {
  return schema.contains("additionalProperties") ? schema["additionalProperties"] != false
                                                 : !schema.contains("~closes");
}

}  // namespace

std::vector<std::string> SchemaCompiler::names_of_list(const Schema& schema, const char* keyword,
                                                       const std::string& path) const {
  std::vector<std::string> names;
  if (!schema.contains(keyword)) return names;
  const Schema& list = schema[keyword];
  if (!list.is_array()) throw bad(member_path(path, keyword), "expected a list, got {}", list.type_name());
  for (const Schema& name : list) {
    if (!name.is_string()) throw bad(member_path(path, keyword), "expected text, got {}", name.type_name());
    names.push_back(name.get<std::string>());
  }
  return names;
}

/// Names in the order of `properties`, behind them those that only `required` names, and those that propertyNames lists.
std::vector<std::string> SchemaCompiler::named(const Schema& schema, const std::string& path) const {
  for (const char* keyword : {"properties", "patternProperties"}) {
    if (schema.contains(keyword) && !schema[keyword].is_object())
      throw bad(member_path(path, keyword), "expected an object, got {}", schema[keyword].type_name());
  }
  std::vector<std::string> names;
  std::set<std::string, std::less<>> known;
  const auto add = [&](const std::string& name) {
    if (known.insert(name).second) names.push_back(name);
  };
  if (schema.contains("properties")) {
    for (const auto& [name, value] : schema["properties"].get_ref<const Schema::object_t&>()) add(name);
  }
  for (const std::string& name : names_of_list(schema, "required", path)) add(name);
  if (!schema.contains("~names")) return names;
  for (const Schema& each : schema["~names"]) {
    if (!each.is_object()) continue;
    const Schema flat = document_.flattened(each, member_path(path, "propertyNames"));
    const auto listed = listed_values(flat);
    for (const Schema* value : listed.value_or(std::vector<const Schema*>())) {
      if (value->is_string()) add(value->get_ref<const std::string&>());
    }
  }
  return names;
}

/// By propertyNames.
bool SchemaCompiler::may_be_named(const Schema& schema, const std::string& name,
                                  const std::string& path) const {
  if (!schema.contains("~names")) return true;
  Fit all = Fit::kYes;
  for (const Schema& names : schema["~names"])
    all = both(all, fit(document_, names, name, member_path(path, "propertyNames")));
  if (all == Fit::kMaybe)
    throw document_.unsupported(path, "propertyNames", fmt::format("of {}", in_quotes(name)));
  return all == Fit::kYes;
}

/// What all keywords say of the member of a name; false if there may be none.
Schema SchemaCompiler::schema_of_name(const Schema& schema, const std::string& name,
                                      const std::string& path) const {
  std::vector<Schema> all;
  const bool is_property = schema.contains("properties") && schema["properties"].contains(name);
  if (is_property) all.push_back(document_.copied(schema["properties"][name], path));
  if (!may_be_named(schema, name, path)) return false;
  bool is_in = false;
  if (schema.contains("patternProperties")) {
    for (const auto& [pattern, value] : schema["patternProperties"].items()) {
      if (!document_.is_in_patterns({{"patternProperties", {{pattern, true}}}}, name, path)) continue;
      is_in = true;
      all.push_back(document_.copied(value, path));
    }
  }
  if (!is_property && !is_in && schema.contains("additionalProperties"))
    all.push_back(document_.copied(schema["additionalProperties"], path));
  return all_schemas(std::move(all));
}

std::vector<Member> SchemaCompiler::named_members(const Schema& schema, const std::vector<std::string>& names,
                                                  const std::string& path, int depth) {
  const std::vector<std::string> required_names = names_of_list(schema, "required", path);
  const std::vector<std::string> absent_names = names_of_list(schema, "~absent", path);
  const std::set<std::string_view> required(required_names.begin(), required_names.end());
  const std::set<std::string_view> absent(absent_names.begin(), absent_names.end());
  const bool has_patterns = schema.contains("patternProperties") || schema.contains("~names");
  const std::set<std::string_view> properties = [&] {
    std::set<std::string_view> all;
    if (!schema.contains("properties")) return all;
    for (const auto& [name, value] : schema["properties"].get_ref<const Schema::object_t&>())
      all.insert(name);
    return all;
  }();
  std::vector<Member> members;
  std::optional<int> further;  // what these are that no property says more of
  auto value_of_property = schema.contains("properties")
                               ? schema["properties"].get_ref<const Schema::object_t&>().begin()
                               : Schema::object_t::const_iterator();
  for (const std::string& name : names) {
    const bool is_required = required.contains(name);
    const bool is_property = properties.contains(name);
    const Schema* const listed = is_property ? &(value_of_property++)->second : nullptr;
    std::optional<int> value;
    const std::string at = member_path(member_path(path, "properties"), name);
    if (absent.contains(name)) {
      // There is none.
    } else if (!is_property && !has_patterns) {
      if (is_required && schema.contains("additionalProperties") && schema["additionalProperties"] == false)
        throw document_.no_value(member_path(path, "required"), "expected properties, got {}, which is none",
                                 in_quotes(name));
      if (!further) further = additional_rule(schema, path, depth);
      value = further;
    } else {
      const Schema whole = has_patterns ? schema_of_name(schema, name, path) : Schema();
      const Schema& said = has_patterns ? whole : *listed;
      if (is_required) {
        value = rule_of(said, at, depth + 1);
      } else if (said != false) {
        value = rule_if_any(said, at, depth + 1);
      }
    }
    if (is_required && !value)
      throw document_.no_value(at, "expected something that fits a required member, got nothing");
    if (!value) continue;
    Expression key = text(Schema(name).dump() + ":");
    members.push_back({name, sequence({std::move(key), json_.space(), rule(*value)}), is_required});
  }
  return members;
}

/// What is no property.
int SchemaCompiler::additional_rule(const Schema& schema, const std::string& path, int depth) {
  const std::string at = member_path(path, "additionalProperties");
  return rule_of(schema.contains("additionalProperties") ? schema["additionalProperties"] : Schema(true), at,
                 depth + 1);
}

/// A member of another name than these, if there may be one. Rules, because there may be much to tell names apart by.
std::optional<Expression> SchemaCompiler::further_members(const Schema& schema,
                                                          const std::vector<std::string>& names,
                                                          const std::string& path, int depth) {
  const bool has_patterns = schema.contains("patternProperties") || schema.contains("~names");
  if (has_patterns) {
    const size_t num_patterns = schema.contains("patternProperties") ? schema["patternProperties"].size() : 0;
    std::vector<Expression> kinds;
    const auto add = [&](const std::vector<bool>& is_in) {
      if (std::optional<Expression> kind = member_of_patterns(schema, names, is_in, path, depth))
        kinds.push_back(std::move(*kind));
    };
    const size_t num_sets = num_patterns <= kMostPatterns ? size_t{1} << num_patterns : num_patterns + 1;
    for (size_t set = 0; set < num_sets; ++set) {
      std::vector<bool> is_in(num_patterns);
      for (size_t i = 0; i < num_patterns; ++i)
        is_in[i] = num_patterns <= kMostPatterns ? (set >> i & 1) != 0 : set == i + 1;
      add(is_in);
    }
    if (kinds.empty()) return std::nullopt;
    return rule(grammar_.add("further members", choice(std::move(kinds))));
  }
  if (!is_open(schema)) return std::nullopt;
  size_t num_bytes = 0;
  for (const std::string& name : names) {
    num_bytes += name.size();
    if (name.size() > kMaxKeyBytes || num_bytes > kMaxKeysBytes)
      throw document_.unsupported(
          path, "additionalProperties",
          fmt::format("beside names of more than {} bytes, or of {} together", kMaxKeyBytes, kMaxKeysBytes));
  }
  const std::string at = member_path(path, "additionalProperties");
  const std::optional<int> value = rule_if_any(
      schema.contains("additionalProperties") ? schema["additionalProperties"] : Schema(true), at, depth + 1);
  if (!value) return std::nullopt;
  std::vector<Expression> parts;
  parts.push_back(names.empty() ? json_.string() : key_but(names));
  parts.push_back(text(":"));
  parts.push_back(json_.space());
  parts.push_back(rule(*value));
  return rule(grammar_.add("further members", sequence(std::move(parts))));
}

/// A member whose name fits just these patterns.
std::optional<Expression> SchemaCompiler::member_of_patterns(const Schema& schema,
                                                             const std::vector<std::string>& names,
                                                             const std::vector<bool>& is_in,
                                                             const std::string& path, int depth) {
  const bool is_further = std::find(is_in.begin(), is_in.end(), true) == is_in.end();
  if (is_further && !is_open(schema)) return std::nullopt;
  const std::string at = member_path(path, "patternProperties");
  StringRules rules{.rules = {}, .keyword = "patternProperties"};
  std::vector<Schema> values;
  std::vector<std::string> positive;
  size_t i = 0;
  if (schema.contains("patternProperties")) {
    for (const auto& [pattern, value] : schema["patternProperties"].items()) {
      const std::string place = fmt::format("{}: {}", document_.name(), member_path(at, pattern));
      rules.rules.push_back(document_.patterns().rule(pattern, !is_in[i], place));
      if (is_in[i]) values.push_back(document_.copied(value, path));
      if (is_in[i]) positive.push_back(pattern);
      ++i;
    }
  }
  if (is_further && schema.contains("additionalProperties"))
    values.push_back(document_.copied(schema["additionalProperties"], path));
  Schema others = Schema::array();
  for (const std::string& name : names) {
    const bool may_fit = std::all_of(positive.begin(), positive.end(), [&](const std::string& pattern) {
      return document_.patterns().fits(pattern, name, at) != Fit::kNo;
    });
    if (may_fit) others.push_back(name);
  }
  if (!others.empty()) rules.rules.push_back(none_of(others));
  try {
    Expression key = key_of(schema, std::move(rules), path);
    const int value = rule_of(all_schemas(std::move(values)), at, depth + 1);
    return rule(
        grammar_.add("further members", sequence({std::move(key), text(":"), json_.space(), rule(value)})));
  } catch (const NoValue&) {
    return std::nullopt;
  }
}

/// A name that follows the rules and is one that propertyNames take.
Expression SchemaCompiler::key_of(const Schema& schema, StringRules rules, const std::string& path) {
  std::vector<Schema> kinds = {true};
  const std::string at = member_path(path, "propertyNames");
  if (schema.contains("~names")) {
    rules.keyword = "propertyNames";
    kinds = without_alternatives(document_.flattened(Schema{{"allOf", schema["~names"]}}, at), at);
  }
  std::vector<Expression> keys;
  std::optional<NoValue> none;
  for (const Schema& kind : kinds) {
    try {
      StringRules all = rules;
      const auto [min, max] = string_rules(document_, kind, at, all);
      keys.push_back(all.rules.empty() ? json_.string(min, max)
                                       : text_of(document_, json_, all, min, max, path));
    } catch (const NoValue& error) {
      none = error;
    }
  }
  if (keys.empty()) throw none.value_or(document_.no_value(at, "expected names, got none that fits"));
  return choice(std::move(keys));
}

Expression SchemaCompiler::object_of(const Schema& schema, const std::string& path, int depth) {
  const std::vector<std::string> names = named(schema, path);
  std::vector<Member> members = named_members(schema, names, path, depth);
  std::vector<std::string> told = names;  // from further members
  for (std::string& name : names_of_list(schema, "~absent", path)) told.push_back(std::move(name));
  std::optional<Expression> others = further_members(schema, told, path, depth);
  auto [min, max] = counts_of(document_, schema, path, "minProperties", "maxProperties");
  const auto num_members = static_cast<int>(members.size());
  const auto num_required = static_cast<int>(
      std::count_if(members.begin(), members.end(), [](const Member& m) { return m.is_required; }));
  if (max >= 0 && max < num_required)
    throw document_.no_value(member_path(path, "maxProperties"), "expected at least {}, got {}", num_required,
                             max);
  if (min > num_members + (others ? 1 : 0)) {
    if (!others)
      throw document_.no_value(member_path(path, "minProperties"), "expected at most {}, got {}", num_members,
                               min);
    throw document_.unsupported(path, "minProperties", "above the number of names that are listed, and one");
  }
  if (max >= num_members && !others) max = -1;
  if (min <= num_required && max < 0)
    return members_object(grammar_, json_, std::move(members), std::move(others));
  const int most = std::max({min, num_required, kMostMembers / (num_members + 1)});
  const Counts counts{min, max < 0 ? -1 : std::min(max, most)};
  return counted_list(grammar_, json_, "{", std::move(members), std::move(others), counts, "}");
}

}  // namespace soliton::constrain
