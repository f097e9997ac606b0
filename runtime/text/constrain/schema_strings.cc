#include "runtime/text/constrain/schema_strings.h"

#include <algorithm>

#include "runtime/text/constrain/schema_formats.h"

namespace soliton::constrain {
namespace {

constexpr int kMostCounted =
    256;  // characters more than the fewest, where all of them would be too many states

CodeSet all_written() {
  std::vector<CodeRange> ranges = {{'\b', '\n'}, {'\f', '\r'}, {'"', '"'}, {'\\', '\\'}};
  const CodeSet plain = JsonRules::plain_characters();
  ranges.insert(ranges.end(), plain.begin(), plain.end());
  return intersection(code_set(std::move(ranges)), {{0, 0xd7ff}, {0xe000, kMaxCode}});
}

/// What a flat schema says of texts.
class StringSchema {
 public:
  StringSchema(const SchemaDocument& document, const Schema& schema, const std::string& path)
      : document_(document), schema_(schema), path_(path) {}

  /// The counts.
  std::pair<int, int> read() {
    for (const Schema& format : list("~formats")) add(pattern_of_format(format), false, "format");
    for (const Schema& pattern : list("~patterns"))
      add(pattern_text(document_, pattern, path_), false, "pattern");
    for (const Schema& pattern : list("~unmatched"))
      add(pattern_text(document_, pattern, path_), true, "not");
    if (!list("~others").empty()) add_rule(none_of(list("~others")), "not");
    return counts_of(document_, schema_, path_, "minLength", "maxLength", kMaxLength);
  }
  const StringRules& rules() const { return all_; }

  Expression written(JsonRules& json) {
    const auto [min, max] = read();
    const bool has_counts = min > 0 || max >= 0;
    if (all_.rules.empty()) return has_counts ? json.string(min, max) : json.string();
    if (!has_counts && all_.rules.size() == 1 && is_one_ && list("~unmatched").empty()) {
      const std::string pattern = list("~formats").empty() ? list("~patterns")[0].get<std::string>()
                                                           : pattern_of_format(list("~formats")[0]);
      TextPattern found = parse_text_pattern(pattern, place(all_.keyword));
      if (is_plain(found))
        return sequence({text("\""), pattern_grammar(std::move(found), path_), text("\"")});
    }
    return text_of(document_, all_, min, max, path_);
  }

 private:
  std::string place(const std::string& keyword) const {
    return fmt::format("{}: {}", document_.name(), member_path(path_, keyword));
  }
  void add(const std::string& pattern, bool is_negated, const char* keyword) {
    for (TextRule& rule : document_.patterns().rules(pattern, is_negated, place(keyword)))
      add_rule(std::move(rule), keyword);
    is_one_ = all_.rules.size() == 1;
  }
  void add_rule(TextRule rule, const char* keyword) {
    all_.rules.push_back(std::move(rule));
    all_.keyword = keyword;
    is_one_ = false;
  }
  const Schema& list(const char* keyword) const {
    static const Schema kNone = Schema::array();
    return schema_.contains(keyword) ? schema_[keyword] : kNone;
  }

  const SchemaDocument& document_;
  const Schema& schema_;
  const std::string& path_;
  StringRules all_;
  bool is_one_ = false;
};

}  // namespace

const std::string& pattern_text(const SchemaDocument& document, const Schema& pattern,
                                const std::string& path) {
  if (pattern.is_string()) return pattern.get_ref<const std::string&>();
  throw document.error(ExitCode::kBadFile, member_path(path, "pattern"), "expected text, got {}",
                       pattern.type_name());
}

bool is_of_format(const SchemaDocument& document, const Schema& format, std::string_view text) {
  return document.patterns().fits(pattern_of_format(format), text, "format") == Fit::kYes;
}

Expression string_of(const SchemaDocument& document, JsonRules& json, const Schema& schema,
                     const std::string& path) {
  return StringSchema(document, schema, path).written(json);
}

std::pair<int, int> string_rules(const SchemaDocument& document, const Schema& schema,
                                 const std::string& path, StringRules& rules) {
  if (schema == true) return {0, -1};
  if (schema == false || (schema.contains("type") && (document.named_types(schema, path) & kStringType) == 0))
    throw document.no_value(path, "expected names, got none that fits");
  const auto listed = listed_values(schema);
  if (listed) throw document.no_value(path, "expected other names than those that are listed");
  for (const char* keyword : {"~choices", "~ones", "~nots"}) {
    if (schema.contains(keyword))
      throw document.unsupported(path, "", "where names have alternatives, or a condition or `not`");
  }
  StringSchema read(document, schema, path);
  const std::pair<int, int> counts = read.read();
  rules.rules.insert(rules.rules.end(), read.rules().rules.begin(), read.rules().rules.end());
  return counts;
}

Expression text_of(const SchemaDocument& document, const StringRules& rules, int min, int max,
                   const std::string& path) {
  static const CodeSet characters = all_written();
  const auto spend = [&](size_t steps) { document.spend(steps, path); };
  for (int most = max;;
       most = most < 0 || most > min + kMostCounted ? min + kMostCounted : (min + most) / 2) {
    const bool is_counted = min > 0 || most >= 0;
    std::optional<Expression> made =
        text_graph(rules.rules, {.min = min, .max = most}, characters, in_json, spend);
    if (made && made->kind == Expression::kChoice) {
      if (most == max)
        throw document.no_value(member_path(path, rules.keyword), "expected a text that fits all, got none");
    } else if (made) {
      return sequence({text("\""), std::move(*made), text("\"")});
    }
    if (!is_counted || max < 0 || most <= min + 4)
      throw document.error(ExitCode::kOutOfMemory, member_path(path, rules.keyword),
                           "expected a pattern of fewer states, got too many with what stands beside it");
  }
}

TextRule none_of(const Schema& texts) {
  std::vector<Expression> all;
  for (const Schema& each : texts) {
    std::vector<Expression> characters;
    for (const char32_t code : codes_of(each.get_ref<const std::string&>()))
      characters.push_back(codes({{code, code}}));
    all.push_back(sequence(std::move(characters)));
  }
  return {choice(std::move(all)), true};
}

}  // namespace soliton::constrain
