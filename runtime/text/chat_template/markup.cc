#include "runtime/text/chat_template/markup.h"

#include <algorithm>

namespace soliton::jinja {
namespace {

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\'':
      return "&#39;";
    case '"':
      return "&#34;";
    default:
      return "";
  }
}

}  // namespace

Text escape(Machine& machine, const Value& value) {
  Text text = to_text(value);
  if (text.is_markup()) return text;
  const std::string_view bytes = text.bytes();
  machine.budget().spend_bytes(bytes.size());
  Text result;
  size_t begin = 0;
  for (size_t at; (at = bytes.find_first_of("&<>'\"", begin)) != std::string_view::npos; begin = at + 1) {
    result.append(text, begin, at);
    const std::string_view written = entity(bytes[at]);
    machine.budget().spend_bytes(written.size());
    result.append(written, text.origin_at(at));
  }
  result.append(text, begin, text.size());
  return std::move(result).marked();
}

Value as_markup(Value value) {
  if (value.text() != nullptr) return Text(*value.text()).marked();
  const Sequence* sequence = value.sequence();
  if (sequence == nullptr) return value;
  std::vector<Value> items;
  for (const Value& item : sequence->items) items.push_back(as_markup(item));
  return Sequence(sequence->kind, std::move(items));
}

Arguments escaped_arguments(Machine& machine, std::string_view name, const Arguments& arguments) {
  Arguments result = arguments;
  std::vector<Value>& given = result.positional;
  const bool fills = name == "center" || name == "ljust" || name == "rjust";
  if ((fills || name == "replace") && given.size() > 1 && given[1].text() != nullptr) {
    given[1] = machine.text(escape(machine, given[1]));
  }
  if (name == "join" && given.size() == 1) {
    std::vector<Value> items = machine.items(given[0]);
    for (Value& item : items) item = machine.text(escape(machine, item));
    given[0] = machine.list(std::move(items));
  }
  return result;
}

}  // namespace soliton::jinja
