#include "runtime/text/chat_template/calls.h"

#include <algorithm>

namespace soliton::jinja {

void unpack_named(const Value& several, Arguments& arguments) {
  several.require_defined();
  if (several.dict() == nullptr) throw wrong("expected a mapping behind \"**\", got {}", several.type_name());
  for (const auto& [key, value] : several.dict()->entries()) {
    if (key.text() == nullptr) throw wrong("expected names behind \"**\", got {}", key.type_name());
    const std::string& name = key.text()->bytes();
    const auto has_name = [&name](const auto& given) { return given.first == name; };
    if (std::any_of(arguments.named.begin(), arguments.named.end(), has_name))
      throw wrong("expected argument {} once", in_quotes(name));
    arguments.named.emplace_back(name, value);
  }
}

Dict macro_attributes(const Macro& macro) {
  Dict attributes;
  const auto set = [&attributes](std::string_view name, Value value) {
    attributes.set(Value::own_text(name), std::move(value));
  };
  std::vector<Value> names;
  bool has_caller = false;  // as a parameter
  for (const Parameter& parameter : macro.parameters) {
    names.push_back(Value::own_text(parameter.name));
    has_caller = has_caller || parameter.name == "caller";
  }
  set("name", macro.name.empty() ? Value() : Value::own_text(macro.name));
  set("arguments", Value::tuple(std::move(names)));
  set("catch_kwargs", macro.takes.kwargs);
  set("catch_varargs", macro.takes.varargs);
  set("caller", macro.takes.caller || has_caller);
  set("explicit_caller", has_caller);
  return attributes;
}

}  // namespace soliton::jinja
