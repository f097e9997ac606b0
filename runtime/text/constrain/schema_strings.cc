#include "runtime/text/constrain/schema_strings.h"

#include <algorithm>

#include "runtime/text/constrain/schema_formats.h"

namespace soliton::constrain {
namespace {

/// How many characters texts have.
struct Lengths {
  int64_t min;
  int64_t max;
};
constexpr int64_t kNoBound = int64_t{1} << 40;

/// Of an expression whose characters count.
Lengths lengths_of(const Expression& expression) {
  const int64_t own = expression.counts ? 1 : 0;
  Lengths all{own, own};
  if (expression.kind == Expression::kChoice) all = {kNoBound, 0};
  for (const Expression& part : expression.parts) {
    const Lengths each = lengths_of(part);
    if (expression.kind == Expression::kChoice) {
      all = {std::min(all.min, each.min), std::max(all.max, each.max)};
    } else if (expression.kind == Expression::kRepeat) {
      const bool is_open = expression.max < 0 && each.max > 0;
      all = {each.min * expression.min, is_open ? kNoBound : each.max * std::max(expression.max, 0)};
    } else {
      all = {all.min + each.min, all.max + each.max};
    }
    all = {std::min(all.min, kNoBound), std::min(all.max, kNoBound)};
  }
  return all;
}

/// Of a graph whose edges are characters.
Lengths lengths_of_graph(const StateGraph& graph) {
  const auto count = static_cast<size_t>(graph.num_states);
  std::vector<std::vector<size_t>> next(count);
  std::vector<size_t> num_before(count);
  for (const StateGraph::Edge& edge : graph.edges) {
    next[static_cast<size_t>(edge.from)].push_back(static_cast<size_t>(edge.to));
    ++num_before[static_cast<size_t>(edge.to)];
  }
  std::vector<int64_t> shortest(count, kNoBound);
  std::vector<int64_t> longest(count, 0);
  std::vector<size_t> rest = {0};  // by breadth
  shortest[0] = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    for (const size_t to : next[rest[i]]) {
      if (shortest[to] != kNoBound) continue;
      shortest[to] = shortest[rest[i]] + 1;
      rest.push_back(to);
    }
  }
  rest.clear();  // in topological order
  if (num_before[0] == 0) rest.push_back(0);
  for (size_t i = 0; i < rest.size(); ++i) {
    for (const size_t to : next[rest[i]]) {
      longest[to] = std::max(longest[to], longest[rest[i]] + 1);
      if (--num_before[to] == 0) rest.push_back(to);
    }
  }
  Lengths all{kNoBound, rest.size() < count ? kNoBound : 0};  // of a cycle not all are there
  for (const int end : graph.ends) {
    all = {std::min(all.min, shortest[static_cast<size_t>(end)]),
           std::max(all.max, longest[static_cast<size_t>(end)])};
  }
  return all;
}

CodeSet all_written() {
  std::vector<CodeRange> ranges = {{'\b', '\n'}, {'\f', '\r'}, {'"', '"'}, {'\\', '\\'}};
  const CodeSet plain = JsonRules::plain_characters();
  ranges.insert(ranges.end(), plain.begin(), plain.end());
  return intersection(code_set(std::move(ranges)), {{0, 0xd7ff}, {0xe000, kMaxCode}});
}

/// Of content whose lengths are known, and which has as many characters as the first of the counts says or can have more.
Expression counted_string(const SchemaDocument& document, JsonRules& json, Expression content,
                          const Lengths& lengths, std::pair<int, int> counts, const std::string& path,
                          const StringRules& rules) {
  const auto [min, max] = counts;
  if (lengths.min == kNoBound || (max >= 0 && lengths.min > max))
    throw document.no_value(member_path(path, rules.keyword), "expected a text that fits all, got none");
  return json.string(std::move(content), lengths.min >= min ? 0 : min, lengths.max <= max ? -1 : max);
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
    std::pair<int, int> counts = counts_of(document_, schema_, path_, "minLength", "maxLength", kMaxLength);
    counts.first = std::max(counts.first, min_);
    if (max_ >= 0 && (counts.second < 0 || counts.second > max_)) counts.second = max_;
    if (counts.second >= 0 && counts.second < counts.first)
      throw document_.no_value(member_path(path_, all_.keyword), "expected a text that fits all, got none");
    return counts;
  }
  const StringRules& rules() const { return all_; }

  Expression written(JsonRules& json) {
    const auto [min, max] = read();
    const bool has_counts = min > 0 || max >= 0;
    if (all_.rules.empty()) return has_counts ? json.string(min, max) : json.string();
    if (all_.rules.size() == 1 && only_ && is_plain(*only_)) {
      const bool is_open = is_open_ended(*only_);
      Expression content = pattern_grammar(std::move(*only_), path_);
      const Lengths lengths = lengths_of(content);
      if (lengths.min >= min || is_open)
        return counted_string(document_, json, std::move(content), lengths, {min, max}, path_, all_);
    }
    return text_of(document_, json, all_, min, max, path_);
  }

 private:
  std::string place(const std::string& keyword) const {
    return fmt::format("{}: {}", document_.name(), member_path(path_, keyword));
  }
  void add(const std::string& pattern, bool is_negated, const char* keyword) {
    if (is_negated) return add_rule(document_.patterns().rule(pattern, true, place(keyword)), keyword);
    const Expression& found = document_.patterns().read(pattern, Dialects::kAll, place(keyword));
    const std::optional<CountedPattern> counted = counted_pattern(found);
    if (counted) {
      min_ = std::max(min_, counted->min);
      if (counted->max >= 0 && (max_ < 0 || max_ > counted->max)) max_ = counted->max;
    }
    only_ = counted ? counted->pattern : found;
    add_rule(found_somewhere(*only_), keyword);
  }
  void add_rule(TextRule rule, const char* keyword) {
    all_.rules.push_back(std::move(rule));
    all_.keyword = keyword;
  }
  const Schema& list(const char* keyword) const {
    static const Schema kNone = Schema::array();
    return schema_.contains(keyword) ? schema_[keyword] : kNone;
  }

  const SchemaDocument& document_;
  const Schema& schema_;
  const std::string& path_;
  StringRules all_;
  std::optional<Expression> only_;  // the last pattern
  int min_ = 0;                     // of characters, by patterns
  int max_ = -1;
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
    if (schema.contains(keyword)) throw document.unsupported(path, "", "where names have oneOf");
  }
  StringSchema read(document, schema, path);
  const std::pair<int, int> counts = read.read();
  rules.rules.insert(rules.rules.end(), read.rules().rules.begin(), read.rules().rules.end());
  return counts;
}

Expression text_of(const SchemaDocument& document, JsonRules& json, const StringRules& rules, int min,
                   int max, const std::string& path) {
  static const CodeSet characters = all_written();
  std::optional<Expression> made = text_graph(rules.rules, {.min = min}, characters, in_json,
                                              [&](size_t steps) { document.spend(steps, path); });
  if (!made)
    throw document.error(ExitCode::kOutOfMemory, member_path(path, rules.keyword),
                         "expected a pattern of fewer states, got too many with what stands beside it");
  const Lengths lengths =
      made->kind == Expression::kGraph ? lengths_of_graph(*made->graph) : Lengths{kNoBound, 0};
  return counted_string(document, json, std::move(*made), lengths, {0, max}, path, rules);
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
