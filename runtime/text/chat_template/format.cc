// text.format(...) and text % ...: both come down to one value written by one specification, which fmt
// understands as Python does once what they differ in is taken out.
#include <algorithm>
#include <charconv>
#include <optional>

#include "runtime/text/chat_template/markup.h"
#include "runtime/text/chat_template/methods.h"
#include "runtime/text/chat_template/operators.h"

namespace soliton::jinja {
namespace {

constexpr int kMaxWidth = 10'000;

/// [[fill]align][sign][#][0][width][.precision][type]
struct Specification {
  std::string before_width;  // fill, align, sign, # and 0
  int width = 0;
  int precision = -1;
  char type = '\0';

  std::string text(std::string_view default_align) const {
    const bool aligned =
        before_width.find_first_of("<>^=") != std::string::npos || before_width.ends_with('0');
    std::string result = (aligned ? "" : std::string(default_align)) + before_width;
    if (width > 0) result += std::to_string(width);
    if (precision >= 0) result += fmt::format(".{}", precision);
    return result;
  }
};

int read_count(std::string_view& text) {
  size_t length = 0;
  while (length < text.size() && text[length] >= '0' && text[length] <= '9') ++length;
  int count = 0;
  const auto result = std::from_chars(text.data(), text.data() + length, count);
  if (length > 0 && (result.ec != std::errc() || count > kMaxWidth)) {
    throw too_much("expected a width of at most {}, got {}", kMaxWidth, in_quotes(text.substr(0, length)));
  }
  text.remove_prefix(length);
  return count;
}

Specification parse_specification(std::string_view text) {
  const std::string_view whole = text;
  Specification result;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^'; };
  size_t prefix = text.size() > 1 && is_align(text[1]) ? 2 : !text.empty() && is_align(text[0]) ? 1 : 0;
  while (prefix < text.size() &&
         (text[prefix] == '+' || text[prefix] == '-' || text[prefix] == ' ' || text[prefix] == '#'))
    ++prefix;
  if (prefix < text.size() && text[prefix] == '0') ++prefix;
  result.before_width = text.substr(0, prefix);
  text.remove_prefix(prefix);
  result.width = read_count(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    result.precision = read_count(text);
  }
  if (!text.empty()) {
    result.type = text.front();
    text.remove_prefix(1);
  }
  static constexpr std::string_view kTypes("\0sdxXobfFeEgG", 13);
  const bool known = kTypes.find(result.type) != std::string_view::npos;
  const bool plain = std::all_of(result.before_width.begin(), result.before_width.end(),
                                 [](char c) { return c > ' ' - 1 && c < 0x7f && c != '{' && c != '}'; });
  if (!text.empty() || !known || !plain)
    throw unsupported("expected a supported format, got {}", in_quotes(whole));
  return result;
}

/// Text padded and cut as asked; its characters keep their origins.
Text pad(const Text& text, const Specification& specification, std::string_view default_align) {
  const std::string& prefix = specification.before_width;
  const size_t at = prefix.find_first_of("<>^");
  const char align = at != std::string::npos ? prefix[at] : default_align[0];
  const std::string fill(1, at == 1 ? prefix[0] : ' ');
  const size_t kept = specification.precision < 0
                          ? text.size()
                          : byte_position(text.bytes(), static_cast<size_t>(specification.precision));
  const Text content = text.slice(0, kept);
  const auto length = static_cast<int>(std::min<size_t>(count_characters(content.bytes()), kMaxWidth));
  const int missing = std::max(specification.width - length, 0);
  const int before = align == '<' ? 0 : align == '>' ? missing : missing / 2;
  Text result;
  for (int i = 0; i < before; ++i) result.append(fill, Origin::kTemplate);
  result.append(content);
  for (int i = before; i < missing; ++i) result.append(fill, Origin::kTemplate);
  return result;
}

Text format_value(const Value& value, const Specification& specification) {
  static constexpr std::string_view kFloatTypes = "fFeEgG";
  const auto own = [](const std::string& text) { return Text(text, Origin::kTemplate); };
  const bool wants_float =
      specification.type != '\0' && kFloatTypes.find(specification.type) != std::string_view::npos;
  if (value.text() != nullptr) {
    const bool fits = specification.type == '\0' || specification.type == 's';
    if (!fits) throw wrong("expected a format for strings, got \"{}\"", specification.type);
    return pad(*value.text(), specification, "<");
  }
  if (const double* number = value.floating(); number != nullptr && !wants_float) {
    if (specification.type != '\0' || specification.precision >= 0)
      throw unsupported("expected a supported format of a float");
    return pad(own(float_repr(*number)), specification, ">");
  }
  if (const auto number = value.number(); number && wants_float) {
    const std::string pattern = fmt::format("{{:{}{}}}", specification.text(">"), specification.type);
    return own(fmt::format(fmt::runtime(pattern), *number));
  }
  if (value.integer() &&
      (value.boolean() == nullptr || specification.type != '\0' || specification.width > 0)) {
    if (specification.type == 's' || specification.precision >= 0)
      throw wrong("expected a format for integers");
    const std::string type = specification.type == '\0' ? "d" : std::string(1, specification.type);
    return own(
        fmt::format(fmt::runtime(fmt::format("{{:{}{}}}", specification.text(">"), type)), *value.integer()));
  }
  if (specification.width > 0 || specification.precision >= 0 || specification.type != '\0') {
    throw wrong("expected no format for {}", value.type_name());
  }
  return to_text(value);
}

/// The fields of text.format().
class BraceFormatter {
 public:
  BraceFormatter(Machine& machine, const Text& text, const Arguments& arguments)
      : machine_(machine), text_(text), arguments_(arguments) {}

