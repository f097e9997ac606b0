// Tests: value is name(arguments).
#include <algorithm>
#include <array>

#include "runtime/text/chat_template/builtins.h"
#include "runtime/text/chat_template/methods.h"
#include "runtime/text/chat_template/operators.h"

namespace soliton::jinja {
namespace {

bool is_number(const Value& value) {
  return value.number().has_value();
}

bool is_integer(const Value& value) {
  return value.integer() && value.boolean() == nullptr;
}

bool has_length(const Value& value) {
  if (value.sequence() != nullptr) return value.sequence()->kind != Sequence::kIterator;
  return value.text() != nullptr || value.dict() != nullptr || value.is_undefined() ||
         value.loop() != nullptr;
}

bool is_sequence(const Value& value) {
  const bool is_view = value.sequence() != nullptr && value.sequence()->kind >= Sequence::kIterator;
  return has_length(value) && !is_view && value.loop() == nullptr;
}

bool is_iterable(const Value& value) {
  return has_length(value) || value.sequence() != nullptr;
}

/// Undefined values too: Python asks the type.
bool is_callable(const Value& value) {
  return value.callable() != nullptr || value.is_undefined() || value.loop() != nullptr;
}

bool is_case(Machine& machine, const Value& value, std::string_view method) {
  return truthy(call_string_method(machine, method, to_text(value), {}));
}

using Check = bool (*)(const Value&);
constexpr auto kChecks = std::to_array<std::pair<std::string_view, Check>>({
    {"defined", [](const Value& value) { return !value.is_undefined(); }},
    {"undefined", [](const Value& value) { return value.is_undefined(); }},
    {"none", [](const Value& value) { return value.is_none(); }},
    {"boolean", [](const Value& value) { return value.boolean() != nullptr; }},
    {"true", [](const Value& value) { return value.boolean() != nullptr && *value.boolean(); }},
    {"false", [](const Value& value) { return value.boolean() != nullptr && !*value.boolean(); }},
    {"integer", is_integer},
    {"float", [](const Value& value) { return value.floating() != nullptr; }},
    {"number", is_number},
    {"string", [](const Value& value) { return value.text() != nullptr; }},
    {"mapping", [](const Value& value) { return value.dict() != nullptr; }},
    {"sequence", is_sequence},
    {"iterable", is_iterable},
    {"callable", is_callable},
    {"escaped", [](const Value& value) { return value.text() != nullptr && value.text()->is_markup(); }},
});

constexpr std::array<std::pair<std::string_view, CompareOp>, 12> kComparisons = {
    {{"eq", CompareOp::kEqual},
     {"equalto", CompareOp::kEqual},
     {"ne", CompareOp::kNotEqual},
     {"gt", CompareOp::kGreater},
     {"greaterthan", CompareOp::kGreater},
     {"ge", CompareOp::kGreaterEqual},
     {"lt", CompareOp::kLess},
     {"lessthan", CompareOp::kLess},
     {"le", CompareOp::kLessEqual},
     {"in", CompareOp::kIn},
     {"==", CompareOp::kEqual},
     {"!=", CompareOp::kNotEqual}}};

template <class Table>
const auto* find_entry(const Table& table, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [name](const auto& entry) { return entry.first == name; });
  return found == table.end() ? nullptr : &found->second;
}

bool has_remainder_zero(Machine& machine, const Value& value, const Value& divisor) {
  return equal(arithmetic(machine, BinaryOp::kModulo, value, divisor), Value(int64_t{0}));
}

}  // namespace

bool apply_test(Machine& machine, std::string_view name, const Value& value, const Arguments& arguments) {
  machine.spend_steps(value.weight());
  const bool takes_argument =
      find_entry(kComparisons, name) != nullptr || name == "divisibleby" || name == "sameas";
  if (!takes_argument) Parameters(name, arguments, {});
  const Arguments none;
  const Parameters given(name, takes_argument ? arguments : none, {"other"}, takes_argument ? 1 : 0);
  if (const Check* check = find_entry(kChecks, name)) return (*check)(value);
  if (const CompareOp* op = find_entry(kComparisons, name)) return compare(machine, *op, value, *given[0]);
  if (name == "divisibleby") return has_remainder_zero(machine, value, *given[0]);
  if (name == "even") return has_remainder_zero(machine, value, int64_t{2});
  if (name == "odd")
    return equal(arithmetic(machine, BinaryOp::kModulo, value, int64_t{2}), Value(int64_t{1}));
  if (name == "sameas") return value.is_same(*given[0]);
  if (name == "lower") return is_case(machine, value, "islower");
  if (name == "upper") return is_case(machine, value, "isupper");
  throw unsupported("expected a supported test, got {}", in_quotes(name));
}

}  // namespace soliton::jinja
