// Filters of lists and mappings. Where Python's are lazy these work at once; only an error that nobody would
// have come across shows the difference.
#include "runtime/text/chat_template/list_filters.h"

#include <algorithm>
#include <bit>

#include "runtime/text/chat_template/builtins.h"
#include "runtime/text/chat_template/casing.h"
#include "runtime/text/chat_template/markup.h"
#include "runtime/text/chat_template/operators.h"

namespace soliton::jinja {
namespace {

/// Looks up a path such as "function.parameters.0"; of a path that is no text, the item with that key.
class Path {
 public:
  explicit Path(const Value& path) {
    if (path.text() == nullptr) {
      parts_.push_back(path);
      return;
    }
    std::string_view rest = path.text()->bytes();
    while (true) {
      const size_t dot = rest.find('.');
      const std::string_view part = rest.substr(0, dot);
      const bool is_index =
          !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string_view::npos;
      parts_.push_back(is_index ? Value(int64_t{std::stoi(std::string(part))}) : Value::own_text(part));
      if (dot == std::string_view::npos) return;
      rest.remove_prefix(dot + 1);
    }
  }

  Value look_up(Machine& machine, Value value, const Value* fallback = nullptr) const {
    for (const Value& part : parts_) {
      value = get_item(machine, value, part);
      if (value.is_undefined() && fallback != nullptr) value = *fallback;
    }
    return value;
  }

 private:
  std::vector<Value> parts_;
};

Value without_case(const Value& value) {
  return value.text() != nullptr ? Value(to_lower(*value.text())) : value;
}

/// What an item is compared by: itself or an attribute, with or without case.
class Key {
 public:
  /// `fallback` is for items without the attribute; null: they are undefined.
  Key(const Value* attribute, bool case_sensitive, const Value* fallback = nullptr)
      : case_sensitive_(case_sensitive), fallback_(fallback) {
    if (attribute != nullptr) path_.emplace(*attribute);
  }

  Value of(Machine& machine, const Value& item) const {
    machine.spend_steps(item.weight());
    const Value key = path_ ? path_->look_up(machine, item, fallback_) : item;
    return case_sensitive_ ? key : without_case(key);
  }