  Text run() {
    const std::string_view bytes = text_.bytes();
    size_t begin = 0;
    for (size_t at; (at = bytes.find_first_of("{}", begin)) != std::string_view::npos;) {
      machine_.spend_steps();
      result_.append(text_, begin, at);
      if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
        result_.append(text_, at, at + 1);
        begin = at + 2;
        continue;
      }
      const size_t end = bytes[at] == '{' ? bytes.find('}', at) : std::string_view::npos;
      if (end == std::string_view::npos) throw wrong("format: expected braces in pairs");
      const std::string_view field = bytes.substr(at + 1, end - at - 1);
      if (field.find('{') != std::string_view::npos)
        throw unsupported("format: expected no braces inside a field");
      add_field(field);
      begin = end + 1;
    }
    result_.append(text_, begin, text_.size());
    return std::move(result_).marked(text_.is_markup());
  }

 private:
  void add_field(std::string_view field) {
    const size_t colon = std::min(field.find(':'), field.size());
    const std::string_view specification = field.substr(std::min(colon + 1, field.size()));
    field = field.substr(0, colon);
    char conversion = '\0';
    if (const size_t mark = field.find('!'); mark != std::string_view::npos) {
      if (mark + 2 != field.size()) throw wrong("format: expected one letter behind \"!\"");
      conversion = field.back();
      field = field.substr(0, mark);
    }
    Value value = lookup(field);
    if (conversion == 'r') value = to_repr(value);
    if (conversion == 's') value = to_text(value).marked(false);
    if (conversion != '\0' && conversion != 'r' && conversion != 's')
      throw unsupported("format: expected !r or !s");
    if (text_.is_markup() && value.text() != nullptr && value.text()->is_markup() && !specification.empty())
      throw wrong("format: expected no format for Markup, got {}", in_quotes(specification));
    Text written = format_value(value, parse_specification(specification))
                       .marked(value.text() != nullptr && value.text()->is_markup());
    if (text_.is_markup()) written = escape(machine_, written);
    machine_.budget().spend_bytes(written.size());
    result_.append(written);
  }

  Value lookup(std::string_view field) {
    const size_t name_end = std::min(field.find_first_of(".["), field.size());
    Value value = argument(field.substr(0, name_end));
    field.remove_prefix(name_end);
    while (!field.empty()) {
      const bool is_item = field.front() == '[';
      const size_t end = is_item ? field.find(']') : std::min(field.find_first_of(".[", 1), field.size());
      if (end == std::string_view::npos) throw wrong("format: expected \"]\"");
      const std::string_view name = field.substr(1, end - 1);
      field.remove_prefix(is_item ? end + 1 : end);
      value = is_item ? get_item(machine_, value, key(name)) : get_attribute(machine_, value, name);
    }
    return value;
  }

  static Value key(std::string_view name) {
    int64_t index = 0;
    const auto result = std::from_chars(name.data(), name.data() + name.size(), index);
    if (result.ec == std::errc() && result.ptr == name.data() + name.size() && !name.starts_with('-'))
      return index;
    return Value::own_text(name);
  }

  Value argument(std::string_view name) {
    const Value index = name.empty() ? Value::size(next_++) : key(name);
    if (const auto number = index.integer()) {
      (name.empty() ? counts_ : is_told_) = true;
      if (counts_ && is_told_) throw wrong("format: expected fields with numbers or without, got both");
      const auto position = static_cast<size_t>(*number);
      if (position >= arguments_.positional.size())
        throw wrong("format: expected argument {}, got nothing", position);
      return arguments_.positional[position];
    }
    for (const auto& [given, value] : arguments_.named) {
      if (given == name) return value;
    }
    throw wrong("format: expected argument {}, got nothing", in_quotes(name));
  }

