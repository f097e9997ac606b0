// Of SchemaCompiler what schemas say of arrays.
#include <algorithm>

#include "runtime/text/constrain/schema_compiler.h"

namespace soliton::constrain {
namespace {

Schema both_schemas(const Schema& a, const Schema& b) {
  if (a == true) return b;
  return a == false || b == true ? a : Schema{{"allOf", Schema::array({a, b})}};
}

}  // namespace

SchemaCompiler::Items SchemaCompiler::items_of(const Schema& schema, const std::string& path) const {
  static const Schema kNoFirsts = Schema::array();
  auto [min, max] = counts_of(document_, schema, path, "minItems", "maxItems");
  const Schema& prefix = schema.contains("prefixItems") ? schema["prefixItems"] : kNoFirsts;
  if (!prefix.is_array())
    throw bad(member_path(path, "prefixItems"), "expected a list of schemas, got {}", prefix.type_name());
  Items items{.firsts = {prefix.begin(), prefix.end()},
              .others = schema.contains("items") ? schema["items"] : Schema(true),
              .min = min,
              .max = max};
  // As with members: where the first ones are listed, there are others only if the schema says so.
  const auto num_firsts = static_cast<int>(prefix.size());
  if (!schema.contains("items") && num_firsts > 0 && min <= num_firsts && !schema.contains("~contains"))
    items.others = false;
  return items;
}

/// Puts what is contained first, where it fits.
void SchemaCompiler::place_contained(Items& items, const Schema& contained, const std::string& path,
                                     int depth) {
  const std::string at = member_path(path, "contains");
  const auto [min, max] = counts_of(document_, contained, path, "minContains", "maxContains");
  std::vector<bool> is_placed(items.firsts.size());
  int num_placed = 0;
  for (size_t i = 0; num_placed < min && i < items.firsts.size() + static_cast<size_t>(min); ++i) {
    if (items.max >= 0 && i >= static_cast<size_t>(items.max)) break;
    const bool is_first = i < items.firsts.size();
    Schema both = both_schemas(is_first ? items.firsts[i] : items.others, contained["schema"]);
    const bool may_be = both != false && rule_if_any(both, at, depth + 1);
    if (!may_be && !is_first) break;
    if (!may_be) continue;
    if (!is_first) items.firsts.emplace_back();
    if (!is_first) is_placed.push_back(false);
    items.firsts[i] = std::move(both);
    is_placed[i] = true;
    ++num_placed;
    items.min = std::max(items.min, static_cast<int>(i) + 1);
  }
  if (num_placed < min) throw document_.no_value(at, "expected {} items that fit, got {}", min, num_placed);
  if (max < 0) return;
  const Schema none = {{"~nots", Schema::array({contained["schema"]})}};
  for (size_t i = 0; i < items.firsts.size(); ++i) {
    if (!is_placed[i]) items.firsts[i] = both_schemas(items.firsts[i], none);
  }
  items.others = both_schemas(items.others, none);
}

Expression SchemaCompiler::array_of(const Schema& schema, const std::string& path, int depth) {
  Items items = items_of(schema, path);
  if (schema.contains("~contains")) {
    for (const Schema& contained : schema["~contains"]) place_contained(items, contained, path, depth);
  }
  std::vector<Expression> firsts;
  const auto end = [&](size_t num_items) {  // no value can be behind these
    if (items.max < 0 || items.max > static_cast<int>(num_items)) items.max = static_cast<int>(num_items);
  };
  const bool is_unique = is_true(schema, "uniqueItems") && items.max != 1 && items.max != 0;
  const bool has_items = !items.firsts.empty() || items.others != false;
  if (is_unique && has_items) return unique_items(items, path, depth);
  for (size_t i = 0; i < items.firsts.size(); ++i) {
    if (items.max >= 0 && static_cast<int>(i) >= items.max) break;
    const std::string at = fmt::format("{}[{}]", member_path(path, "prefixItems"), i);
    const std::optional<int> value =
        items.firsts[i] == false ? std::nullopt : rule_if_any(items.firsts[i], at, depth + 1);
    if (!value) end(i);
    if (!value) break;
    firsts.push_back(rule(*value));
  }
  std::optional<Expression> item;
  if (items.max != static_cast<int>(firsts.size())) {
    const std::optional<int> value = items.others == false
                                         ? std::nullopt
                                         : rule_if_any(items.others, member_path(path, "items"), depth + 1);
    if (!value) end(firsts.size());
    if (value) item = rule(*value);
  }
  if (items.max >= 0 && items.min > items.max)
    throw document_.no_value(member_path(path, "minItems"), "expected at most {}, got {}", items.max,
                             items.min);
  return values_array(std::move(firsts), std::move(item), items.min, items.max);
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

}  // namespace soliton::constrain
