// Functions that templates find by name.
#include <array>
#include <ctime>
#include <limits>

#include "runtime/text/chat_template/builtins.h"

namespace soliton::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // the sandbox's

Value range(Machine& machine, const Arguments& arguments) {
  const Parameters given("range", arguments, {"start", "stop", "step"}, 1);
  const bool only_stop = given[1] == nullptr;
  const int64_t start = only_stop ? 0 : given.integer_or(0, 0);
  const int64_t stop = given.integer_or(only_stop ? 0 : 1, 0);
  const int64_t step = given.integer_or(2, 1);
  if (step == 0) throw wrong("range: expected a step other than 0");
  const auto wide = [](int64_t number) { return static_cast<__int128>(number); };
  const __int128 span = step > 0 ? wide(stop) - start : wide(start) - stop;
  const __int128 stride = step > 0 ? wide(step) : -wide(step);
  const __int128 count = span <= 0 ? 0 : (span - 1) / stride + 1;
  if (count > kMaxRange) throw too_much("range: expected at most {} numbers, got more", kMaxRange);
  machine.spend_steps(static_cast<size_t>(count));
  machine.budget().spend_bytes(static_cast<size_t>(count) * sizeof(Value));
  std::vector<Value> items;
  for (__int128 i = 0; i < count; ++i) items.emplace_back(static_cast<int64_t>(start + i * step));
  Sequence result(Sequence::kRange, std::move(items));
  result.range_bounds[0] = start;
  result.range_bounds[1] = stop;
  result.range_bounds[2] = step;
  return result;
}

Value make_dict(Machine& machine, const Arguments& arguments) {
  return dict_from(machine, "dict", arguments);
}

Value make_namespace(Machine& machine, const Arguments& arguments) {
  std::shared_ptr<Namespace> names = machine.make_namespace();
  names->attributes = dict_from(machine, "namespace", arguments);
  return names;
}

Value raise_exception(Machine&, const Arguments& arguments) {
  const Parameters given("raise_exception", arguments, {"message"}, 1);
  throw Fault(ExitCode::kMismatch, to_text(*given[0]).bytes());
}

Value strftime_now(Machine& machine, const Arguments& arguments) {
  const Parameters given("strftime_now", arguments, {"format"}, 1);
  constexpr size_t kMaxFormat = 256;
  const std::string& format = given.text(0).bytes();
  if (format.size() > kMaxFormat)
    throw too_much("strftime_now: expected at most {} bytes of format", kMaxFormat);
  std::array<char, 4096> buffer;
  const std::tm now = machine.now();
  const size_t length = std::strftime(buffer.data(), buffer.size(), format.c_str(), &now);
  return machine.text(Text(to_valid_utf8({buffer.data(), length}), given.text(0).origin()));
}

}  // namespace

Dict dict_from(Machine& machine, std::string_view function, const Arguments& arguments) {
  Dict result;
  if (arguments.positional.size() > 1) throw wrong("{}: expected at most one mapping", function);
  if (!arguments.positional.empty()) {
    const Value& given = arguments.positional[0];
    machine.spend_steps(given.weight());
    if (given.dict() != nullptr) {
      machine.budget().spend_bytes(given.dict()->entries().size() * sizeof(Dict::Entry));
      result = *given.dict();
    } else {
      for (const Value& item : machine.items(given)) {
        std::vector<Value> pair = machine.items(item);
        if (pair.size() != 2) throw wrong("{}: expected pairs, got {} values", function, pair.size());
        result.set(std::move(pair[0]), std::move(pair[1]));
      }
    }
  }
  for (const auto& [name, value] : arguments.named) result.set(Value::own_text(name), value);
  return result;
}

const std::vector<std::pair<std::string_view, Value>>& global_functions() {
  using Function = Value (*)(Machine&, const Arguments&);
  static constexpr std::array<std::pair<std::string_view, Function>, 5> kFunctions = {
      {{"range", range},
       {"dict", make_dict},
       {"namespace", make_namespace},
       {"raise_exception", raise_exception},
       {"strftime_now", strftime_now}}};
  static const std::vector<std::pair<std::string_view, Value>> functions = [] {
    std::vector<std::pair<std::string_view, Value>> values;
    for (const auto& [name, function] : kFunctions)
      values.emplace_back(name, Callable{std::string(name), function});
    return values;
  }();
  return functions;
}

}  // namespace soliton::jinja
