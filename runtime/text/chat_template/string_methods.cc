// Positions are bytes inside; what a template sees are characters.
#include "runtime/text/chat_template/string_methods.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "runtime/text/chat_template/casing.h"
#include "runtime/text/chat_template/markup.h"
#include "runtime/text/chat_template/methods.h"

namespace soliton::jinja {
namespace {

constexpr size_t kNotFound = std::string_view::npos;

/// Linear in both, unlike std::string::find, which a hostile pattern makes quadratic.
size_t find_part(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return kNotFound;
  const void* found = ::memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? kNotFound : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

/// The last occurrence that ends at `end` or before. Costs what the worst case takes.
size_t find_last_part(Machine& machine, std::string_view text, std::string_view part, size_t end) {
  if (part.size() > end) return kNotFound;
  constexpr size_t kBytesPerStep = 64;
  machine.spend_steps(1 + end / kBytesPerStep * (1 + part.size() / kBytesPerStep));
  return text.rfind(part, end - part.size());
}

Value split_result(Machine& machine, std::vector<Text> parts) {
  size_t bytes = 0;
  for (const Text& part : parts) bytes += part.size() + sizeof(Text);
  machine.budget().spend_bytes(bytes);
  std::vector<Value> items;
  items.reserve(parts.size());
  for (Text& part : parts) items.emplace_back(std::move(part));
  return machine.list(std::move(items));
}

/// Splits at runs of space; the rest behind `most` splits keeps the space at its end.
std::vector<Text> split_at_space(const Text& text, size_t most) {
  std::vector<Text> parts;
  size_t position = 0;
  const auto skip_while = [&](bool space) {
    for (size_t next = position; position < text.size(); position = next) {
      if (is_space(next_character(text.bytes(), next)) != space) break;
    }
  };
  while (true) {
    skip_while(true);
    if (position == text.size()) return parts;
    if (parts.size() == most) break;
    const size_t begin = position;
    skip_while(false);
    parts.push_back(text.slice(begin, position));
  }
  parts.push_back(text.slice(position, text.size()));
  return parts;
}

std::vector<Text> split_at_space_from_right(const Text& text, size_t most) {
  std::vector<Text> parts;
  size_t end = text.size();
  const auto skip_while = [&](bool space) {
    while (end > 0) {
      const size_t begin = previous_position(text.bytes(), end);
      size_t position = begin;
      if (is_space(next_character(text.bytes(), position)) != space) break;
      end = begin;
    }
  };
  while (true) {
    skip_while(true);
    if (end == 0) break;
    if (parts.size() == most) {
      parts.push_back(text.slice(0, end));
      break;
    }
    const size_t stop = end;
    skip_while(false);
    parts.push_back(text.slice(end, stop));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

size_t split_limit(const Parameters& given) {
  const int64_t most = given.integer_or(1, -1);
  return most < 0 ? std::numeric_limits<size_t>::max() : static_cast<size_t>(most);
}

const Text& separator(const Parameters& given) {
  const Text& text = given.text(0);
  if (text.empty()) throw wrong("expected a separator that is not empty");
  return text;
}

Value split(Machine& machine, const Text& text, const Arguments& arguments) {
  const Parameters given("split", arguments, {"sep", "maxsplit"});
  const size_t most = split_limit(given);
  if (given.some(0) == nullptr) return split_result(machine, split_at_space(text, most));
  const std::string& part = separator(given).bytes();
  std::vector<Text> parts;
  size_t begin = 0;
  for (size_t at; parts.size() < most && (at = find_part(text.bytes(), part, begin)) != kNotFound;
       begin = at + part.size()) {
    machine.spend_steps();
    parts.push_back(text.slice(begin, at));
  }
  parts.push_back(text.slice(begin, text.size()));
  return split_result(machine, std::move(parts));
}

Value rsplit(Machine& machine, const Text& text, const Arguments& arguments) {
  const Parameters given("rsplit", arguments, {"sep", "maxsplit"});
  const size_t most = split_limit(given);
  if (given.some(0) == nullptr) return split_result(machine, split_at_space_from_right(text, most));
  const std::string& part = separator(given).bytes();
  std::vector<Text> parts;
  size_t end = text.size();
  for (size_t at; parts.size() < most && (at = find_last_part(machine, text.bytes(), part, end)) != kNotFound;
       end = at) {
    parts.push_back(text.slice(at + part.size(), end));
  }
  parts.push_back(text.slice(0, end));
  std::reverse(parts.begin(), parts.end());
  return split_result(machine, std::move(parts));
}

template <bool kFromRight>
Value partition(Machine& machine, const Text& text, const Arguments& arguments) {
  const Parameters given("partition", arguments, {"sep"}, 1);
  const Text& part = separator(given);
  const size_t at = kFromRight ? find_last_part(machine, text.bytes(), part.bytes(), text.size())
                               : find_part(text.bytes(), part.bytes(), 0);
  if (at == kNotFound)
    return kFromRight ? Value::tuple({Text(), Text(), text}) : Value::tuple({text, Text(), Text()});
  machine.budget().spend_bytes(text.size());
  return Value::tuple({text.slice(0, at), part, text.slice(at + part.size(), text.size())});
}

template <bool kLeft, bool kRight>
Value strip_method(Machine& machine, const Text& text, const Arguments& arguments) {
  const Parameters given("strip", arguments, {"chars"});
  const Text* characters = given.some(0) == nullptr ? nullptr : &given.text(0);
  if (characters != nullptr) machine.spend_steps(text.size() / 64 * (1 + characters->size() / 64));
  return machine.text(strip(text, characters, kLeft, kRight));
}

template <bool kAtStart>
Value has_affix(Machine&, const Text& text, const Arguments& arguments) {
  const Parameters given(kAtStart ? "startswith" : "endswith", arguments, {"affix"}, 1);
  const auto matches = [&text](const Value& value) {
    value.require_defined();
    if (value.text() == nullptr) throw wrong("expected a string to look for, got {}", value.type_name());
    const std::string& affix = value.text()->bytes();
    return kAtStart ? text.bytes().starts_with(affix) : text.bytes().ends_with(affix);
  };
  const Sequence* several = given[0]->sequence();
  if (several == nullptr || several->kind != Sequence::kTuple) return matches(*given[0]);
  return std::any_of(several->items.begin(), several->items.end(), matches);
}

template <bool kAtStart>
Value remove_affix(Machine& machine, const Text& text, const Arguments& arguments) {
  const Parameters given(kAtStart ? "removeprefix" : "removesuffix", arguments, {"affix"}, 1);
  const std::string& affix = given.text(0).bytes();
  if (kAtStart)
    return machine.text(text.slice(text.bytes().starts_with(affix) ? affix.size() : 0, text.size()));
  return machine.text(text.slice(0, text.size() - (text.bytes().ends_with(affix) ? affix.size() : 0)));
}

Value replace_method(Machine& machine, const Text& text, const Arguments& arguments) {
  const Parameters given("replace", arguments, {"old", "new", "count"}, 2);
  return machine.text(replace(machine, text, given.text(0), given.text(1), given.integer_or(2, -1)));
}

template <Text (*kMap)(const Text&)>
Value mapped(Machine& machine, const Text& text, const Arguments& arguments) {
  Parameters("case mapping", arguments, {});
  return machine.text(kMap(text));
}

template <bool kFromRight, bool kMustExist>
Value find_method(Machine& machine, const Text& text, const Arguments& arguments) {
  const Parameters given(kMustExist ? "index" : "find", arguments, {"sub"}, 1);
  const std::string& part = given.text(0).bytes();
  const size_t at = kFromRight ? find_last_part(machine, text.bytes(), part, text.size())
                               : find_part(text.bytes(), part, 0);
  if (at != kNotFound) return Value::size(count_characters(std::string_view(text.bytes()).substr(0, at)));
  if (kMustExist) throw wrong("expected a part of the string, got {}", in_quotes(part));
  return int64_t{-1};
}

Value count(Machine& machine, const Text& text, const Arguments& arguments) {
  const Parameters given("count", arguments, {"sub"}, 1);
  const std::string& part = given.text(0).bytes();
  if (part.empty()) return Value::size(count_characters(text.bytes()) + 1);
  size_t found = 0;
  for (size_t at = 0; (at = find_part(text.bytes(), part, at)) != kNotFound; at += part.size(), ++found)
    machine.spend_steps();
  return Value::size(found);
}

Value join(Machine& machine, const Text& text, const Arguments& arguments) {
  const Parameters given("join", arguments, {"iterable"}, 1);
  Text result;
  bool first = true;
  for (const Value& item : machine.items(*given[0])) {
    item.require_defined();
    if (item.text() == nullptr) throw wrong("join: expected strings, got {}", item.type_name());
    machine.budget().spend_bytes(text.size() + item.text()->size());
    if (!std::exchange(first, false)) result.append(text);
    result.append(*item.text());
  }
  return machine.text(std::move(result));
}

Value splitlines(Machine& machine, const Text& text, const Arguments& arguments) {
  const Parameters given("splitlines", arguments, {"keepends"});
  return split_result(machine, split_lines(text, given.truth_or(0, false)));
}

/// Whether all characters are of a class, and there are any.
template <bool (*kIsOne)(char32_t)>
Value all_are(Machine&, const Text& text, const Arguments& arguments) {
  Parameters("test of a string", arguments, {});
  bool all = !text.empty();
  for (size_t position = 0; all && position < text.size();)
    all = kIsOne(next_character(text.bytes(), position));
  return all;
}

bool is_decimal(char32_t character) {
  if (character >= 0x80)
    throw unsupported("expected ASCII to look for digits in, got U+{:04X}", static_cast<uint32_t>(character));
  return character >= '0' && character <= '9';
}

bool is_alphanumeric(char32_t character) {
  return is_letter(character) || (character < 0x80 && is_decimal(character));
}

/// Whether there are cased characters, and all of them are upper, or lower.
template <bool kUpper>
Value has_case(Machine&, const Text& text, const Arguments& arguments) {
  Parameters("test of a string", arguments, {});
  bool any = false;
  for (size_t position = 0; position < text.size();) {
    const char32_t character = next_character(text.bytes(), position);
    if (kUpper ? is_lower(character) : is_upper(character)) return false;
    any = any || (kUpper ? is_upper(character) : is_lower(character));
  }
  return any;
}

enum class Side { kLeft, kRight, kBoth };

/// Fills up to a width; of an odd number, Python's center puts one more at the left where the width is odd.
template <Side kFill>
Value padded(Machine& machine, const Text& text, const Arguments& arguments) {
  const Parameters given("padding", arguments, {"width", "fillchar"}, 1);
  const Text space(" ", Origin::kTemplate);
  const Text& fill = given[1] == nullptr ? space : given.text(1);
  if (count_characters(fill.bytes()) != 1) throw wrong("expected one character to fill with");
  const auto length = static_cast<int64_t>(count_characters(text.bytes()));
  const int64_t width = given.integer_or(0, 0);
  if (width > static_cast<int64_t>(kMaxOutputBytes))
    throw too_much("expected a width of at most {}", kMaxOutputBytes);
  const int64_t missing = std::max<int64_t>(width - length, 0);
  const int64_t half = missing / 2 + (missing & width & 1);
  const int64_t before = kFill == Side::kRight ? 0 : kFill == Side::kLeft ? missing : half;
  machine.budget().spend_bytes(static_cast<size_t>(missing) * fill.size());
  Text result;
  for (int64_t i = 0; i < before; ++i) result.append(fill);
  result.append(text);
  for (int64_t i = before; i < missing; ++i) result.append(fill);
  return machine.text(std::move(result));
}

using Method = Value (*)(Machine&, const Text&, const Arguments&);

constexpr auto kMethods = std::to_array<std::pair<std::string_view, Method>>({
    {"capitalize", mapped<to_capitalized>},
    {"center", padded<Side::kBoth>},
    {"count", count},
    {"endswith", has_affix<false>},
    {"find", find_method<false, false>},
    {"format", brace_format},
    {"index", find_method<false, true>},
    {"isalnum", all_are<is_alphanumeric>},
    {"isalpha", all_are<is_letter>},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_decimal>},
    {"islower", has_case<false>},
    {"isnumeric", all_are<is_decimal>},
    {"isspace", all_are<is_space>},
    {"isupper", has_case<true>},
    {"join", join},
    {"ljust", padded<Side::kRight>},
    {"lower", mapped<to_lower>},
    {"lstrip", strip_method<true, false>},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"replace", replace_method},
    {"rfind", find_method<true, false>},
    {"rindex", find_method<true, true>},
    {"rjust", padded<Side::kLeft>},
    {"rpartition", partition<true>},
    {"rsplit", rsplit},
    {"rstrip", strip_method<false, true>},
    {"split", split},
    {"splitlines", splitlines},
    {"startswith", has_affix<true>},
    {"strip", strip_method<true, true>},
    {"title", mapped<to_title>},
    {"upper", mapped<to_upper>},
});
constexpr std::array<std::string_view, 12> kUnsupported = {
    "casefold",    "encode",  "expandtabs", "format_map", "isascii",   "isidentifier",
    "isprintable", "istitle", "maketrans",  "swapcase",   "translate", "zfill"};

Method find_string_method(std::string_view name) {
  const auto found = std::find_if(kMethods.begin(), kMethods.end(),
                                  [name](const auto& entry) { return entry.first == name; });
  return found == kMethods.end() ? nullptr : found->second;
}

}  // namespace

Text strip(const Text& text, const Text* characters, bool left, bool right) {
  std::vector<char32_t> set;
  if (characters != nullptr) {
    for (size_t position = 0; position < characters->size();)
      set.push_back(next_character(characters->bytes(), position));
    std::sort(set.begin(), set.end());
  }
  const auto goes = [&](char32_t character) {
    return characters == nullptr ? is_space(character)
                                 : std::binary_search(set.begin(), set.end(), character);
  };
  size_t begin = 0;
  size_t end = text.size();
  for (size_t next = begin; left && begin < end; begin = next) {
    if (!goes(next_character(text.bytes(), next))) break;
  }
  while (right && end > begin) {
    const size_t last = previous_position(text.bytes(), end);
    size_t position = last;
    if (!goes(next_character(text.bytes(), position))) break;
    end = last;
  }
  return text.slice(begin, end);
}

Text replace(Machine& machine, const Text& text, const Text& old, const Text& by, int64_t count) {
  Text result;
  size_t begin = 0;
  for (size_t from = 0; count != 0; --count) {
    const size_t at = find_part(text.bytes(), old.bytes(), from);
    if (at == kNotFound) break;
    machine.spend_steps();
    machine.budget().spend_bytes(by.size());
    result.append(text, begin, at);
    result.append(by);
    begin = at + old.size();
    from = begin;
    if (old.empty()) {  // matches before each character and at the end
      if (at == text.size()) break;
      next_character(text.bytes(), from);
    }
  }
  result.append(text, begin, text.size());
  return result;
}

std::vector<Text> split_lines(const Text& text, bool keep_ends) {
  std::vector<Text> lines;
  size_t begin = 0;
  for (size_t position = 0; position < text.size();) {
    const size_t end = position;
    const char32_t character = next_character(text.bytes(), position);
    if (!is_line_break(character)) continue;
    if (character == '\r' && position < text.size() && text.bytes()[position] == '\n') ++position;
    lines.push_back(text.slice(begin, keep_ends ? position : end));
    begin = position;
  }
  if (begin < text.size()) lines.push_back(text.slice(begin, text.size()));
  return lines;
}

Value call_string_method(Machine& machine, std::string_view name, const Text& text,
                         const Arguments& arguments) {
  const Method method = find_string_method(name);
  if (!text.is_markup()) return method(machine, text, arguments);
  return as_markup(method(machine, text, escaped_arguments(machine, name, arguments)));
}

std::optional<Value> string_member(const Value& object, std::string_view name) {
  if (find_string_method(name) != nullptr) {
    return Callable{std::string(name),
                    [object, name = std::string(name)](Machine& machine, const Arguments& arguments) {
                      machine.spend_steps(object.weight());
                      return call_string_method(machine, name, *object.text(), arguments);
                    }};
  }
  if (object.text()->is_markup() && (name == "unescape" || name == "striptags")) {
    throw unsupported("expected a supported method of Markup, got {}", name);
  }
  if (std::find(kUnsupported.begin(), kUnsupported.end(), name) != kUnsupported.end()) {
    throw unsupported("expected a supported method of str, got {}", name);
  }
  return std::nullopt;
}

}  // namespace soliton::jinja