 private:
  std::optional<Path> path_;
  bool case_sensitive_;
  const Value* fallback_;
};

void spend_for_sorting(Machine& machine, const Value& value, size_t count) {
  machine.spend_steps(value.weight() * static_cast<size_t>(std::bit_width(count)));
}

/// `items` ordered by keys, which are found beside them.
std::vector<Value> sorted(std::vector<std::pair<Value, Value>> keyed_items, bool reverse) {
  std::stable_sort(keyed_items.begin(), keyed_items.end(), [reverse](const auto& a, const auto& b) {
    return reverse ? less(b.first, a.first) : less(a.first, b.first);
  });
  std::vector<Value> items;
  for (auto& [key, item] : keyed_items) items.push_back(std::move(item));
  return items;
}

template <bool kWantsGreatest>
Value extreme(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("min or max", arguments, {"case_sensitive", "attribute"});
  const Key key(given.some(1), given.truth_or(0, false));
  std::optional<Value> best;
  std::optional<Value> best_key;
  for (const Value& item : machine.items(value)) {
    Value item_key = key.of(machine, item);
    const bool better = !best || (kWantsGreatest ? less(*best_key, item_key) : less(item_key, *best_key));
    if (!better) continue;
    best = item;
    best_key = std::move(item_key);
  }
  return best ? *best : Value::undefined("expected an item, got an empty sequence");
}

/// The part of `arguments` behind the first `count`.
Arguments behind(const Arguments& arguments, size_t count) {
  return {{arguments.positional.begin() + static_cast<ptrdiff_t>(count), arguments.positional.end()},
          arguments.named};
}

std::string name_in(const Arguments& arguments, size_t index, std::string_view function) {
  const Value& name = arguments.positional[index];
  if (name.text() == nullptr) throw wrong("{}: expected a name, got {}", function, name.type_name());
  return name.text()->bytes();
}

template <bool kByAttribute, bool kKeep>
Value selected(Machine& machine, const Value& value, const Arguments& arguments) {
  if (!truthy(value)) return Value::iterator({});
  std::optional<Path> path;
  if (kByAttribute) {
    if (arguments.positional.empty()) throw wrong("selectattr: expected an attribute, got nothing");
    path.emplace(arguments.positional[0]);
  }
  constexpr size_t kTestAt = kByAttribute ? 1 : 0;
  const bool has_test = arguments.positional.size() > kTestAt;
  const std::string test = has_test ? name_in(arguments, kTestAt, "select") : "";
  const Arguments test_arguments = has_test ? behind(arguments, kTestAt + 1) : Arguments{};
  std::vector<Value> items;
  for (const Value& item : machine.items(value)) {
    const Value examined = path ? path->look_up(machine, item) : item;
    const bool passes = has_test ? apply_test(machine, test, examined, test_arguments) : truthy(examined);
    if (passes == kKeep) items.push_back(item);
  }
  return Value::iterator(std::move(items));
}

}  // namespace

Value filter_dictsort(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = given[1] == nullptr ? "key" : given.text(1).bytes();
  if (by != "key" && by != "value")
    throw wrong("dictsort: expected by to be key or value, got {}", in_quotes(by));
  value.require_defined();
  if (value.dict() == nullptr) throw wrong("dictsort: expected a mapping, got {}", value.type_name());
  spend_for_sorting(machine, value, value.dict()->entries().size());
  const Key order(nullptr, given.truth_or(0, false));
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, member] : value.dict()->entries()) {
    keyed.emplace_back(order.of(machine, by == "key" ? key : member), Value::tuple({key, member}));
  }
  return machine.list(sorted(std::move(keyed), given.truth_or(2, false)));
}

Value filter_sort(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<Key> keys;
  const bool case_sensitive = given.truth_or(1, false);
  if (const Value* attribute = given.some(2); attribute != nullptr && attribute->text() != nullptr) {
    const std::vector<Value> names = iterate(
        get_attribute(machine, *attribute, "split").callable()->body(machine, {{Value::own_text(",")}, {}}));
    for (const Value& name : names) keys.emplace_back(&name, case_sensitive);
  } else {
    keys.emplace_back(attribute, case_sensitive);
  }
  const std::vector<Value> items = machine.items(value);
  spend_for_sorting(machine, value, items.size());
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) {
    std::vector<Value> order;
    for (const Key& key : keys) order.push_back(key.of(machine, item));
    keyed.emplace_back(Value::list(std::move(order)), item);
  }
  return machine.list(sorted(std::move(keyed), given.truth_or(0, false)));
}

/// Items of equal keys, one group after another.
Value filter_groupby(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const bool case_sensitive = given.truth_or(2, false);
  const Key order(given[0], case_sensitive, given.some(1));
  const Key name(given[0], true, given.some(1));  // as the first item of a group writes it
  const std::vector<Value> items = machine.items(value);
  spend_for_sorting(machine, value, items.size());
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) keyed.emplace_back(order.of(machine, item), item);
  std::vector<Value> groups;
  std::vector<Value> members;
  std::optional<Value> last;
  const auto end_group = [&] {
    if (members.empty()) return;
    Value grouper = name.of(machine, members.front());
    Sequence group(Sequence::kTuple, {std::move(grouper), machine.list(std::exchange(members, {}))});
    group.is_group = true;
    groups.emplace_back(std::move(group));
  };
  for (const Value& item : sorted(std::move(keyed), false)) {
    Value key = order.of(machine, item);
    if (!last || !equal(*last, key)) end_group();
    last = std::move(key);
    members.push_back(item);
  }
  end_group();
  return machine.list(std::move(groups));
}

