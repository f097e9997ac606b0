// Numbers are 64-bit integers, where Python's have no bound, and doubles. An integer that does not fit is
// refused.
#include "runtime/text/chat_template/operators.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/text/chat_template/markup.h"
#include "runtime/text/chat_template/methods.h"

namespace soliton::jinja {
namespace {

[[noreturn]] void refuse_operands(std::string_view op, const Value& left, const Value& right) {
  left.require_defined();
  right.require_defined();
  throw wrong("expected operands that \"{}\" takes, got {} and {}", op, left.type_name(), right.type_name());
}

[[noreturn]] void refuse_big_integer() {
  throw unsupported("expected integers of 64 bits, got more");
}

int64_t floor_divide(int64_t left, int64_t right) {
  if (right == -1) {
    if (left == std::numeric_limits<int64_t>::min()) refuse_big_integer();
    return -left;
  }
  const int64_t quotient = left / right;
  return quotient * right != left && (left < 0) != (right < 0) ? quotient - 1 : quotient;
}

int64_t power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) refuse_big_integer();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) refuse_big_integer();
  }
  return result;
}

Value integer_arithmetic(BinaryOp op, int64_t left, int64_t right) {
  int64_t result = 0;
  bool too_big = false;
  const bool divides = op == BinaryOp::kDivide || op == BinaryOp::kFloorDivide || op == BinaryOp::kModulo;
  if (divides && right == 0) throw wrong("expected a divisor other than 0");
  switch (op) {
    case BinaryOp::kAdd:
      too_big = __builtin_add_overflow(left, right, &result);
      break;
    case BinaryOp::kSubtract:
      too_big = __builtin_sub_overflow(left, right, &result);
      break;
    case BinaryOp::kMultiply:
      too_big = __builtin_mul_overflow(left, right, &result);
      break;
    case BinaryOp::kDivide:
      return static_cast<double>(static_cast<long double>(left) / static_cast<long double>(right));
    case BinaryOp::kFloorDivide:
      result = floor_divide(left, right);
      break;
    case BinaryOp::kModulo:
      result = right == -1 ? 0 : left - floor_divide(left, right) * right;
      break;
    case BinaryOp::kPower:
      if (right < 0) {
        if (left == 0) throw wrong("expected a divisor other than 0");
        return std::pow(static_cast<double>(left), static_cast<double>(right));
      }
      if (left == 1 || left == 0) return right == 0 ? int64_t{1} : left;
      if (left == -1) return right % 2 == 0 ? int64_t{1} : int64_t{-1};
      result = power(left, right);
      break;
  }
  if (too_big) refuse_big_integer();
  return result;
}

double modulo(double left, double right) {
  double rest = std::fmod(left, right);
  if (rest != 0 && (rest < 0) != (right < 0)) rest += right;
  return rest == 0 ? std::copysign(0.0, right) : rest;
}

