// Lists, dicts, loops and namespaces. Strings are in string_methods.cc.
#include "runtime/text/chat_template/methods.h"

#include <algorithm>
#include <array>

#include "runtime/text/chat_template/string_methods.h"

namespace soliton::jinja {
namespace {

template <size_t kSize>
bool is_among(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value bound(const Value& object, std::string_view name,
            std::function<Value(Machine&, const Arguments&)> body) {
  return Callable{std::string(name), std::move(body), object.depth() + 1};
}

Value unsafe(std::string_view name, const Value& object) {
  return Value::undefined(fmt::format("expected no change of a {}, got {}", object.type_name(), name));
}

Value view(Machine& machine, const Dict& dict, Sequence::Kind kind) {
  machine.spend_steps(dict.entries().size());
  machine.budget().spend_bytes(dict.entries().size() * sizeof(Value));
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries()) {
    items.push_back(kind == Sequence::kKeys     ? key
                    : kind == Sequence::kValues ? value
                                                : Value::tuple({key, value}));
  }
  return Sequence(kind, std::move(items));
}

std::optional<Value> dict_member(const Value& object, std::string_view name) {
  static constexpr std::array<std::string_view, 5> kChanging = {"clear", "pop", "popitem", "setdefault",
                                                                "update"};
  static constexpr std::array<std::pair<std::string_view, Sequence::Kind>, 3> kViews = {
      {{"keys", Sequence::kKeys}, {"values", Sequence::kValues}, {"items", Sequence::kItems}}};
  for (const auto& [view_name, kind] : kViews) {
    if (name != view_name) continue;
    return bound(object, name, [object, kind = kind](Machine& machine, const Arguments& arguments) {
      Parameters("dict view", arguments, {});
      return view(machine, *object.dict(), kind);
    });
  }
  if (name == "get") {
    return bound(object, name, [object](Machine& machine, const Arguments& arguments) {
      const Parameters given("dict.get", arguments, {"key", "default"}, 1);
      machine.spend_steps(given[0]->weight());
      const Value* found = object.dict()->find(*given[0]);
      return found != nullptr ? *found : given[1] != nullptr ? *given[1] : Value();
    });
  }
  if (name == "copy") return bound(object, name, [object](Machine&, const Arguments&) { return object; });
  if (name == "fromkeys") throw unsupported("expected a supported method of dict, got fromkeys");
  if (is_among(kChanging, name)) return unsafe(name, object);
  return std::nullopt;
}

std::optional<Value> sequence_member(const Value& object, std::string_view name) {
  static constexpr std::array<std::string_view, 8> kChanging = {"append", "clear",  "extend",  "insert",
                                                                "pop",    "remove", "reverse", "sort"};
  const Sequence::Kind kind = object.sequence()->kind;
  if (kind > Sequence::kRange) return std::nullopt;
  if (object.sequence()->is_group && name == "grouper") return object.sequence()->items[0];
  if (object.sequence()->is_group && name == "list") return object.sequence()->items[1];
  if (name == "count" || name == "index") {
    const bool counts = name == "count";
    return bound(object, name, [object, counts](Machine& machine, const Arguments& arguments) {
      const Parameters given(counts ? "count" : "index", arguments, {"value"}, 1);
      machine.spend_steps(object.weight());
      const std::vector<Value>& items = object.sequence()->items;
      const auto matches = [&given](const Value& item) { return equal(item, *given[0]); };
      if (counts) return Value::size(static_cast<size_t>(std::count_if(items.begin(), items.end(), matches)));
      const auto found = std::find_if(items.begin(), items.end(), matches);
      if (found == items.end()) throw wrong("index: expected an item of the list, got another value");
      return Value::size(static_cast<size_t>(found - items.begin()));
    });
  }
  if (kind != Sequence::kList) return std::nullopt;
  if (name == "copy") return bound(object, name, [object](Machine&, const Arguments&) { return object; });
  if (is_among(kChanging, name)) return unsafe(name, object);
  return std::nullopt;
}

std::optional<Value> loop_member(const Value& object, std::string_view name) {
  const Loop& loop = *object.loop();
  const size_t length = loop.items.size();
  if (name == "index") return Value::size(loop.index + 1);
  if (name == "index0") return Value::size(loop.index);
  if (name == "revindex") return Value::size(length - loop.index);
  if (name == "revindex0") return Value::size(length - loop.index - 1);
  if (name == "first") return Value(loop.index == 0);
  if (name == "last") return Value(loop.index + 1 == length);
  if (name == "length") return Value::size(length);
  if (name == "depth") return Value::size(loop.depth + 1);
  if (name == "depth0") return Value::size(loop.depth);
  if (name == "previtem") {
    return loop.index > 0 ? loop.items[loop.index - 1] : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return loop.index + 1 < length ? loop.items[loop.index + 1] : Value::undefined("there is no next item");
  }
  if (name == "cycle") {
    return bound(object, name, [object](Machine&, const Arguments& arguments) {
      if (arguments.positional.empty()) throw wrong("loop.cycle: expected values, got nothing");
      return arguments.positional[object.loop()->index % arguments.positional.size()];
    });
  }
  if (name == "changed") {
    return bound(object, name, [object](Machine& machine, const Arguments& arguments) {
      Value values = machine.list(arguments.positional);
      machine.spend_steps(values.weight());
      Loop& state = *object.loop();
      const bool changed = !state.last_changed || !equal(*state.last_changed, values);
      state.last_changed = std::move(values);
      return Value(changed);
    });
  }
  return std::nullopt;
}

/// Python's numbers are complex ones, and fractions if they are integers.
std::optional<Value> number_member(const Value& object, std::string_view name) {
  static constexpr std::array<std::string_view, 9> kUnsupported = {
      "as_integer_ratio", "bit_count", "bit_length", "conjugate", "from_bytes",
      "fromhex",          "hex",       "is_integer", "to_bytes"};
  if (name == "real") return object.integer() ? Value(*object.integer()) : object;
  if (name == "imag") return object.integer() ? Value(int64_t{0}) : Value(0.0);
  if (object.integer() && name == "numerator") return *object.integer();
  if (object.integer() && name == "denominator") return int64_t{1};
  if (!is_among(kUnsupported, name)) return std::nullopt;
  throw unsupported("expected a supported attribute of {}, got {}", object.type_name(), name);
}

std::optional<Value> macro_member(const Callable& macro, std::string_view name) {
  const Value* found = macro.attributes == nullptr ? nullptr : macro.attributes->find(name);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

}  // namespace

std::optional<Value> find_member(Machine&, const Value& object, std::string_view name) {
  if (object.text() != nullptr) return string_member(object, name);
  if (object.dict() != nullptr) return dict_member(object, name);
  if (object.sequence() != nullptr) return sequence_member(object, name);
  if (object.loop() != nullptr) return loop_member(object, name);
  if (object.callable() != nullptr) return macro_member(*object.callable(), name);
  if (object.number()) return number_member(object, name);
  if (const Namespace* names = object.name_space()) {
    const Value* found = names->attributes.find(name);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  return std::nullopt;
}

}  // namespace soliton::jinja