Value filter_batch(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("batch", arguments, {"linecount", "fill_with"}, 1);
  const int64_t count = given.integer_or(0, 0);
  std::vector<Value> batches;
  std::vector<Value> members;
  for (const Value& item : machine.items(value)) {
    if (static_cast<int64_t>(members.size()) == count)
      batches.push_back(machine.list(std::exchange(members, {})));
    members.push_back(item);
  }
  if (!members.empty()) {
    const int64_t missing = count - static_cast<int64_t>(members.size());
    if (given.some(1) != nullptr && missing > 0) {
      if (missing > static_cast<int64_t>(kMaxWeight))
        throw too_much("batch: expected at most {} items", kMaxWeight);
      machine.spend_steps(static_cast<size_t>(missing) * given[1]->weight());
      machine.budget().spend_bytes(static_cast<size_t>(missing) * sizeof(Value));
      members.insert(members.end(), static_cast<size_t>(missing), *given[1]);
    }
    batches.push_back(machine.list(std::move(members)));
  }
  return Value::iterator(std::move(batches));
}

Value filter_slice(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("slice", arguments, {"slices", "fill_with"}, 1);
  const int64_t count = given.integer_or(0, 0);
  if (count == 0) throw wrong("slice: expected a number of slices other than 0");
  const std::vector<Value> items = machine.items(value);
  if (count > 0) machine.spend_steps(static_cast<size_t>(count));
  const auto size = static_cast<int64_t>(items.size());
  std::vector<Value> slices;
  auto begin = items.begin();
  for (int64_t i = 0; i < count; ++i) {
    const bool is_longer = i < size % count;
    const auto end = begin + static_cast<ptrdiff_t>(size / count + (is_longer ? 1 : 0));
    std::vector<Value> members(begin, end);
    if (given.some(1) != nullptr && !is_longer) members.push_back(*given[1]);
    machine.budget().spend_bytes(sizeof(Sequence));
    slices.push_back(machine.list(std::move(members)));
    begin = end;
  }
  return Value::iterator(std::move(slices));
}

Value filter_unique(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("unique", arguments, {"case_sensitive", "attribute"});
  const Key key(given.some(1), given.truth_or(0, false));
  Dict seen;
  std::vector<Value> items;
  for (const Value& item : machine.items(value)) {
    const Value item_key = key.of(machine, item);
    if (seen.find(item_key) != nullptr) continue;
    seen.set(item_key, Value());
    items.push_back(item);
  }
  return Value::iterator(std::move(items));
}

Value filter_min(Machine& machine, const Value& value, const Arguments& arguments) {
  return extreme<false>(machine, value, arguments);
}

Value filter_max(Machine& machine, const Value& value, const Arguments& arguments) {
  return extreme<true>(machine, value, arguments);
}

Value filter_sum(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("sum", arguments, {"attribute", "start"});
  std::optional<Path> path;
  if (const Value* attribute = given.some(0)) path.emplace(*attribute);
  Value total = given[1] == nullptr ? Value(int64_t{0}) : *given[1];
  if (total.text() != nullptr) throw wrong("sum: expected no strings, which join is for");
  for (const Value& item : machine.items(value)) {
    total = arithmetic(machine, BinaryOp::kAdd, total, path ? path->look_up(machine, item) : item);
  }
  return total;
}

Value filter_first(Machine& machine, const Value& value, const Arguments& arguments) {
  Parameters("first", arguments, {});
  const Sequence* sequence = value.sequence();
  if (sequence != nullptr && sequence->kind == Sequence::kIterator &&
      sequence->taken < sequence->items.size()) {
    return sequence->items[sequence->taken++];
  }
  const std::vector<Value> items = machine.items(value);
  return items.empty() ? Value::undefined("expected a first item, got an empty sequence") : items.front();
}

Value filter_last(Machine& machine, const Value& value, const Arguments& arguments) {
  Parameters("last", arguments, {});
  if (value.sequence() != nullptr && value.sequence()->kind == Sequence::kIterator)
    throw wrong("last: expected a list, got an iterator");
  const std::vector<Value> items = machine.items(value);
  if (items.empty()) return Value::undefined("expected a last item, got an empty sequence");
  return value.text() != nullptr && value.text()->is_markup() ? as_markup(items.back()) : items.back();
}