/// As CPython computes it, step by step, so that both round alike.
double floor_divide(double left, double right) {
  const double rest = std::fmod(left, right);
  double quotient = (left - rest) / right;
  if (rest != 0 && (rest < 0) != (right < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value float_arithmetic(BinaryOp op, double left, double right) {
  const bool divides = op == BinaryOp::kDivide || op == BinaryOp::kFloorDivide || op == BinaryOp::kModulo;
  if (divides && right == 0) throw wrong("expected a divisor other than 0");
  switch (op) {
    case BinaryOp::kAdd:
      return left + right;
    case BinaryOp::kSubtract:
      return left - right;
    case BinaryOp::kMultiply:
      return left * right;
    case BinaryOp::kDivide:
      return left / right;
    case BinaryOp::kFloorDivide:
      return floor_divide(left, right);
    case BinaryOp::kModulo:
      return modulo(left, right);
    case BinaryOp::kPower:
      break;
  }
  if (left == 0 && right < 0) throw wrong("expected a divisor other than 0");
  if (left < 0 && std::trunc(right) != right) throw unsupported("expected a real power, got a complex one");
  const double result = std::pow(left, right);
  if (std::isinf(result) && !std::isinf(left) && !std::isinf(right))
    throw wrong("expected a power that a float holds");
  return result;
}

bool is_plain_sequence(const Value& value) {
  return value.sequence() != nullptr && value.sequence()->kind <= Sequence::kTuple;
}

Value repeated(Machine& machine, const Value& value, int64_t times) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  if (const Text* text = value.text()) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(text->size(), count, &bytes) || bytes > kMaxOutputBytes) {
      throw too_much("expected text of at most {} bytes, got more", kMaxOutputBytes);
    }
    machine.budget().spend_bytes(bytes + text->runs().size() * sizeof(Text::Run) * (bytes > 0 ? count : 0));
    Text result;
    for (size_t i = 0; i < count && bytes > 0; ++i) result.append(*text);
    return std::move(result).marked(text->is_markup());
  }
  const std::vector<Value>& once = value.sequence()->items;
  size_t length = 0;
  if (__builtin_mul_overflow(once.size(), count, &length) || length > kMaxWeight) {
    throw too_much("expected lists of at most {} items, got more", kMaxWeight);
  }
  machine.spend_steps(length);
  machine.budget().spend_bytes(length * sizeof(Value));
  std::vector<Value> items;
  items.reserve(length);
  for (size_t i = 0; i < count && length > 0; ++i) items.insert(items.end(), once.begin(), once.end());
  return Sequence(value.sequence()->kind, std::move(items));
}

Value joined(Machine& machine, const Value& left, const Value& right) {
  if (left.text() != nullptr && right.text() != nullptr) {
    const bool is_markup = left.text()->is_markup() || right.text()->is_markup();
    Text result = is_markup ? escape(machine, left) : *left.text();
    result.append(is_markup ? escape(machine, right) : *right.text());
    return machine.text(std::move(result));
  }
  const bool same =
      is_plain_sequence(left) && is_plain_sequence(right) && left.sequence()->kind == right.sequence()->kind;
  if (!same) refuse_operands("+", left, right);
  std::vector<Value> items = machine.items(left);
  const std::vector<Value> more = machine.items(right);
  items.insert(items.end(), more.begin(), more.end());
  return Sequence(left.sequence()->kind, std::move(items));
}

std::string_view symbol(BinaryOp op) {
  static constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kSymbols[static_cast<size_t>(op)];
}

/// The index that `key` means among `size` items, if it is an integer within them.
std::optional<size_t> index_of(const Value& key, size_t size) {
  const auto integer = key.integer();
  if (!integer) return std::nullopt;
  const int64_t index = *integer < 0 ? *integer + static_cast<int64_t>(size) : *integer;
  if (index < 0 || index >= static_cast<int64_t>(size)) return std::nullopt;
  return static_cast<size_t>(index);
}

bool can_be_key(const Value& value) {
  if (value.sequence() == nullptr)
    return value.dict() == nullptr &&
           (value.number() || value.text() || value.is_none() || value.is_undefined());
  const auto& items = value.sequence()->items;
  const Sequence::Kind kind = value.sequence()->kind;
  return (kind == Sequence::kTuple || kind == Sequence::kRange) &&
         std::all_of(items.begin(), items.end(), can_be_key);
}