  Machine& machine_;
  const Text& text_;
  const Arguments& arguments_;
  size_t next_ = 0;
  bool counts_ = false;   // fields without numbers
  bool is_told_ = false;  // fields with numbers
  Text result_;
};

/// One conversion of text % arguments, behind the "%" and the key.
Text percent_value(Machine& machine, bool escapes, const Value& value, std::string_view flags, int width,
                   int precision, char type) {
  const bool left = flags.find('-') != std::string_view::npos;
  Specification specification;
  specification.width = width;
  specification.before_width = left ? "<" : "";
  if (type == 's' || type == 'r') {
    specification.precision = precision;
    Text written = type == 's' ? to_text(value) : to_repr(value);
    if (escapes) written = escape(machine, written);
    return pad(written, specification, ">");
  }
  value.require_defined();
  if (!value.number()) throw wrong("expected a number for %{}, got {}", type, value.type_name());
  for (const char flag : {'+', ' '}) {
    if (flags.find(flag) != std::string_view::npos) {
      specification.before_width += flag;
      break;
    }
  }
  if (flags.find('0') != std::string_view::npos && !left) specification.before_width += '0';
  const bool is_integer = type == 'd' || type == 'i' || type == 'u';
  specification.type = is_integer ? 'd' : type;
  if (is_integer) {
    constexpr double kBound = 9.2e18;
    if (value.integer()) return format_value(*value.integer(), specification);
    if (!(std::abs(*value.number()) < kBound)) throw unsupported("expected integers of 64 bits, got more");
    return format_value(static_cast<int64_t>(*value.number()), specification);
  }
  if (type == 'x' || type == 'X' || type == 'o') {
    if (escapes) throw wrong("expected no %{} in Markup", type);
    return format_value(value, specification);
  }
  specification.precision = precision < 0 ? 6 : precision;
  return format_value(value, specification);
}

}  // namespace

Value brace_format(Machine& machine, const Text& text, const Arguments& arguments) {
  return machine.text(BraceFormatter(machine, text, arguments).run());
}

Value percent_format(Machine& machine, const Text& text, const Value& arguments) {
  const Sequence* several = arguments.sequence();
  if (several != nullptr && several->kind != Sequence::kTuple) several = nullptr;
  size_t used = 0;
  const auto next_argument = [&]() -> const Value& {
    if (several == nullptr ? used > 0 : used >= several->items.size())
      throw wrong("expected more arguments behind \"%\"");
    return several == nullptr ? (++used, arguments) : several->items[used++];
  };
  Text result;
  std::string_view rest = text.bytes();
  const auto position = [&] { return text.size() - rest.size(); };
  while (!rest.empty()) {
    machine.spend_steps();
    const size_t percent = std::min(rest.find('%'), rest.size());
    result.append(text, position(), position() + percent);
    rest.remove_prefix(percent);
    if (rest.empty()) break;
    rest.remove_prefix(1);
    std::optional<Value> by_name;
    if (rest.starts_with('(')) {
      const size_t end = rest.find(')');
      if (end == std::string_view::npos || arguments.dict() == nullptr)
        throw wrong("expected a dict for \"%(\"");
      by_name = get_item(machine, arguments, Value::own_text(rest.substr(1, end - 1)));
      by_name->require_defined();
      used = 1;
      rest.remove_prefix(end + 1);
    }
    const size_t num_flags = std::min(rest.find_first_not_of("-+ 0"), rest.size());
    const std::string_view flags = rest.substr(0, num_flags);
    rest.remove_prefix(num_flags);
    const int width = read_count(rest);
    int precision = -1;
    if (rest.starts_with('.')) {
      rest.remove_prefix(1);
      precision = read_count(rest);
    }
    if (rest.empty()) throw wrong("expected a letter behind \"%\"");
    const char type = rest.front();
    const size_t at = position();
    rest.remove_prefix(1);
    static constexpr std::string_view kTypes = "srdiuxXofFeEgG";
    if (type == '%') {
      result.append(text, at, at + 1);
    } else if (kTypes.find(type) == std::string_view::npos) {
      throw unsupported("expected a supported conversion, got \"%{}\"", type);
    } else {
      const Text written = percent_value(machine, text.is_markup(), by_name ? *by_name : next_argument(),
                                         flags, width, precision, type);
      machine.budget().spend_bytes(written.size());
      result.append(written);
    }
  }
  const bool all_used =
      several != nullptr ? used == several->items.size() || arguments.dict() != nullptr : used > 0;
  const bool is_list = arguments.sequence() != nullptr && arguments.sequence()->kind <= Sequence::kRange;
  const bool may_be_left =
      arguments.dict() != nullptr || arguments.is_undefined() || (is_list && several == nullptr);
  if (!all_used && !may_be_left) throw wrong("expected fewer arguments behind \"%\"");
  return machine.text(std::move(result).marked(text.is_markup()));
}

}  // namespace soliton::jinja
