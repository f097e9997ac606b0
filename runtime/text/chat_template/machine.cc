#include "runtime/text/chat_template/machine.h"

#include <algorithm>

namespace soliton::jinja {

Machine::~Machine() {
  // A namespace may be reached from itself; emptied, none keeps another alive.
  for (const auto& names : namespaces_) names->attributes = Dict();
}

Value Machine::text(Text text) {
  budget_.spend_bytes(text.size() + text.runs().size() * sizeof(Text::Run));
  if (text.size() > kMaxOutputBytes)
    throw too_much("expected text of at most {} bytes, got more", kMaxOutputBytes);
  return Value(std::move(text));
}

Value Machine::list(std::vector<Value> items) {
  budget_.spend_bytes(items.size() * sizeof(Value));
  return Value::list(std::move(items));
}

std::vector<Value> Machine::items(const Value& value) {
  size_t count = 0;
  if (value.text() != nullptr) count = value.text()->size();
  if (value.sequence() != nullptr) count = value.sequence()->items.size();
  if (value.dict() != nullptr) count = value.dict()->entries().size();
  budget_.spend_steps(count);
  budget_.spend_bytes(count * sizeof(Value));
  return iterate(value);
}

std::shared_ptr<Namespace> Machine::make_namespace() {
  budget_.spend_bytes(sizeof(Namespace));
  namespaces_.push_back(std::make_shared<Namespace>());
  return namespaces_.back();
}

Machine::Level::Level(Machine& machine) : machine_(machine) {
  if (machine.depth_ >= kMaxEvaluationDepth) {
    throw too_much("expected at most {} evaluations inside one another, got more", kMaxEvaluationDepth);
  }
  ++machine.depth_;
}

Parameters::Parameters(std::string_view function, const Arguments& arguments,
                       std::initializer_list<std::string_view> names, size_t required)
    : function_(function), names_(names), values_(names.size()) {
  if (arguments.positional.size() > names.size()) {
    throw wrong("{}: expected at most {} arguments, got {}", function, names.size(),
                arguments.positional.size());
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) throw wrong("{}: expected no argument named {}", function, in_quotes(name));
    const Value*& slot = values_[static_cast<size_t>(found - names_.begin())];
    if (slot != nullptr) throw wrong("{}: expected argument {} once", function, name);
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) throw wrong("{}: expected argument {}, got nothing", function, names_[i]);
  }
}

const Text& Parameters::text(size_t index) const {
  const Value& value = *values_[index];
  value.require_defined();
  if (value.text() == nullptr) {
    throw wrong("{}: expected argument {} to be a string, got {}", function_, names_[index],
                value.type_name());
  }
  return *value.text();
}

int64_t Parameters::integer_or(size_t index, int64_t fallback) const {
  const Value* value = values_[index];
  if (value == nullptr) return fallback;
  value->require_defined();
  if (const auto integer = value->integer()) return *integer;
  throw wrong("{}: expected argument {} to be an integer, got {}", function_, names_[index],
              value->type_name());
}

bool Parameters::truth_or(size_t index, bool fallback) const {
  return values_[index] == nullptr ? fallback : truthy(*values_[index]);
}

const Value* Parameters::some(size_t index) const {
  const Value* value = values_[index];
  return value == nullptr || value->is_none() ? nullptr : value;
}

}  // namespace soliton::jinja