/// object[key] without a look at attributes.
std::optional<Value> find_entry(const Value& object, const Value& key) {
  if (const Dict* dict = object.dict()) {
    const Value* found = can_be_key(key) ? dict->find(key) : nullptr;
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (const Text* text = object.text()) {
    const auto index = index_of(key, count_characters(text->bytes()));
    if (!index) return std::nullopt;
    const size_t begin = byte_position(text->bytes(), *index);
    size_t end = begin;
    next_character(text->bytes(), end);
    return Value(text->slice(begin, end).marked(text->is_markup()));
  }
  if (const Sequence* sequence = object.sequence();
      sequence != nullptr && sequence->kind <= Sequence::kRange) {
    const auto index = index_of(key, sequence->items.size());
    return index ? std::optional(sequence->items[*index]) : std::nullopt;
  }
  return std::nullopt;
}

Value missing(const Value& object, const Value& key) {
  object.require_defined();
  const std::string type =
      object.is_none() ? "None"
                       : fmt::format("{} object", object.name_space() ? "namespace" : object.type_name());
  const std::string_view what = key.text() != nullptr ? "attribute" : "element";
  return Value::undefined(
      fmt::format("'{}' has no {} {}", type, what,
                  in_quotes(key.text() != nullptr ? key.text()->bytes() : to_repr(key).bytes())));
}

/// The bounds of a slice in Python's sense: the first index, how many, and the step.
struct SliceBounds {
  int64_t start;
  int64_t end;  // exclusive
  int64_t count;
  int64_t step;
};

SliceBounds slice_bounds(int64_t size, const Value& start, const Value& stop, const Value& step) {
  const auto part = [](const Value& value) -> std::optional<int64_t> {
    value.require_defined();
    if (value.is_none()) return std::nullopt;
    if (const auto integer = value.integer()) return integer;
    throw wrong("expected integers in a slice, got {}", value.type_name());
  };
  const int64_t stride = std::max(part(step).value_or(1), -std::numeric_limits<int64_t>::max());
  if (stride == 0) throw wrong("expected a slice's step other than 0");
  const int64_t low = stride > 0 ? 0 : -1;
  const int64_t high = stride > 0 ? size : size - 1;
  const auto clamp = [&](std::optional<int64_t> index, int64_t fallback) {
    if (!index) return fallback;
    return std::clamp(*index < 0 ? *index + size : *index, low, high);
  };
  const int64_t first = clamp(part(start), stride > 0 ? low : high);
  const int64_t end = clamp(part(stop), stride > 0 ? high : low);
  const int64_t span = stride > 0 ? end - first : first - end;
  return {first, end, span <= 0 ? 0 : (span - 1) / std::abs(stride) + 1, stride};
}

Text slice_text(const Text& text, const SliceBounds& bounds) {
  if (bounds.step == 1) {
    const size_t begin = byte_position(text.bytes(), static_cast<size_t>(bounds.start));
    const std::string_view rest = std::string_view(text.bytes()).substr(begin);
    return text.slice(begin, begin + byte_position(rest, static_cast<size_t>(bounds.count)));
  }
  std::vector<size_t> positions;  // of characters, and the end
  for (size_t position = 0; position < text.size(); next_character(text.bytes(), position))
    positions.push_back(position);
  positions.push_back(text.size());
  Text result;
  for (int64_t i = 0, at = bounds.start; i < bounds.count; ++i, at += i < bounds.count ? bounds.step : 0) {
    const auto index = static_cast<size_t>(at);
    result.append(text, positions[index], positions[index + 1]);
  }
  return result;
}

}  // namespace

Value arithmetic(Machine& machine, BinaryOp op, const Value& left, const Value& right) {
  if (op == BinaryOp::kModulo && left.text() != nullptr) return percent_format(machine, *left.text(), right);
  if (left.integer() && right.integer()) return integer_arithmetic(op, *left.integer(), *right.integer());
  if (left.number() && right.number()) return float_arithmetic(op, *left.number(), *right.number());
  if (op == BinaryOp::kAdd) return joined(machine, left, right);
  if (op == BinaryOp::kMultiply) {
    const auto repeats = [](const Value& value) {
      return value.text() != nullptr || is_plain_sequence(value);
    };
    if (repeats(left) && right.integer()) return repeated(machine, left, *right.integer());
    if (repeats(right) && left.integer()) return repeated(machine, right, *left.integer());
  }
  refuse_operands(symbol(op), left, right);
}

Value negated(const Value& value) {
  value.require_defined();
  if (const auto integer = value.integer()) return integer_arithmetic(BinaryOp::kSubtract, 0, *integer);
  if (const double* number = value.floating()) return -*number;
  throw wrong("expected a number to negate, got {}", value.type_name());
}

