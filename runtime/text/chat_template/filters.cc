// Filters of text and numbers, and the table of all. Those of lists are in list_filters.cc.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "runtime/text/chat_template/builtins.h"
#include "runtime/text/chat_template/casing.h"
#include "runtime/text/chat_template/json_text.h"
#include "runtime/text/chat_template/list_filters.h"
#include "runtime/text/chat_template/markup.h"
#include "runtime/text/chat_template/methods.h"
#include "runtime/text/chat_template/string_methods.h"

namespace soliton::jinja {
namespace {

/// The number that Python's float() reads from text.
std::optional<double> parse_float(const Text& text) {
  std::string digits = strip(text, nullptr).bytes();
  for (size_t i = 1; i + 1 < digits.size(); ++i) {
    const auto is_digit = [&](size_t at) { return digits[at] >= '0' && digits[at] <= '9'; };
    if (digits[i] == '_' && is_digit(i - 1) && is_digit(i + 1)) digits.erase(i, 1);
  }
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  for (char& c : digits) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  double number = 0;
  if (digits == "inf" || digits == "infinity") {
    number = std::numeric_limits<double>::infinity();
  } else if (digits == "nan") {
    number = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (digits.empty() || digits.find_first_not_of("0123456789.e+-") != std::string::npos ||
        digits[0] == '-' || digits[0] == '+')
      return std::nullopt;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (result.ptr != digits.data() + digits.size() || result.ec == std::errc::invalid_argument)
      return std::nullopt;
    if (result.ec == std::errc::result_out_of_range)
      number = std::strtod(digits.c_str(), nullptr);  // 0 or inf
  }
  return negative ? -number : number;
}

Value to_integer(double number) {
  constexpr double kBound = 9223372036854775808.0;
  if (std::isinf(number)) throw wrong("int: expected a finite number");
  if (std::abs(number) >= kBound) throw unsupported("expected integers of 64 bits, got more");
  return static_cast<int64_t>(number);
}

/// The integer that Python's int() reads from decimal text.
std::optional<int64_t> parse_integer(const Text& text) {
  std::string digits = strip(text, nullptr).bytes();
  for (size_t i = 1; i + 1 < digits.size(); ++i) {
    if (digits[i] == '_' && digits[i - 1] != '_' && digits[i + 1] != '_') digits.erase(i, 1);
  }
  if (digits.starts_with('+')) {
    digits.erase(0, 1);
    if (digits.starts_with('-')) return std::nullopt;
  }
  int64_t number = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || result.ptr != digits.data() + digits.size() ||
      result.ec == std::errc::invalid_argument)
    return std::nullopt;
  if (result.ec == std::errc::result_out_of_range)
    throw unsupported("expected integers of 64 bits, got {}", in_quotes(digits));
  return number;
}

Value filter_int(Machine&, const Value& value, const Arguments& arguments) {
  const Parameters given("int", arguments, {"default", "base"});
  if (given.integer_or(1, 10) != 10) throw unsupported("int: expected base 10");
  const Value fallback = given[0] == nullptr ? Value(int64_t{0}) : *given[0];
  value.require_defined();
  if (value.integer()) return *value.integer();
  std::optional<double> number = value.number();
  if (const Text* text = value.text()) {
    if (const auto integer = parse_integer(*text)) return *integer;
    number = parse_float(*text);
    if (number && std::isinf(*number)) return fallback;
  }
  return number && !std::isnan(*number) ? to_integer(*number) : fallback;
}

Value filter_float(Machine&, const Value& value, const Arguments& arguments) {
  const Parameters given("float", arguments, {"default"});
  value.require_defined();
  const std::optional<double> number = value.text() != nullptr ? parse_float(*value.text()) : value.number();
  return number ? Value(*number) : given[0] == nullptr ? Value(0.0) : *given[0];
}

/// Python's round(): half to even, on the exact value.
double round_decimal(double number, int64_t precision) {
  constexpr int64_t kMaxPrecision = 30;
  if (precision < 0) throw unsupported("round: expected a precision of at least 0, got {}", precision);
  if (!std::isfinite(number) || precision > kMaxPrecision) return number;
  return std::strtod(fmt::format("{:.{}f}", number, precision).c_str(), nullptr);
}

Value filter_round(Machine&, const Value& value, const Arguments& arguments) {
  const Parameters given("round", arguments, {"precision", "method"});
  const int64_t precision = given.integer_or(0, 0);
  const std::string method = given[1] == nullptr ? "common" : given.text(1).bytes();
  value.require_defined();
  if (!value.number()) throw wrong("round: expected a number, got {}", value.type_name());
  if (method == "common") {
    if (value.integer() && precision >= 0) return *value.integer();
    return round_decimal(*value.number(), precision);
  }
  if (method != "ceil" && method != "floor")
    throw wrong("round: expected common, ceil or floor, got {}", in_quotes(method));
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = *value.number() * scale;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
}

Value filter_abs(Machine&, const Value& value, const Arguments& arguments) {
  Parameters("abs", arguments, {});
  value.require_defined();
  if (const double* number = value.floating()) return std::abs(*number);
  const auto integer = value.integer();
  if (!integer) throw wrong("abs: expected a number, got {}", value.type_name());
  if (*integer == std::numeric_limits<int64_t>::min())
    throw unsupported("expected integers of 64 bits, got more");
  return std::abs(*integer);
}

Value filter_default(Machine&, const Value& value, const Arguments& arguments) {
  const Parameters given("default", arguments, {"default_value", "boolean"});
  if (!value.is_undefined() && !(given.truth_or(1, false) && !truthy(value))) return value;
  return given[0] == nullptr ? Value(Text()) : *given[0];
}

Value filter_string(Machine& machine, const Value& value, const Arguments& arguments) {
  Parameters("string", arguments, {});
  return machine.text(to_text(value));
}

Value filter_trim(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("trim", arguments, {"chars"});
  const Text text = to_text(value);
  return machine.text(
      strip(text, given.some(0) == nullptr ? nullptr : &given.text(0)).marked(text.is_markup()));
}

template <Text (*kMap)(const Text&), bool kKeepsMarkup = true>
Value filter_mapped(Machine& machine, const Value& value, const Arguments& arguments) {
  Parameters("case mapping", arguments, {});
  const Text text = to_text(value);
  return machine.text(kMap(text).marked(kKeepsMarkup && text.is_markup()));
}

Value filter_safe(Machine& machine, const Value& value, const Arguments& arguments) {
  Parameters("safe", arguments, {});
  return machine.text(to_text(value).marked());
}

Value filter_escape(Machine& machine, const Value& value, const Arguments& arguments) {
  Parameters("escape", arguments, {});
  return machine.text(escape(machine, value));
}

Value filter_forceescape(Machine& machine, const Value& value, const Arguments& arguments) {
  Parameters("forceescape", arguments, {});
  return machine.text(escape(machine, to_text(value).marked(false)));
}

/// Appends the text with all bytes percent-encoded but letters, digits, _.-~ and, outside of queries, slashes.
void append_url(Machine& machine, Text& url, const Text& text, bool in_query) {
  static constexpr std::string_view kSafe = "_.-~/";
  const std::string& bytes = text.bytes();
  std::string written;
  size_t at = 0;
  for (const Text::Run& run : text.runs()) {
    written.clear();
    for (; at < run.end; ++at) {
      const auto byte = static_cast<unsigned char>(bytes[at]);
      const bool is_safe =
          byte < 0x80 && (isalnum(byte) || kSafe.substr(0, in_query ? 4 : 5).find(bytes[at]) != kSafe.npos);
      written += is_safe                   ? std::string(1, bytes[at])
                 : in_query && byte == ' ' ? "+"
                                           : fmt::format("%{:02X}", static_cast<unsigned>(byte));
    }
    machine.budget().spend_bytes(written.size());
    url.append(written, run.origin);
  }
}

Value filter_urlencode(Machine& machine, const Value& value, const Arguments& arguments) {
  Parameters("urlencode", arguments, {});
  Text url;
  const bool has_items = value.sequence() != nullptr || value.dict() != nullptr || value.is_undefined();
  if (!has_items) {
    append_url(machine, url, to_text(value), false);
    return machine.text(std::move(url));
  }
  bool first = true;
  for (const Value& item :
       machine.items(value.dict() != nullptr ? filter_items(machine, value, {}) : value)) {
    const std::vector<Value> pair = machine.items(item);
    if (pair.size() != 2) throw wrong("urlencode: expected pairs, got {} values", pair.size());
    if (!std::exchange(first, false)) url.append("&", Origin::kTemplate);
    append_url(machine, url, to_text(pair[0]), true);
    url.append("=", Origin::kTemplate);
    append_url(machine, url, to_text(pair[1]), true);
  }
  return machine.text(std::move(url));
}

Value filter_replace(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("replace", arguments, {"old", "new", "count"}, 2);
  const int64_t count = given.some(2) == nullptr ? -1 : given.integer_or(2, -1);
  return machine.text(replace(machine, to_text(value), to_text(*given[0]), to_text(*given[1]), count));
}

Value filter_center(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("center", arguments, {"width"});
  return call_string_method(machine, "center", to_text(value), {{given.integer_or(0, 80)}, {}});
}

Value filter_indent(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("indent", arguments, {"width", "first", "blank"});
  value.require_defined();
  if (value.text() == nullptr) throw wrong("indent: expected a string, got {}", value.type_name());
  Text indent;
  if (given[0] != nullptr && given[0]->text() != nullptr) {
    indent = *given[0]->text();
  } else {
    const int64_t width = std::max<int64_t>(given.integer_or(0, 4), 0);
    if (width > static_cast<int64_t>(kMaxOutputBytes))
      throw too_much("indent: expected a width of at most {}", kMaxOutputBytes);
    machine.budget().spend_bytes(static_cast<size_t>(width));
    indent = Text(std::string(static_cast<size_t>(width), ' '), Origin::kTemplate);
  }
  const bool blank = given.truth_or(2, false);
  const std::string newline = "\n";
  Text ended = *value.text();
  ended.append(newline, Origin::kTemplate);
  Text result;
  if (given.truth_or(1, false)) result.append(indent);
  bool is_first = true;
  for (const Text& line : split_lines(ended, false)) {
    machine.spend_steps();
    machine.budget().spend_bytes(indent.size());
    if (!is_first) {
      result.append(newline, Origin::kTemplate);
      if (blank || !line.empty()) result.append(indent);
    }
    result.append(line);
    is_first = false;
  }
  return machine.text(std::move(result).marked(value.text()->is_markup()));
}

Value filter_truncate(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const Text end = given[2] == nullptr ? Text("...", Origin::kTemplate) : given.text(2);
  const int64_t length = given.integer_or(0, 255);
  const int64_t leeway = given.some(3) == nullptr ? 5 : given.integer_or(3, 5);
  const auto kept = length - static_cast<int64_t>(count_characters(end.bytes()));
  if (kept < 0 || leeway < 0)
    throw wrong("truncate: expected a length of at least that of the end, and a leeway of at least 0");
  const int64_t size = *filter_length(machine, value, {}).integer();
  if (size <= static_cast<__int128>(length) + leeway) return value;
  if (value.text() == nullptr) throw wrong("truncate: expected a string, got {}", value.type_name());
  const Text& text = *value.text();
  Text result = text.slice(0, byte_position(text.bytes(), static_cast<size_t>(kept)));
  if (!given.truth_or(1, false)) {
    const size_t space = result.bytes().rfind(' ');
    if (space != std::string::npos) result = result.slice(0, space);
  }
  result.append(text.is_markup() ? escape(machine, end) : end);
  return machine.text(std::move(result).marked(text.is_markup()));
}

Value filter_format(Machine& machine, const Value& value, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    throw wrong("format: expected positional or named arguments, got both");
  }
  if (arguments.named.empty())
    return percent_format(machine, to_text(value), Value::tuple(arguments.positional));
  return percent_format(machine, to_text(value), dict_from(machine, "format", arguments));
}