Value filter_reverse(Machine& machine, const Value& value, const Arguments& arguments) {
  Parameters("reverse", arguments, {});
  if (value.text() != nullptr) return get_slice(machine, value, Value(), Value(), int64_t{-1});
  const bool was_iterator = value.sequence() != nullptr && value.sequence()->kind == Sequence::kIterator;
  std::vector<Value> items = machine.items(value);
  std::reverse(items.begin(), items.end());
  return was_iterator ? Value::list(std::move(items)) : Value::iterator(std::move(items));
}

Value filter_list(Machine& machine, const Value& value, const Arguments& arguments) {
  Parameters("list", arguments, {});
  return machine.list(machine.items(value));
}

Value filter_items(Machine& machine, const Value& value, const Arguments& arguments) {
  Parameters("items", arguments, {});
  if (value.is_undefined()) return Value::iterator({});
  if (value.dict() == nullptr) throw wrong("items: expected a mapping, got {}", value.type_name());
  const auto& entries = value.dict()->entries();
  machine.budget().spend_bytes(entries.size() * sizeof(Dict::Entry));
  std::vector<Value> items;
  for (const auto& [key, member] : entries) items.push_back(Value::tuple({key, member}));
  return Value::iterator(std::move(items));
}

Value filter_length(Machine&, const Value& value, const Arguments& arguments) {
  Parameters("length", arguments, {});
  if (value.is_undefined()) return int64_t{0};
  if (const Text* text = value.text()) return Value::size(count_characters(text->bytes()));
  if (const Dict* dict = value.dict()) return Value::size(dict->entries().size());
  if (const Loop* loop = value.loop()) return Value::size(loop->items.size());
  const Sequence* sequence = value.sequence();
  if (sequence == nullptr || sequence->kind == Sequence::kIterator)
    throw wrong("length: expected a string, list or mapping, got {}", value.type_name());
  return Value::size(sequence->items.size());
}

Value filter_join(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("join", arguments, {"d", "attribute"});
  const Text separator = given[0] == nullptr ? Text() : to_text(*given[0]);
  std::optional<Path> path;
  if (const Value* attribute = given.some(1)) path.emplace(*attribute);
  Text result;
  bool first = true;
  for (const Value& item : machine.items(value)) {
    const Text part = to_text(path ? path->look_up(machine, item) : item);
    machine.budget().spend_bytes(separator.size() + part.size());
    if (!std::exchange(first, false)) result.append(separator);
    result.append(part);
  }
  return machine.text(std::move(result));
}

Value filter_map(Machine& machine, const Value& value, const Arguments& arguments) {
  if (!truthy(value)) return Value::iterator({});
  std::vector<Value> results;
  const bool by_attribute = arguments.positional.empty();
  if (by_attribute) {
    const Parameters given("map", arguments, {"attribute", "default"}, 1);
    const Path path(*given[0]);
    for (const Value& item : machine.items(value))
      results.push_back(path.look_up(machine, item, given.some(1)));
  } else {
    const std::string filter = name_in(arguments, 0, "map");
    const Arguments rest = behind(arguments, 1);
    for (const Value& item : machine.items(value))
      results.push_back(apply_filter(machine, filter, item, rest));
  }
  return Value::iterator(std::move(results));
}

Value filter_select(Machine& machine, const Value& value, const Arguments& arguments) {
  return selected<false, true>(machine, value, arguments);
}

Value filter_reject(Machine& machine, const Value& value, const Arguments& arguments) {
  return selected<false, false>(machine, value, arguments);
}

Value filter_selectattr(Machine& machine, const Value& value, const Arguments& arguments) {
  return selected<true, true>(machine, value, arguments);
}

Value filter_rejectattr(Machine& machine, const Value& value, const Arguments& arguments) {
  return selected<true, false>(machine, value, arguments);
}

}  // namespace soliton::jinja