bool contains(Machine& machine, const Value& container, const Value& item) {
  if (container.is_undefined()) return false;
  machine.spend_steps(container.weight());
  if (const Text* text = container.text()) {
    item.require_defined();
    if (item.text() == nullptr)
      throw wrong("expected a string to look for in a string, got {}", item.type_name());
    return ::memmem(text->bytes().data(), text->size(), item.text()->bytes().data(), item.text()->size()) !=
           nullptr;
  }
  if (const Dict* dict = container.dict()) return dict->find(item) != nullptr;
  if (const Sequence* sequence = container.sequence();
      sequence != nullptr && sequence->kind == Sequence::kIterator) {
    while (sequence->taken < sequence->items.size()) {
      if (equal(sequence->items[sequence->taken++], item)) return true;
    }
    return false;
  }
  const std::vector<Value> items = machine.items(container);
  return std::any_of(items.begin(), items.end(), [&item](const Value& each) { return equal(each, item); });
}

bool compare(Machine& machine, CompareOp op, const Value& left, const Value& right) {
  machine.spend_steps(std::min(left.weight(), right.weight()));
  switch (op) {
    case CompareOp::kEqual:
      return equal(left, right);
    case CompareOp::kNotEqual:
      return !equal(left, right);
    case CompareOp::kLess:
      return less(left, right);
    case CompareOp::kGreater:
      return less(right, left);
    // Not by negation: nan compares false with everything.
    case CompareOp::kLessEqual:
      return less(left, right) || equal(left, right);
    case CompareOp::kGreaterEqual:
      return less(right, left) || equal(left, right);
    case CompareOp::kIn:
      return contains(machine, right, left);
    case CompareOp::kNotIn:
      return !contains(machine, right, left);
  }
  return false;
}

Value get_attribute(Machine& machine, const Value& object, std::string_view name) {
  object.require_defined();
  if (auto member = find_member(machine, object, name)) return *std::move(member);
  const Value key = Value::own_text(name);
  auto entry = find_entry(object, key);
  return entry ? *std::move(entry) : missing(object, key);
}

Value get_item(Machine& machine, const Value& object, const Value& key) {
  object.require_defined();
  machine.spend_steps(key.weight() + (object.text() != nullptr ? object.weight() : 0));
  if (auto entry = find_entry(object, key)) return *std::move(entry);
  if (key.text() != nullptr) {
    if (auto member = find_member(machine, object, key.text()->bytes())) return *std::move(member);
  }
  return missing(object, key);
}

Value get_slice(Machine& machine, const Value& object, const Value& start, const Value& stop,
                const Value& step) {
  object.require_defined();
  machine.spend_steps(object.weight());
  if (const Text* text = object.text()) {
    const auto size = static_cast<int64_t>(count_characters(text->bytes()));
    return machine.text(slice_text(*text, slice_bounds(size, start, stop, step)).marked(text->is_markup()));
  }
  const Sequence* sequence = object.sequence();
  if (sequence == nullptr || sequence->kind > Sequence::kRange) {
    throw wrong("expected a string or list to slice, got {}", object.type_name());
  }
  const SliceBounds bounds = slice_bounds(static_cast<int64_t>(sequence->items.size()), start, stop, step);
  machine.budget().spend_bytes(static_cast<size_t>(bounds.count) * sizeof(Value));
  std::vector<Value> items;
  for (int64_t i = 0; i < bounds.count; ++i)
    items.push_back(sequence->items[static_cast<size_t>(bounds.start + i * bounds.step)]);
  Sequence result(sequence->kind, std::move(items));
  if (sequence->kind == Sequence::kRange) {
    const int64_t first = sequence->range_bounds[0];
    const int64_t stride = sequence->range_bounds[2];
    const auto wide = [](int64_t number) {
      return static_cast<uint64_t>(number);
    };  // wraps where Python's grow
    result.range_bounds[0] = static_cast<int64_t>(wide(first) + wide(bounds.start) * wide(stride));
    result.range_bounds[1] = static_cast<int64_t>(wide(first) + wide(bounds.end) * wide(stride));
    result.range_bounds[2] = static_cast<int64_t>(wide(stride) * wide(bounds.step));
  }
  return result;
}

}  // namespace soliton::jinja