Value filter_attr(Machine& machine, const Value& value, const Arguments& arguments) {
  const Parameters given("attr", arguments, {"name"}, 1);
  value.require_defined();
  auto member = find_member(machine, value, given.text(0).bytes());
  return member ? *std::move(member)
                : Value::undefined(
                      fmt::format("expected attribute {}, got nothing", in_quotes(given.text(0).bytes())));
}

constexpr auto kFilters = std::to_array<std::pair<std::string_view, FilterFunction>>({
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"batch", filter_batch},
    {"capitalize", filter_mapped<to_capitalized>},
    {"center", filter_center},
    {"count", filter_length},
    {"d", filter_default},
    {"default", filter_default},
    {"dictsort", filter_dictsort},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"first", filter_first},
    {"float", filter_float},
    {"forceescape", filter_forceescape},
    {"format", filter_format},
    {"groupby", filter_groupby},
    {"indent", filter_indent},
    {"int", filter_int},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"lower", filter_mapped<to_lower>},
    {"map", filter_map},
    {"max", filter_max},
    {"min", filter_min},
    {"reject", filter_reject},
    {"rejectattr", filter_rejectattr},
    {"replace", filter_replace},
    {"reverse", filter_reverse},
    {"round", filter_round},
    {"safe", filter_safe},
    {"select", filter_select},
    {"selectattr", filter_selectattr},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"string", filter_string},
    {"sum", filter_sum},
    {"title", filter_mapped<to_title_words, false>},
    {"tojson", to_json},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"unique", filter_unique},
    {"upper", filter_mapped<to_upper>},
    {"urlencode", filter_urlencode},
});

}  // namespace

Value apply_filter(Machine& machine, std::string_view name, const Value& value, const Arguments& arguments) {
  const Machine::Level level(machine);
  machine.spend_steps(value.weight());
  const auto found = std::find_if(kFilters.begin(), kFilters.end(),
                                  [name](const auto& entry) { return entry.first == name; });
  if (found == kFilters.end() || name.empty())
    throw unsupported("expected a supported filter, got {}", in_quotes(name));
  return found->second(machine, value, arguments);
}

}  // namespace soliton::jinja
