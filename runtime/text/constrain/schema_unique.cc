// Of SchemaCompiler what uniqueItems says.
//
// Which values an array has had already no grammar remembers. So its items are written in an order: values that a schema lists
// in that of the list, unless there are few of them; others by what they begin with, at most one of each kind.
#include <algorithm>
#include <bit>
#include <functional>

#include "runtime/text/constrain/schema_check.h"
#include "runtime/text/constrain/schema_compiler.h"

namespace soliton::constrain {
namespace {

constexpr size_t kMostOrders = 6;       // different values that are written in any order
constexpr size_t kMostDifferent = 200;  // that are written in the order of their list
constexpr Types kScalars = kNullType | kBooleanType | kStringType | kIntegerType | kNumberType;

Schema all_of(Schema a, Schema b) {
  return Schema{{"allOf", Schema::array({std::move(a), std::move(b)})}};
}

/// Schemas of scalars no two of which take values that are equal, in the order in which these are written: null, false, true,
/// numbers by their first digit and how many there are before the point, texts by their first character without case.
std::vector<Schema> scalars_apart(Types types) {
  std::vector<Schema> kinds;
  const auto value = [&](const Schema& only) { kinds.push_back({{"enum", Schema::array({only})}}); };
  const auto number = [&](int64_t first, std::optional<int64_t> end) {
    kinds.push_back({{"type", "number"}, {"minimum", first}});
    if (end) kinds.back()["exclusiveMaximum"] = *end;
  };
  const auto text = [&](const std::string& first) {
    kinds.push_back({{"type", "string"}, {"~patterns", Schema::array({"^[" + first + "]"})}});
  };
  if ((types & kNullType) != 0) value(nullptr);
  if ((types & kBooleanType) != 0) value(false);
  if ((types & kBooleanType) != 0) value(true);
  if ((types & (kNumberType | kIntegerType)) != 0) {
    constexpr int64_t kLargest = 100'000;  // from here on a single one
    kinds.push_back({{"type", "number"}, {"exclusiveMaximum", 0}});
    number(0, 1);
    for (int64_t unit = 1; unit < kLargest; unit *= 10) {
      for (int digit = 1; digit <= 9; ++digit) number(digit * unit, (digit + 1) * unit);
    }
    number(kLargest, std::nullopt);
  }
  if ((types & kStringType) != 0) {
    text("^0-9A-Za-z");
    for (char first = '0'; first <= '9'; ++first) text({first});
    for (char first = 'a'; first <= 'z'; ++first) text({static_cast<char>(first - 'a' + 'A'), first});
  }
  return kinds;
}

}  // namespace

/// Schemas that the values of a member are divided by; none if it may be an object or an array.
std::vector<Schema> SchemaCompiler::member_apart(const Schema& member, const std::string& path) const {
  const Schema flat = document_.flattened(member, path);
  if (!flat.is_object() || (types_of(flat) & ~kScalars) != 0) return {};
  const auto listed = listed_values(flat);
  if (!listed) return scalars_apart(types_of(flat));
  std::vector<Schema> values;
  for (const Schema* value : *listed) values.push_back({{"enum", Schema::array({*value})}});
  return values;
}

/// Schemas that flat items are divided by: of objects by the member which divides them most; if none that they have to have
/// does, one that they may have.
std::vector<Schema> SchemaCompiler::items_apart(const Schema& flat, const std::string& path) const {
  const Types types = flat.is_object() ? types_of(flat) : kAllTypes;
  if ((types & kScalars) != 0) return scalars_apart(types);
  if (types != kObjectType || !flat.contains("properties") || !flat["properties"].is_object()) return {};
  const std::vector<std::string> required = names_of_list(flat, "required", path);
  std::vector<Schema> most;
  for (const bool must_be : {true, false}) {
    if (most.size() > 1) break;
    for (const auto& [name, member] : flat["properties"].get_ref<const Schema::object_t&>()) {
      if ((std::find(required.begin(), required.end(), name) != required.end()) != must_be) continue;
      std::vector<Schema> values = member_apart(member, member_path(path, name));
      if (values.size() <= most.size() || values.size() > kMostDifferent) continue;
      most.clear();
      if (!must_be) most.push_back({{"~absent", Schema::array({name})}});
      for (Schema& value : values) {
        Schema kind = {{"required", Schema::array({name})}};
        kind["properties"][name] = std::move(value);
        most.push_back(std::move(kind));
      }
    }
  }
  for (Schema& kind : most) kind["type"] = "object";
  return most;
}

Expression SchemaCompiler::unique_items(const Items& items, const std::string& path, int depth) {
  const std::string at = member_path(path, "items");
  if (!items.firsts.empty())
    throw document_.unsupported(path, "uniqueItems", "beside contains, prefixItems or items as a list");
  Schema flat = document_.flattened(items.others, at);
  if (flat.is_object() && flat.contains("type") && !flat.contains("enum") && !flat.contains("const")) {
    const Types types = document_.named_types(flat, at);
    if ((types & ~(kBooleanType | kNullType)) == 0) {
      flat["enum"] = Schema::array();
      if ((types & kBooleanType) != 0) flat["enum"] = {false, true};
      if ((types & kNullType) != 0) flat["enum"].push_back(nullptr);
    }
  }
  if (flat.is_object() && (flat.contains("enum") || flat.contains("const")))
    return unique_values(items, listed_that_fit(flat, at), path);
  std::vector<Member> members;
  for (Schema& kind : items_apart(flat, at)) {
    if (const std::optional<int> value = rule_if_any(all_of(items.others, std::move(kind)), at, depth + 1))
      members.push_back({"", rule(*value), false});
  }
  if (members.empty() || members.size() > kMostDifferent)
    throw document_.unsupported(path, "uniqueItems", "of items without a member to tell them by");
  const auto most = static_cast<int>(members.size());
  if (items.min > most)
    throw document_.unsupported(path, "uniqueItems", fmt::format("of more than {} such items", most));
  const Counts counts{items.min, items.max < 0 || items.max >= most ? -1 : items.max};
  return counted_list(grammar_, json_, "[", std::move(members), {}, counts, "]");
}

/// Values of a list, each at most once.
Expression SchemaCompiler::unique_values(const Items& items, const std::vector<const Schema*>& values,
                                         const std::string& path) {
  const auto num_values = static_cast<int>(values.size());
  const int max = items.max < 0 ? num_values : std::min(items.max, num_values);
  if (items.min > max)
    throw document_.no_value(member_path(path, "minItems"), "expected at most {}, got {}", max, items.min);
  if (values.size() > kMostDifferent)
    throw document_.unsupported(path, "uniqueItems", fmt::format("of more than {} values", kMostDifferent));
  if (values.size() > kMostOrders) {
    std::vector<Member> members;
    for (const Schema* value : values) members.push_back({"", text(value->dump()), false});
    return counted_list(grammar_, json_, "[", std::move(members), {}, {items.min, max}, "]");
  }
  std::vector<std::optional<int>> rules(size_t{1} << values.size());
  const std::function<int(size_t)> behind = [&](size_t used) {  // what may stand behind these
    if (rules[used]) return *rules[used];
    std::vector<Expression> alternatives;
    const int count = std::popcount(used);
    if (count >= items.min) alternatives.push_back(text(""));
    for (size_t i = 0; i < values.size() && count < max; ++i) {
      if ((used >> i & 1) != 0) continue;
      Expression value = text(values[i]->dump());
      if (used != 0) value = sequence({text(","), json_.space(), std::move(value)});
      alternatives.push_back(sequence({std::move(value), rule(behind(used | size_t{1} << i))}));
    }
    rules[used] = grammar_.add("values", choice(std::move(alternatives)));
    return *rules[used];
  };
  return sequence({text("["), json_.space(), rule(behind(0)), json_.space(), text("]")});
}

}  // namespace soliton::constrain
