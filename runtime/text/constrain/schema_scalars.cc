#include "runtime/text/constrain/schema_scalars.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "runtime/text/constrain/string_pattern.h"

namespace soliton::constrain {
namespace {

struct Format {
  const char* name;
  const char* pattern;
};
// Days that every year has, so that 29 February is not written.
#define SOLITON_DATE \
  "[1-9][0-9]{3}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
#define SOLITON_TIME \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
constexpr std::array<Format, 7> kFormats = {
    {{"date", "^" SOLITON_DATE "$"},
     {"time", "^" SOLITON_TIME "$"},
     {"date-time", "^" SOLITON_DATE "T" SOLITON_TIME "$"},
     {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
     {"email",
      "^[A-Za-z0-9_+-]{1,16}(\\.[A-Za-z0-9_+-]{1,16}){0,3}@([a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?\\.){1,4}[a-z]{"
      "2,12}$"},
     {"ipv4",
      "^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$"},
     {"", ""}}};
#undef SOLITON_DATE
#undef SOLITON_TIME

/// The bound that minimum and exclusiveMinimum say, or those of the other end.
std::optional<Bound> bound_of(const SchemaDocument& document, const Schema& schema, const std::string& path,
                              bool is_low, bool is_integer) {
  std::optional<Bound> nearest;
  for (const bool is_open : {false, true}) {
    const char* const keyword =
        is_low ? (is_open ? "exclusiveMinimum" : "minimum") : (is_open ? "exclusiveMaximum" : "maximum");
    if (!schema.contains(keyword)) continue;
    const std::string at = member_path(path, keyword);
    const Schema& value = schema[keyword];
    if (!value.is_number())
      throw document.error(ExitCode::kBadFile, at, "expected a number, got {}", value.type_name());
    const auto most = static_cast<double>(kMaxJsonInteger);
    const double number = value.get<double>();
    if (std::abs(number) > most) {
      if (is_low == (number < 0)) continue;  // no bound for the numbers that are written
      throw document.error(ExitCode::kBadFile, at, "expected at {} {}, got {}", is_low ? "most" : "least",
                           is_low ? most : -most, value.dump());
    }
    const double whole = is_low ? std::ceil(number) : std::floor(number);
    if (whole != number && !is_integer) throw document.unsupported(path, keyword, "as a fraction");
    Bound found{static_cast<int64_t>(whole), is_open && whole == number};
    if (is_integer && found.is_open) found = {found.value + (is_low ? 1 : -1)};
    const bool is_nearer = !nearest ||
                           (is_low ? found.value > nearest->value : found.value < nearest->value) ||
                           (found.value == nearest->value && found.is_open);
    if (is_nearer) nearest = found;
  }
  return nearest;
}

}  // namespace

std::pair<int, int> counts_of(const SchemaDocument& document, const Schema& schema, const std::string& path,
                              const char* min, const char* max) {
  const auto count = [&](const char* keyword, int otherwise) {
    if (!schema.contains(keyword)) return otherwise;
    const Schema& value = schema[keyword];
    const std::string at = member_path(path, keyword);
    if (!value.is_number() || type_of(value) != kIntegerType || value.get<double>() < 0)
      throw document.error(ExitCode::kBadFile, at, "expected a count, got {}", in_quotes(value.dump()));
    if (value.get<double>() > kMaxRepetitions) {
      throw document.error(ExitCode::kOutOfMemory, at, "expected at most {}, got {}", kMaxRepetitions,
                           value.dump());
    }
    return value.get<int>();
  };
  const int least = count(min, 0);
  const int most = count(max, -1);
  if (most >= 0 && most < least)
    throw document.error(ExitCode::kBadFile, member_path(path, max), "expected at least {}, got {}", least,
                         most);
  return {least, most};
}

Expression string_of(const SchemaDocument& document, JsonRules& json, const Schema& schema,
                     const std::string& path) {
  const bool has_counts = schema.contains("minLength") || schema.contains("maxLength");
  const std::string at = member_path(path, "pattern");
  const char* pattern = nullptr;
  std::string written;
  if (schema.contains("pattern")) {
    if (!schema["pattern"].is_string())
      throw document.error(ExitCode::kBadFile, at, "expected text, got {}", schema["pattern"].type_name());
    written = schema["pattern"].get<std::string>();
    pattern = written.c_str();
  }
  if (schema.contains("format")) {
    const std::string format = schema["format"].is_string() ? schema["format"].get<std::string>() : "";
    const auto* const found = std::find_if(kFormats.begin(), kFormats.end(),
                                           [&](const Format& known) { return known.name == format; });
    if (found == kFormats.end() || format.empty())
      throw document.unsupported(path, "format", "as " + schema["format"].dump());
    if (pattern != nullptr) throw document.unsupported(path, "format", "beside pattern");
    written = found->pattern;
    pattern = written.c_str();
  }
  if (pattern == nullptr && !has_counts) return json.string();
  if (pattern == nullptr) {
    const auto [min, max] = counts_of(document, schema, path, "minLength", "maxLength");
    return sequence({text("\""), repeat(JsonRules::character(), min, max), text("\"")});
  }
  if (has_counts)
    throw document.unsupported(path, schema.contains("minLength") ? "minLength" : "maxLength",
                               "beside pattern or format");
  const std::string place = fmt::format("{}: {}", document.name(), at);
  return sequence({text("\""), pattern_grammar(written, place), text("\"")});
}

Expression number_of(const SchemaDocument& document, JsonRules& json, const Schema& schema,
                     const std::string& path, bool is_integer) {
  if (schema.contains("multipleOf") && !(is_integer && schema["multipleOf"] == 1))
    throw document.unsupported(path, "multipleOf");
  const std::optional<Bound> low = bound_of(document, schema, path, true, is_integer);
  const std::optional<Bound> high = bound_of(document, schema, path, false, is_integer);
  if (!low && !high) return is_integer ? json.integer() : json.number();
  const Bound least = low.value_or(Bound{-kMaxJsonInteger});
  const Bound most = high.value_or(Bound{kMaxJsonInteger});
  if (least.value > most.value || (least.value == most.value && (least.is_open || most.is_open)))
    throw document.error(ExitCode::kBadFile, path, "expected a number between the bounds, got none");
  return is_integer ? integers_between(least.value, most.value) : numbers_between(least, most);
}

}  // namespace soliton::constrain
